//! The probe itself: reads, and lets the other modules judge.

use hostfs::HostFs;
use hostfs::interrupts::Interrupts;
use hostfs::pci::{self, ConfigSpace, PciDevice};

use crate::active::{self, NamedVectors, Verdict};
use crate::config_space::{self, Capabilities};
use crate::{Active, Config, Device, Finding, PciMsi, Report, Result, kernel};

/// Looks at the kernel and at every PCI device.
///
/// As root (`CAP_SYS_ADMIN`) it reads the few double words of each configuration space that
/// matter; without, the kernel shows 64 bytes of each, `config` is mostly
/// [`Config::Truncated`], and `active` rests on `msi_irqs` and on `/proc/interrupts`. A
/// device in D3 is not read, lest it be woken. Nothing is changed, and nothing is kept open.
///
/// A machine without PCI gives a report without devices, which says so in its findings. A
/// device that vanishes meanwhile is left out. A file that can't be read is a finding.
///
/// # Errors
///
/// [`Error::Host`](crate::Error::Host) where there is no sysfs below the root, or the PCI
/// bus can't be listed.
pub fn probe(fs: &HostFs) -> Result<Report> {
    let found = pci::devices(fs)?;
    let mut findings = Vec::new();
    if found.is_empty() {
        findings.push(Finding::NoPciDevices);
    }
    let mut kernel = kernel::read(fs, &mut findings);
    let table = Interrupts::read(fs).unwrap_or_else(|error| {
        if !error.is_not_found() {
            let error = error.to_string();
            findings.push(Finding::FileUnreadable { error });
        }
        Interrupts::default()
    });
    let vectors = active::named_vectors(&table);
    let devices: Vec<Device> = found
        .into_iter()
        .filter_map(|device| probe_device(fs, device, &table, &vectors))
        .collect();
    // What runs outweighs a file that may belong to another build.
    let user = devices
        .iter()
        .find(|device| matches!(device.active, Active::Msix | Active::Msi));
    if let Some(user) = user
        && kernel.pci_msi != PciMsi::Yes
    {
        kernel.pci_msi = PciMsi::Yes;
        kernel.source = Some(format!("MSI in use by {}", user.address));
    }
    Ok(Report {
        kernel,
        devices,
        findings,
    })
}

/// `None` if the device is gone.
fn probe_device(
    fs: &HostFs,
    mut device: PciDevice,
    table: &Interrupts,
    vectors: &NamedVectors,
) -> Option<Device> {
    let unreadable = std::mem::take(&mut device.unreadable);
    let mut findings: Vec<Finding> = unreadable
        .into_iter()
        .map(|error| Finding::FileUnreadable { error })
        .collect();
    let mut seen = read_config(fs, &device);
    let is_unreadable = |finding: &Finding| matches!(finding, Finding::ConfigUnreadable { .. });
    let home = format!("sys/bus/pci/devices/{}", device.address);
    if seen.findings.iter().any(is_unreadable) && !fs.exists(home) {
        return None;
    }
    findings.append(&mut seen.findings);
    let verdict = active::decide(&device, &seen, vectors, |irq| has_handler(fs, table, irq));
    let Verdict {
        active,
        evidence,
        irqs,
        findings: of_interrupts,
    } = verdict;
    findings.extend(of_interrupts);
    Some(Device {
        address: device.address,
        driver: device.driver,
        virtio: device.virtio,
        config: match (seen.complete, seen.intx_disabled) {
            (true, _) => Config::Full,
            (false, Some(_)) => Config::Truncated,
            (false, None) => Config::Unread,
        },
        msi: seen.msi,
        msix: seen.msix,
        active,
        evidence,
        irqs,
        findings,
    })
}

/// What can be seen of the configuration space without waking the device.
fn read_config(fs: &HostFs, device: &PciDevice) -> Capabilities {
    let unread = |finding| Capabilities {
        findings: vec![finding],
        ..Capabilities::default()
    };
    if device.is_asleep() {
        let power_state = device.power_state.clone().unwrap_or_default();
        return unread(Finding::Asleep { power_state });
    }
    let config = match ConfigSpace::open(fs, device.address) {
        Ok(config) => config,
        Err(error) => {
            let error = error.to_string();
            return unread(Finding::ConfigUnreadable { error });
        }
    };
    let mut failure = None;
    let mut seen = config_space::parse(|offset| match config.read_at(offset.into()) {
        Ok(dword) => dword,
        Err(error) => {
            failure = Some(error.to_string());
            None
        }
    });
    if let Some(error) = failure {
        // It looked like the end of what is visible, but was a read that failed.
        seen.findings.pop();
        seen.findings.push(Finding::ConfigUnreadable { error });
    }
    seen
}

/// Whether a driver has asked for the interrupt; `None` where the kernel doesn't tell.
fn has_handler(fs: &HostFs, table: &Interrupts, irq: u32) -> Option<bool> {
    if table
        .irq(irq)
        .is_some_and(|row| !row.description().actions.is_empty())
    {
        return Some(true);
    }
    // A row that is not there proves nothing: kernels of 2026 hide those that are zero.
    let actions = fs.read_text(format!("sys/kernel/irq/{irq}/actions")).ok()?;
    Some(!actions.is_empty())
}
