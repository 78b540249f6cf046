//! The parsers of both forms.

use super::CpuSet;

/// The largest CPU number that a text may name: far over any kernel's `CONFIG_NR_CPUS`
/// (8,192 on x86), so that a hostile text can't ask for gigabytes.
const MAX_CPU: u32 = (1 << 20) - 1;

/// A text that is not a set of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a set of CPUs: {text:?}: {reason}")]
pub struct ParseCpuSetError {
    text: String,
    reason: &'static str,
}

impl ParseCpuSetError {
    fn new(text: &str, reason: &'static str) -> Self {
        Self {
            text: text.chars().take(80).collect(),
            reason,
        }
    }
}

/// The list form: see [`CpuSet::parse_list`]; `N` and `all` need the count.
pub(super) fn list(text: &str, count: Option<u32>) -> Result<CpuSet, ParseCpuSetError> {
    let fail = |reason| ParseCpuSetError::new(text, reason);
    let mut set = CpuSet::new();
    let regions = text.split(|c: char| c == ',' || c.is_ascii_whitespace());
    for region in regions.filter(|region| !region.is_empty()) {
        let (range, pattern) = match region.split_once(':') {
            Some((range, pattern)) => (range, Some(pattern)),
            None => (region, None),
        };
        let number = |text: &str| -> Result<u32, ParseCpuSetError> {
            if text == "N" {
                return match count {
                    Some(count) => count.checked_sub(1).ok_or(fail("there are no CPUs")),
                    None => Err(fail("N is not known here")),
                };
            }
            if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
                return Err(fail("expected CPUs such as 0-3,8"));
            }
            text.parse().map_err(|_| fail("CPU number too large"))
        };
        let (start, end) = if range.eq_ignore_ascii_case("all") {
            match count {
                Some(0) => continue,
                Some(count) => (0, count - 1),
                None => return Err(fail("`all` is not known here")),
            }
        } else if let Some((start, end)) = range.split_once('-') {
            (number(start)?, number(end)?)
        } else if pattern.is_some() {
            return Err(fail("a pattern needs a range"));
        } else {
            let cpu = number(range)?;
            (cpu, cpu)
        };
        let (used, group) = match pattern {
            None => (1, 1),
            Some(pattern) => {
                let (used, group) = pattern
                    .split_once('/')
                    .ok_or(fail("a pattern is used/group"))?;
                (number(used)?, number(group)?)
            }
        };
        if start > end {
            return Err(fail("a range must not run backwards"));
        }
        if group == 0 || used > group {
            return Err(fail(
                "a pattern uses at most its group, and no group is empty",
            ));
        }
        if end > MAX_CPU || count.is_some_and(|count| end >= count) {
            return Err(fail("CPU number out of range"));
        }
        set.extend((start..=end).filter(|cpu| (cpu - start) % group < used));
    }
    Ok(set)
}

/// The mask form: see [`CpuSet::parse_mask`].
pub(super) fn mask(text: &str) -> Result<CpuSet, ParseCpuSetError> {
    let fail = |reason| ParseCpuSetError::new(text, reason);
    let digits = text.trim();
    let groups: Vec<u32> = digits
        .split(',')
        .map(|group| {
            if group.is_empty() || group.len() > 8 {
                return Err(fail("a mask has groups of 1 to 8 hexadecimal digits"));
            }
            if !group.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(fail("not hexadecimal"));
            }
            u32::from_str_radix(group, 16).map_err(|_| fail("not hexadecimal"))
        })
        .collect::<Result<_, _>>()?;
    if groups.len() > (MAX_CPU as usize + 1) / 32 {
        return Err(fail("too long"));
    }
    let mut words = vec![0u64; groups.len().div_ceil(2)];
    for (place, group) in groups.iter().rev().enumerate() {
        words[place / 2] |= u64::from(*group) << (32 * (place % 2));
    }
    Ok(CpuSet::from_words(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<u32> {
        CpuSet::parse_list(text, 64).unwrap().iter().collect()
    }

    fn reason(text: &str) -> &'static str {
        CpuSet::parse_list(text, 64).unwrap_err().reason
    }

    #[test]
    fn list_forms_of_the_kernel() {
        assert_eq!(list("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(list("\n"), [] as [u32; 0]);
        assert_eq!(list(" 1 , 3\n"), [1, 3]);
        assert_eq!(list("0-3,"), [0, 1, 2, 3]);
        assert_eq!(list("N"), [63]);
        assert_eq!(list("62-N"), [62, 63]);
        assert_eq!(list("ALL").len(), 64);
        // Documentation/admin-guide/kernel-parameters.rst: 0-1023:2/256 takes
        // 0,1,256,257,512,513,768,769.
        let cpus = CpuSet::parse_list("0-1023:2/256", 1024).unwrap();
        assert_eq!(cpus.to_string(), "0-1,256-257,512-513,768-769");
        assert_eq!(list("all:1/16"), [0, 16, 32, 48]);
        assert_eq!(list("4-7:0/2"), [] as [u32; 0]);
    }

    #[test]
    fn list_faults_are_named() {
        assert_eq!(reason("3-1"), "a range must not run backwards");
        assert_eq!(reason("64"), "CPU number out of range");
        assert_eq!(reason("0-64"), "CPU number out of range");
        assert_eq!(reason("5:1/2"), "a pattern needs a range");
        assert_eq!(reason("0-5:3"), "a pattern is used/group");
        let group = "a pattern uses at most its group, and no group is empty";
        assert_eq!(reason("0-5:1/0"), group);
        assert_eq!(reason("0-5:3/2"), group);
        assert_eq!(reason("0-"), "expected CPUs such as 0-3,8");
        assert_eq!(reason("-1"), "expected CPUs such as 0-3,8");
        assert_eq!(reason("+1"), "expected CPUs such as 0-3,8");
        assert_eq!(reason("x"), "expected CPUs such as 0-3,8");
        assert_eq!(reason("99999999999"), "CPU number too large");
        assert_eq!(
            "0-4294967295".parse::<CpuSet>().unwrap_err().to_string(),
            "not a set of CPUs: \"0-4294967295\": CPU number out of range"
        );
        assert!("N".parse::<CpuSet>().is_err());
        assert!("all".parse::<CpuSet>().is_err());
        assert!(CpuSet::parse_list("N", 0).is_err());
        assert!(CpuSet::parse_list("all", 0).unwrap().is_empty());
    }

    #[test]
    fn mask_faults() {
        for bad in ["", ",", "1,", "123456789", "0x1", "g", "-1", "1 2"] {
            assert!(CpuSet::parse_mask(bad).is_err(), "{bad:?}");
        }
        // KERNEL.md: an ungrouped mask over 32 CPUs is refused, as the kernel does.
        assert!(CpuSet::parse_mask("ffffffffff").is_err());
        assert_eq!(CpuSet::parse_mask("ff,ffffffff\n").unwrap().len(), 40);
    }
}
