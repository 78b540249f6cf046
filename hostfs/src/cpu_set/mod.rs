//! Sets of CPUs in the two forms that the kernel reads and prints.
//!
//! Grammar: `lib/bitmap-str.c` (`bitmap_parselist`, `bitmap_parse`, `bitmap_print_to_pagebuf`)
//! and "cpulist format" in `Documentation/admin-guide/kernel-parameters.rst`.

mod parse;

use std::fmt;
use std::ops::{BitAnd, BitOr, BitXor, Sub};
use std::str::FromStr;

pub use parse::ParseCpuSetError;

/// A set of CPU numbers of any size.
///
/// ```
/// use hostfs::CpuSet;
///
/// let cpus: CpuSet = "0-7:2/4,16".parse()?;
/// assert_eq!(cpus.iter().collect::<Vec<_>>(), [0, 1, 4, 5, 16]);
/// assert_eq!(cpus.to_string(), "0-1,4-5,16");
/// assert_eq!(cpus.to_mask(40), "00,00010033");
/// # Ok::<(), hostfs::ParseCpuSetError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct CpuSet {
    /// Bit `n` of word `w` is CPU `64·w + n`; no trailing zero words, so that equal sets
    /// are equal values.
    words: Vec<u64>,
}

impl CpuSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every CPU from 0 up to, and without, `count`.
    pub fn first(count: u32) -> Self {
        (0..count).collect()
    }

    /// The list form, as in `/sys/devices/system/cpu/online` or on the kernel's command
    /// line: `0-3,8`, `a-b:used/group` (the first `used` of each `group`), `N` (the last
    /// of `count` CPUs) and `all`. Commas and white space separate; an empty text is the
    /// empty set, as the kernel prints it.
    ///
    /// # Errors
    ///
    /// The text and what is wrong with it. A CPU that is not below `count` is an error, as
    /// it is (`ERANGE`) for the kernel.
    pub fn parse_list(text: &str, count: u32) -> Result<Self, ParseCpuSetError> {
        parse::list(text, Some(count))
    }

    /// The mask form, as in `smp_affinity`: groups of up to 8 hexadecimal digits joined by
    /// commas, highest first, e.g. `ff,00000001`.
    ///
    /// # Errors
    ///
    /// The text and what is wrong with it: an empty group, one longer than 8 digits, or
    /// something that is not hexadecimal.
    pub fn parse_mask(text: &str) -> Result<Self, ParseCpuSetError> {
        parse::mask(text)
    }

    /// The mask as the kernel prints it (`%*pb`) when it knows of `count` CPUs: 32-bit
    /// groups, the first as wide as `count` asks for, e.g. `3` for 2 CPUs, `00,00000001`
    /// for 40. CPUs at or over `count` are printed all the same, in a wider mask.
    pub fn to_mask(&self, count: u32) -> String {
        let bits = count
            .max(self.words.len() as u32 * 64 - self.leading_zeros())
            .max(1);
        let groups = bits.div_ceil(32);
        let width = ((bits - (groups - 1) * 32) as usize).div_ceil(4);
        (0..groups)
            .rev()
            .map(|group| {
                let word = self.words.get(group as usize / 2).copied().unwrap_or(0);
                let value = (word >> (32 * (group % 2))) as u32;
                if group == groups - 1 {
                    format!("{value:0width$x}")
                } else {
                    format!("{value:08x}")
                }
            })
            .collect::<Vec<_>>()
            .join(",")
    }

    /// How many CPUs are in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// True for the empty set.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// True if the CPU is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.words
            .get(cpu as usize / 64)
            .is_some_and(|w| w >> (cpu % 64) & 1 == 1)
    }

    /// Adds a CPU; false if it was there already.
    pub fn insert(&mut self, cpu: u32) -> bool {
        let word = cpu as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let fresh = !self.contains(cpu);
        self.words[word] |= 1 << (cpu % 64);
        fresh
    }

    /// Takes a CPU out; false if it was not there.
    pub fn remove(&mut self, cpu: u32) -> bool {
        let there = self.contains(cpu);
        if there {
            self.words[cpu as usize / 64] &= !(1 << (cpu % 64));
            self.trim();
        }
        there
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            words: &self.words,
            word: 0,
            rest: self.words.first().copied().unwrap_or(0),
        }
    }

    /// The lowest CPU of the set.
    pub fn min(&self) -> Option<u32> {
        self.iter().next()
    }

    /// The highest CPU of the set.
    pub fn max(&self) -> Option<u32> {
        (!self.is_empty()).then(|| self.words.len() as u32 * 64 - 1 - self.leading_zeros())
    }

    /// True if every CPU of this set is in the other.
    pub fn is_subset(&self, other: &CpuSet) -> bool {
        (self - other).is_empty()
    }

    /// True if the two have no CPU in common.
    pub fn is_disjoint(&self, other: &CpuSet) -> bool {
        (self & other).is_empty()
    }

    fn from_words(words: Vec<u64>) -> Self {
        let mut set = Self { words };
        set.trim();
        set
    }

    fn trim(&mut self) {
        let used = self
            .words
            .iter()
            .rposition(|w| *w != 0)
            .map_or(0, |at| at + 1);
        self.words.truncate(used);
    }

    fn leading_zeros(&self) -> u32 {
        self.words.last().map_or(0, |w| w.leading_zeros())
    }

    fn combine(&self, other: &CpuSet, op: impl Fn(u64, u64) -> u64) -> CpuSet {
        let len = self.words.len().max(other.words.len());
        let at = |words: &[u64], i: usize| words.get(i).copied().unwrap_or(0);
        Self::from_words(
            (0..len)
                .map(|i| op(at(&self.words, i), at(&other.words, i)))
                .collect(),
        )
    }
}

