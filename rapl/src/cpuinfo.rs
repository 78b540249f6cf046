//! The two things that `/proc/cpuinfo` tells about energy counters.

use std::io::Read;

use hostfs::HostFs;

/// Every CPU has the same words; the first one's are within this many bytes.
const FIRST_CPU_BYTES: u64 = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CpuInfo {
    /// A hypervisor is below this kernel.
    pub(crate) virtual_machine: bool,
    /// All dies of a package show one counter, that of the package (AMD and Hygon;
    /// `rapl_pmu_is_pkg_scope` in `arch/x86/events/rapl.c`).
    pub(crate) dies_mirror_package: bool,
}

impl CpuInfo {
    /// Nothing is known where the file can't be read.
    pub(crate) fn read(fs: &HostFs) -> Self {
        let mut bytes = Vec::new();
        if let Ok(file) = fs.open("proc/cpuinfo") {
            // What was read before a failure still counts.
            let _ = file.take(FIRST_CPU_BYTES).read_to_end(&mut bytes);
        }
        parse(&String::from_utf8_lossy(&bytes))
    }
}

fn parse(text: &str) -> CpuInfo {
    let values = |key: &'static str| {
        text.lines().filter_map(move |line| {
            let (found, value) = line.split_once(':')?;
            (found.trim() == key).then_some(value.trim())
        })
    };
    CpuInfo {
        virtual_machine: values("flags")
            .any(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
        dies_mirror_package: values("vendor_id")
            .any(|vendor| ["AuthenticAMD", "HygonGenuine"].contains(&vendor)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendor_and_hypervisor() {
        let intel = parse("processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu vme tsc\n");
        assert_eq!(intel, CpuInfo::default());
        let amd = parse("vendor_id\t: AuthenticAMD\nflags\t\t: fpu hypervisor tsc\n");
        assert!(amd.virtual_machine && amd.dies_mirror_package);
        assert_eq!(
            parse("flags: hypervisors\nmodel name: hypervisor"),
            CpuInfo::default()
        );
        assert_eq!(parse(""), CpuInfo::default());
    }
}
