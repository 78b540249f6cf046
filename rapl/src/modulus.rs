//! How far a counter counts before it begins again at zero.

use crate::Joules;

/// The counters behind every zone have 32 bits.
const COUNTS: u128 = 1 << 32;

/// What a counter's wrap is worth.
///
/// The kernel prints as `max_energy_range_uj` the energy of 2³²−1 counts, rounded down to
/// whole microjoules (`get_max_energy_counter` in `intel_rapl_common.c`), while a wrap is
/// worth 2³² counts. From the range the unit of one count is worked out, where one gives
/// the range back exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Modulus {
    /// 2³² counts of this many nanojoules: exact.
    Counts {
        /// The energy of one count in nanojoules, as the kernel rounds it.
        unit_nj: u64,
    },
    /// No unit gives this range, so the range itself is taken: a corrected wrap may be
    /// short by one count.
    Range {
        /// The range in microjoules.
        range_uj: u64,
    },
    /// The register itself: 2³² counts of [`Domain::unit`](crate::Domain::unit), exact.
    Register,
    /// The kernel adds up in 64 bits and nothing wraps. It takes what the register showed
    /// since it last looked as a signed number of 32 bits, though, and looks when somebody
    /// reads or, at 200 W, before 2³¹ steps have passed (`rapl_event_update` and
    /// `rapl_check_hw_unit` in `arch/x86/events/rapl.c`): at a higher power and without a
    /// read in between, 2³² steps can be missing from its sum.
    Accumulated {
        /// What one step of the register is worth, where that is known.
        step: Option<Joules>,
    },
    /// The range is missing or 0: a wrap can't be corrected, nor be noticed where the
    /// counter overtook its earlier value.
    Unknown,
}

impl Modulus {
    /// The modulus of a zone by its `max_energy_range_uj` (in microjoules).
    pub fn of_range(range_uj: Option<u64>) -> Self {
        let Some(range_uj) = range_uj.filter(|range| *range > 0) else {
            return Modulus::Unknown;
        };
        let most = COUNTS - 1;
        let unit = (u128::from(range_uj) * 1000 + most / 2) / most;
        match u64::try_from(unit) {
            Ok(unit_nj) if unit > 0 && unit * most / 1000 == u128::from(range_uj) => {
                Modulus::Counts { unit_nj }
            }
            _ => Modulus::Range { range_uj },
        }
    }

    /// The energy of one wrap in nanojoules, for a zone of powercap.
    pub fn nanojoules(&self) -> Option<u128> {
        match self {
            Modulus::Counts { unit_nj } => Some(COUNTS * u128::from(*unit_nj)),
            Modulus::Range { range_uj } => Some(u128::from(*range_uj) * 1000),
            _ => None,
        }
    }

    /// The energy of one count in nanojoules: the resolution of a zone's counter.
    pub fn unit_nj(&self) -> Option<u64> {
        match self {
            Modulus::Counts { unit_nj } => Some(*unit_nj),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unit(range_uj: u64) -> Option<u64> {
        Modulus::of_range(Some(range_uj)).unit_nj()
    }

    /// DRAM unit by model (HPCPerfStats#9, likwid PR#643): each zone's own range tells it.
    #[test]
    fn ranges_seen_on_real_machines() {
        assert_eq!(unit(262_143_328_850), Some(61_035), "2^-14 J");
        assert_eq!(unit(65_532_610_987), Some(15_258), "2^-16 J");
        assert_eq!(
            unit(65_712_999_613),
            Some(15_300),
            "dram of Haswell-EP and later"
        );
        // floor((2^32-1) * 10^9 / 1000): psys of Sapphire Rapids counts whole joules.
        assert_eq!(unit(4_294_967_295_000_000), Some(1_000_000_000));
    }

    #[test]
    fn a_wrap_is_worth_one_count_more_than_the_range() {
        // 2^32 * 61035 nJ.
        assert_eq!(
            Modulus::of_range(Some(262_143_328_850)).nanojoules(),
            Some(262_143_328_911_360)
        );
    }

    #[test]
    fn other_ranges_stand_for_themselves() {
        for range_uj in [
            1,
            1000,
            1_000_000,
            100_000_000,
            262_143_328_851,
            u64::MAX - 1,
        ] {
            let modulus = Modulus::of_range(Some(range_uj));
            assert_eq!(modulus, Modulus::Range { range_uj });
            assert_eq!(modulus.nanojoules(), Some(u128::from(range_uj) * 1000));
        }
    }

    /// A range of 0 (powercap#3) is not taken for a modulus.
    #[test]
    fn no_range_no_modulus() {
        assert_eq!(Modulus::of_range(Some(0)), Modulus::Unknown);
        assert_eq!(Modulus::of_range(None), Modulus::Unknown);
        assert_eq!(Modulus::Unknown.nanojoules(), None);
    }

    proptest! {
        #[test]
        fn every_unit_comes_back(unit_nj in 1u64..2_000_000_000) {
            let range = u128::from(u32::MAX) * u128::from(unit_nj) / 1000;
            prop_assert_eq!(unit(range as u64), Some(unit_nj));
        }

        #[test]
        fn no_counter_reaches_its_modulus(range_uj: u64) {
            let modulus = Modulus::of_range(Some(range_uj)).nanojoules();
            prop_assert!(modulus.is_none_or(|m| m >= u128::from(range_uj) * 1000));
        }
    }
}