impl BitOr for &CpuSet {
    type Output = CpuSet;
    /// The union.
    fn bitor(self, other: &CpuSet) -> CpuSet {
        self.combine(other, |a, b| a | b)
    }
}

impl BitAnd for &CpuSet {
    type Output = CpuSet;
    /// The intersection.
    fn bitand(self, other: &CpuSet) -> CpuSet {
        self.combine(other, |a, b| a & b)
    }
}

impl BitXor for &CpuSet {
    type Output = CpuSet;
    /// The CPUs that are in one of the two only.
    fn bitxor(self, other: &CpuSet) -> CpuSet {
        self.combine(other, |a, b| a ^ b)
    }
}

impl Sub for &CpuSet {
    type Output = CpuSet;
    /// The CPUs of this set that are not in the other.
    fn sub(self, other: &CpuSet) -> CpuSet {
        self.combine(other, |a, b| a & !b)
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut set = Self::new();
        set.extend(cpus);
        set
    }
}

impl Extend<u32> for CpuSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, cpus: I) {
        for cpu in cpus {
            self.insert(cpu);
        }
    }
}

impl<'a> IntoIterator for &'a CpuSet {
    type Item = u32;
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The CPUs of a [`CpuSet`] in ascending order.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    words: &'a [u64],
    word: usize,
    rest: u64,
}

impl Iterator for Iter<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.rest == 0 {
            self.word += 1;
            self.rest = *self.words.get(self.word)?;
        }
        let bit = self.rest.trailing_zeros();
        self.rest &= self.rest - 1;
        Some(self.word as u32 * 64 + bit)
    }
}

/// The list as the kernel prints it (`%*pbl`), e.g. `0-3,8`; the empty set is empty.
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(start) = cpus.next() {
            let mut end = start;
            while let Some(next) = cpus.next_if_eq(&(end + 1)) {
                end = next;
            }
            write!(f, "{separator}{start}")?;
            if end > start {
                write!(f, "-{end}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({self})")
    }
}

/// The list form without `N` and `all`, which need to know how many CPUs there are
/// ([`CpuSet::parse_list`]).
impl FromStr for CpuSet {
    type Err = ParseCpuSetError;
    fn from_str(text: &str) -> Result<Self, ParseCpuSetError> {
        parse::list(text, None)
    }
}

/// As the list form.
#[cfg(feature = "serde")]
impl serde::Serialize for CpuSet {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// From the list form.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for CpuSet {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn masks_as_the_kernel_prints_them() {
        let cpus: CpuSet = "0,33".parse().unwrap();
        // 34 bits: one group of 2 bits (one digit), one of 32.
        assert_eq!(cpus.to_mask(34), "2,00000001");
        assert_eq!(cpus.to_mask(64), "00000002,00000001");
        assert_eq!(cpus.to_mask(2), "2,00000001", "wider than asked, never cut");
        assert_eq!(CpuSet::first(2).to_mask(2), "3");
        assert_eq!(CpuSet::new().to_mask(8), "00");
        assert_eq!(CpuSet::new().to_mask(0), "0");
        assert_eq!(CpuSet::first(1).to_mask(72), "00,00000000,00000001");
    }

    #[test]
    fn past_1024_cpus() {
        let cpus: CpuSet = "1023-1025,8191".parse().unwrap();
        assert_eq!((cpus.len(), cpus.max()), (4, Some(8191)));
        let again = CpuSet::parse_mask(&cpus.to_mask(8192)).unwrap();
        assert_eq!(again, cpus);
    }

    proptest! {
        #[test]
        fn printing_and_parsing_is_identity(cpus in proptest::collection::vec(0u32..5000, 0..60), count in 0u32..6000) {
            let set: CpuSet = cpus.iter().copied().collect();
            prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set.clone());
            prop_assert_eq!(CpuSet::parse_mask(&set.to_mask(count)).unwrap(), set);
        }

        #[test]
        fn agrees_with_a_btree_set(a in proptest::collection::btree_set(0u32..400, 0..50), b in proptest::collection::btree_set(0u32..400, 0..50), cpu in 0u32..500) {
            let (x, y): (CpuSet, CpuSet) = (a.iter().copied().collect(), b.iter().copied().collect());
            let same = |set: CpuSet, cpus: Vec<u32>| set.iter().eq(cpus.iter().copied()) && set == cpus.into_iter().collect();
            prop_assert!(same(&x | &y, a.union(&b).copied().collect()));
            prop_assert!(same(&x & &y, a.intersection(&b).copied().collect()));
            prop_assert!(same(&x - &y, a.difference(&b).copied().collect()));
            prop_assert!(same(&x ^ &y, a.symmetric_difference(&b).copied().collect()));
            prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
            prop_assert_eq!(x.is_disjoint(&y), a.is_disjoint(&b));
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!((x.min(), x.max()), (a.first().copied(), a.last().copied()));
            let (mut x, mut a) = (x, a);
            prop_assert_eq!(x.remove(cpu), a.remove(&cpu));
            prop_assert_eq!(x.insert(cpu + 64), a.insert(cpu + 64));
            prop_assert!(same(x, a.into_iter().collect()));
        }

        #[test]
        fn any_text_is_answered(text in "[0-9N,:/ al-]{0,24}") {
            let _ = CpuSet::parse_list(&text, 5000);
            let _ = CpuSet::parse_mask(&text);
        }
    }
}
