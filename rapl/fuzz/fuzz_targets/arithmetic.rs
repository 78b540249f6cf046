//! Two readings of a counter: never a negative energy, nor more than the power bound allows
//! where a wrap was corrected.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rapl::{Outcome, Wrap};

/// (backend, from, to, milliseconds, range in µJ, energy unit)
type Input = (u8, u64, u64, u32, u64, u8);

fuzz_target!(|input: Input| {
    let (backend, from, to, ms, range, unit) = input;
    let outcome = rapl::parsers::outcome(backend, from, to, ms, range, unit);
    if let Outcome::Measured {
        joules,
        watts,
        uncertainty,
        wrap,
        ..
    } = outcome
    {
        assert!(joules.0 >= 0.0 && watts.0 >= 0.0 && uncertainty.0 >= 0.0);
        assert!(joules.0.is_finite());
        if matches!(wrap, Wrap::Corrected | Wrap::CorrectedByRange) {
            // The bound of 1 kW, and 2 s in which a counter may lag behind.
            let most = 1000.0 * (f64::from(ms) / 1000.0 + 2.001);
            assert!(joules.0 <= most, "{joules} in {ms} ms");
        }
    }
});
