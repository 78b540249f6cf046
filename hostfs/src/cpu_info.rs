//! What `/proc/cpuinfo` says of the processor.

use std::io::Read;

use crate::HostFs;

/// Every CPU has the same words; the first one's are within this many bytes.
const FIRST_CPU_BYTES: u64 = 1 << 16;

/// The processor. What the architecture does not say is `None`
/// (`arch/*/kernel/cpu/proc.c` and the like).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CpuInfo {
    /// `vendor_id` on x86, such as `GenuineIntel`.
    pub vendor: Option<String>,
    /// The model's name: `model name` on x86, `cpu` on POWER, `Model` or `Hardware` on Arm
    /// boards.
    pub model: Option<String>,
    /// The family's number, on x86 only.
    pub family: Option<u32>,
    /// The model's number within its family, on x86 only.
    pub model_number: Option<u32>,
    /// What the processor can do, by the kernel's words: `flags` on x86, `Features` on Arm.
    pub flags: Vec<String>,
    /// True if a hypervisor is below this kernel, by the x86 flag `hypervisor`; other
    /// architectures have no such flag.
    pub virtual_machine: Option<bool>,
}

impl CpuInfo {
    /// Reads the first CPU's words. Nothing is known where the file can't be read.
    pub fn read(fs: &HostFs) -> Self {
        let mut bytes = Vec::new();
        if let Ok(file) = fs.open("proc/cpuinfo") {
            // What was read before a failure still counts.
            let _ = file.take(FIRST_CPU_BYTES).read_to_end(&mut bytes);
        }
        parse(&String::from_utf8_lossy(&bytes))
    }
}

fn parse(text: &str) -> CpuInfo {
    let value = |key: &str| {
        text.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            let value = value.trim();
            (found.trim() == key && !value.is_empty()).then(|| value.to_owned())
        })
    };
    let number = |key: &str| value(key).and_then(|value| value.parse().ok());
    let flags: Vec<String> = value("flags")
        .or_else(|| value("Features"))
        .map(|flags| flags.split_whitespace().map(str::to_owned).collect())
        .unwrap_or_default();
    let models = ["model name", "cpu model", "Model", "Hardware", "cpu"];
    CpuInfo {
        vendor: value("vendor_id"),
        model: models.into_iter().find_map(value),
        family: number("cpu family"),
        model_number: number("model"),
        virtual_machine: value("flags").map(|_| flags.iter().any(|flag| flag == "hypervisor")),
        flags,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x86_tells_vendor_model_and_hypervisor() {
        let cpu = parse(
            "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 97\nmodel name\t: Some CPU @ 2.00GHz\n\
             flags\t\t: fpu hypervisor msr\n",
        );
        assert_eq!(cpu.vendor.as_deref(), Some("AuthenticAMD"));
        assert_eq!(cpu.model.as_deref(), Some("Some CPU @ 2.00GHz"));
        assert_eq!((cpu.family, cpu.model_number), (Some(25), Some(97)));
        assert_eq!(cpu.virtual_machine, Some(true));
        assert_eq!(cpu.flags, ["fpu", "hypervisor", "msr"]);
        let host = parse("model name: hypervisor\nflags\t: fpu hypervisors\n");
        assert_eq!(host.virtual_machine, Some(false));
    }

    #[test]
    fn others_do_not_say_whether_they_are_virtual() {
        let arm = parse("Features\t: fp asimd\nHardware\t: BCM2835\n");
        assert_eq!(arm.virtual_machine, None);
        assert_eq!((arm.family, arm.model_number), (None, None));
        assert_eq!(arm.flags, ["fp", "asimd"]);
        assert_eq!(arm.model.as_deref(), Some("BCM2835"));
        assert_eq!(parse(""), CpuInfo::default());
    }
}
