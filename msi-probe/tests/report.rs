//! What people and programs read of a report.
#![allow(clippy::unwrap_used)]

use msi_probe::{Active, Config, Evidence, Finding, PciMsi};

#[test]
fn findings_say_what_is_wrong_and_where() {
    let text = |text: &str| text.to_owned();
    for (finding, message) in [
        (
            Finding::Truncated { at: 0x98 },
            "configuration space not visible from 0x98 on, so MSI may be there unseen: read it \
             as root (CAP_SYS_ADMIN)",
        ),
        (
            Finding::NoAnswer,
            "reads as all ones: the device is unplugged, powered off or in reset",
        ),
        (
            Finding::UnknownHeader { header_type: 3 },
            "header type 0x03 is unknown: no list of capabilities to be found",
        ),
        (
            Finding::Loop { at: 0x50 },
            "the list of capabilities leads back to 0x50",
        ),
        (
            Finding::BrokenCapability { at: 0x60 },
            "the capability at 0x60 has the id 0xff: the list is broken",
        ),
        (
            Finding::BadPointer {
                from: 0x50,
                to: 0x10,
            },
            "the pointer at 0x50 leads to 0x10, where no capability can be",
        ),
        (
            Finding::Overrun { at: 0xf8 },
            "the MSI-X capability at 0xf8 goes past the end of the configuration space",
        ),
        (
            Finding::Asleep {
                power_state: text("D3hot"),
            },
            "in D3hot: its configuration space was left unread, since that could wake it",
        ),
        (Finding::ConfigUnreadable { error: text("a") }, "a"),
        (Finding::FileUnreadable { error: text("b") }, "b"),
        (
            Finding::EmptyMsiIrqs,
            "msi_irqs is empty: a setup that failed, or Xen, where MSI can be in use all the same",
        ),
        (
            Finding::StaleMsiIrqs { irqs: vec![33, 34] },
            "msi_irqs lists 33, 34, which the device does not use",
        ),
        (
            Finding::NoPciDevices,
            "no PCI devices: a machine without PCI bus (virtio-mmio), a kernel without PCI, or \
             `pci=off`",
        ),
    ] {
        assert_eq!(finding.to_string(), message);
    }
}

#[test]
fn words_are_padded_where_a_table_asks_for_it() {
    let all = [
        Active::Msix,
        Active::Msi,
        Active::Intx,
        Active::None,
        Active::Unknown,
    ];
    assert_eq!(
        all.map(|a| a.to_string()),
        ["msix", "msi", "intx", "none", "unknown"]
    );
    let all = [Config::Full, Config::Truncated, Config::Unread];
    assert_eq!(all.map(|c| c.to_string()), ["full", "truncated", "unread"]);
    let all = [PciMsi::Yes, PciMsi::No, PciMsi::Unknown];
    assert_eq!(all.map(|p| p.to_string()), ["yes", "no", "unknown"]);
    assert_eq!(
        format!("{:<6}|{:<5}|{:>4}", Active::Msi, Config::Full, PciMsi::No),
        "msi   |full |  no"
    );
    assert_eq!(
        Evidence::ChipName.to_string(),
        "chip name in /proc/interrupts"
    );
}

#[cfg(feature = "serde")]
mod saved {
    use hostfs::HostFs;
    use msi_probe::{Report, probe};
    use serde_json::{Value, json};

    fn saved() -> (Report, Value) {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, bytes: &[u8]| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        let mut bytes = [0; 256];
        bytes[0x06] = 0x10;
        bytes[0x34] = 0x50;
        bytes[0x50..0x54].copy_from_slice(&[0x05, 0x70, 0x86, 0x01]);
        // MSI-X: on, masked, 3 vectors; table in BAR 1 at 0x2000, PBA in BAR 2 at 0x3000.
        bytes[0x70..0x74].copy_from_slice(&[0x11, 0x50, 0x02, 0xc0]);
        bytes[0x74..0x7c].copy_from_slice(&[0x01, 0x20, 0, 0, 0x02, 0x30, 0, 0]);
        write("sys/bus/pci/devices/0000:00:05.0/config", &bytes);
        write("sys/bus/pci/devices/0000:00:05.0/msi_irqs/33", b"msix\n");
        write("sys/bus/pci/devices/0000:00:06.0/config", &bytes[..64]);
        write("proc/cmdline", b"pci=nomsi\n");
        let report = probe(&HostFs::at(dir.path()).unwrap()).unwrap();
        let saved = serde_json::to_value(&report).unwrap();
        (report, saved)
    }

    #[test]
    fn the_field_names_are_those_of_the_msi_command() {
        let (_, saved) = saved();
        assert_eq!(saved["kernel"]["pci_msi"], "yes");
        assert_eq!(saved["kernel"]["disabled_by"], "pci=nomsi");
        let device = &saved["devices"][0];
        assert_eq!(device["address"], "0000:00:05.0");
        assert_eq!(
            (&device["driver"], &device["config"]),
            (&Value::Null, &json!("full"))
        );
        assert_eq!(
            device["msi"],
            json!({
                "cap_offset": 0x50, "enabled": false, "vectors": 8, "vectors_enabled": 1,
                "bits64": true, "maskable": true
            })
        );
        assert_eq!(
            device["msix"],
            json!({
                "cap_offset": 0x70, "enabled": true, "masked": true, "vectors": 3,
                "table": { "bar": 1, "offset": 0x2000 }, "pba": { "bar": 2, "offset": 0x3000 }
            })
        );
        assert_eq!(
            (&device["active"], &device["irqs"]),
            (&json!("msix"), &json!([33]))
        );
        assert_eq!(device["evidence"], json!(["config-space", "msi-irqs"]));
        assert_eq!(device["findings"], json!([{ "kind": "loop", "at": 0x50 }]));
        let hidden = &saved["devices"][1];
        assert_eq!(
            (&hidden["msi"], &hidden["msix"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(hidden["config"], "truncated");
        assert_eq!(
            hidden["findings"],
            json!([{ "kind": "truncated", "at": 0x50 }])
        );
    }

    #[test]
    fn a_report_that_was_saved_comes_back() {
        let (report, saved) = saved();
        assert_eq!(serde_json::from_value::<Report>(saved).unwrap(), report);
        let live = probe(&HostFs::live()).unwrap();
        let text = serde_json::to_string(&live).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), live);
    }
}
