//! A zone, a register file and a processor whose files hold anything: opened, read and
//! diagnosed.
#![no_main]

use std::cell::LazyCell;
use std::fs;

use hostfs::HostFs;
use libfuzzer_sys::fuzz_target;
use rapl::Meter;
use tempfile::TempDir;

const FILES: [&str; 10] = [
    "sys/class/powercap/intel-rapl:0/name",
    "sys/class/powercap/intel-rapl:0/energy_uj",
    "sys/class/powercap/intel-rapl:0/max_energy_range_uj",
    "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw",
    "sys/class/powercap/intel-rapl:0/intel-rapl:0:0/name",
    "sys/class/powercap/intel-rapl:0/intel-rapl:0:0/energy_uj",
    "proc/cpuinfo",
    "sys/devices/system/cpu/online",
    "sys/bus/event_source/devices/power/type",
    "dev/cpu/0/msr",
];

thread_local! {
    static TREE: LazyCell<TempDir> = LazyCell::new(|| {
        let dir = tempfile::tempdir().unwrap();
        for file in FILES {
            fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
        }
        dir
    });
}

fuzz_target!(|bytes: &[u8]| {
    TREE.with(|tree| {
        // What 0xFF separates goes into one file after the other.
        let mut parts = bytes.split(|byte| *byte == 0xFF);
        for file in FILES {
            fs::write(tree.path().join(file), parts.next().unwrap_or_default()).unwrap();
        }
        let fs = HostFs::at(tree.path()).unwrap();
        if let Ok(mut meter) = Meter::open(&fs) {
            let before = meter.read();
            let energy = meter.read().since(&before);
            for domain in &energy.domains {
                let _ = domain.domain.limits(&fs);
                if let Some(joules) = domain.outcome.joules() {
                    assert!(joules.0 == 0.0, "nothing was consumed: {joules}");
                }
            }
        }
        let _ = rapl::diagnose(&fs).to_string();
    });
});
