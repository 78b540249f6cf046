//! What a user may see who may do nothing; with both modules loaded.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use cpuidle::CpuIdle;
use hostfs::{HostFs, Restore};
use irqaffinity::irqbalance::Irqbalance;
use irqaffinity::{Interrupts, Irq};
use msi_probe::{Active, Config};
use rapl::Meter;
use suites::perf::Event;

#[test]
fn energy_is_refused_and_the_reason_is_said() {
    let error = Meter::open(&HostFs::live()).unwrap_err();
    let rapl::Error::NotPermitted { skipped, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(skipped.len(), 6, "{error}");
    assert!(error.to_string().contains("root"), "{error}");
    let error = Event::open("energy-pkg", 0).err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn idle_states_are_read_and_not_changed() {
    let idle = CpuIdle::open(&HostFs::live()).unwrap();
    let mut reader = idle.snapshotter().unwrap();
    let before = reader.snapshot();
    std::thread::sleep(std::time::Duration::from_secs(1));
    let delta = reader.snapshot().since(&before);
    assert!(delta.sum().iter().all(|state| state.counts.is_some()));
    let record = Restore::new(&HostFs::live());
    let error = idle.set_governor(&record, "ladder").unwrap_err();
    assert!(
        matches!(error, cpuidle::Error::NotPermitted { .. }),
        "{error}"
    );
    let state = "C6".parse().unwrap();
    let error = idle
        .disable_state(&record, &state, idle.online())
        .unwrap_err();
    assert!(
        matches!(error, cpuidle::Error::NotPermitted { .. }),
        "{error}"
    );
    assert_eq!(
        CpuIdle::open(&HostFs::live()).unwrap().governor(),
        Some("menu")
    );
}

#[test]
fn interrupts_are_read_and_not_moved() {
    let fs = HostFs::live();
    let table = Interrupts::read(&fs).unwrap();
    assert_eq!(table.cpus().len(), 8);
    let irqs = Irq::read_all(&fs).unwrap();
    assert!(irqs.len() > 20);
    let record = Restore::new(&fs);
    let error = irqaffinity::set_affinity(&record, irqs[0].irq, &irqs[0].affinity).unwrap_err();
    let refused = matches!(
        error,
        irqaffinity::Error::Host(hostfs::Error::NotPermitted { .. })
    );
    assert!(refused, "{error}");
    let error = Irqbalance::builder().start(&record).unwrap_err();
    assert!(matches!(error, irqaffinity::Error::NotRoot), "{error}");
}

/// Only 64 bytes of the configuration space are shown, and what is active is known all the same.
#[test]
fn msi_is_known_without_the_capabilities() {
    let report = msi_probe::probe(&HostFs::live()).unwrap();
    for (driver, active) in [
        ("e1000e", Active::Msix),
        ("nvme", Active::Msix),
        ("ahci", Active::Msi),
    ] {
        let device = report
            .devices
            .iter()
            .find(|d| d.driver.as_deref() == Some(driver))
            .unwrap();
        assert_eq!(device.config, Config::Truncated, "{driver}");
        assert_eq!((&device.msi, &device.msix), (&None, &None), "{driver}");
        assert_eq!(device.active, active, "{driver}");
    }
}

#[test]
fn ab_compares_the_machine_with_itself() {
    let output = Command::new("/bin/ab")
        .args([
            "--blocks",
            "2",
            "--seconds",
            "0.3",
            "--lead",
            "0",
            "--tail",
            "0",
            "--json",
        ])
        .args(["--out", "/tmp/ab-unprivileged"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "ab/1");
    assert_eq!(report["variants"].as_array().unwrap().len(), 2);
    for variant in report["variants"].as_array().unwrap() {
        assert!(variant["energy_j"].is_null());
        assert!(
            variant["energy_unavailable"]
                .as_str()
                .unwrap()
                .contains("root"),
            "{variant}"
        );
        assert!(variant["rings"][0]["us_per_loop"].as_f64().unwrap() > 0.0);
    }
    assert!(said.contains("root"), "{said}");
}
