//! How a device signals interrupts, from whatever can be seen of it.

use std::collections::BTreeMap;

use hostfs::interrupts::Interrupts;
use hostfs::pci::{MsiIrq, MsiKind, PciAddress, PciDevice};

use crate::config_space::Capabilities;
use crate::{Active, Evidence, Finding};

/// The message-signalled interrupts whose chips bear the address of their device, by number.
pub(crate) type NamedVectors = BTreeMap<u32, (PciAddress, MsiKind)>;

/// The answer, and what it rests on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub active: Active,
    pub evidence: Vec<Evidence>,
    pub irqs: Vec<u32>,
    pub findings: Vec<Finding>,
}

/// Newer kernels name the chip of each message-signalled interrupt after its device.
pub(crate) fn named_vectors(table: &Interrupts) -> NamedVectors {
    let rows = table.irqs();
    rows.filter_map(|row| Some((row.irq, device_of_chip(row.description().chip)?)))
        .collect()
}

/// `PCI-MSIX-0000:00:05.0` and the like, with the parent chip's prefix (`IR-`, `ITS-`) or
/// without (`msi_create_device_irq_domain` in `kernel/irq/msi.c`).
fn device_of_chip(chip: &str) -> Option<(PciAddress, MsiKind)> {
    let (_, rest) = chip.split_once("PCI-MSI")?;
    let (kind, address) = match rest.strip_prefix("X-") {
        Some(address) => (MsiKind::Msix, address),
        None => (MsiKind::Msi, rest.strip_prefix('-')?),
    };
    Some((address.parse().ok()?, kind))
}

/// Decides, the weightiest evidence first: the enable bits in the configuration space, then
/// the kernel's lists, then what is known of the interrupt line. `has_handler` tells whether
/// a driver has asked for an interrupt, if that is known.
pub(crate) fn decide(
    device: &PciDevice,
    config: &Capabilities,
    vectors: &NamedVectors,
    has_handler: impl FnOnce(u32) -> Option<bool>,
) -> Verdict {
    let mut findings = Vec::new();
    let listed = device.msi_irqs.as_deref();
    if listed.is_some_and(<[MsiIrq]>::is_empty) {
        findings.push(Finding::EmptyMsiIrqs);
    }
    let is_anothers = |irq: &MsiIrq| {
        let owner = vectors.get(&irq.irq);
        owner.is_some_and(|(address, _)| *address != device.address)
    };
    let (mut stale, mine): (Vec<MsiIrq>, Vec<MsiIrq>) = listed
        .unwrap_or_default()
        .iter()
        .partition(|irq| is_anothers(irq));
    let named: Vec<(u32, MsiKind)> = vectors
        .iter()
        .filter(|(_, (address, _))| *address == device.address)
        .map(|(irq, (_, kind))| (*irq, *kind))
        .collect();
    let irqs = match &mine[..] {
        [] => named.iter().map(|(irq, _)| *irq).collect(),
        mine => mine.iter().map(|irq| irq.irq).collect(),
    };

    let is_on = |kind| match kind {
        MsiKind::Msix => config.msix.is_some_and(|msix| msix.enabled),
        MsiKind::Msi => config.msi.is_some_and(|msi| msi.enabled),
    };
    let listed_kind = mine.iter().find_map(|irq| irq.kind);
    let named_kind = named.first().map(|(_, kind)| *kind);
    let on = [MsiKind::Msix, MsiKind::Msi]
        .into_iter()
        .find(|kind| is_on(*kind));
    let kind = on.or(listed_kind.or(named_kind).filter(|_| !config.complete));

    let (active, evidence, irqs) = if let Some(kind) = kind {
        let sources = [
            (on, Evidence::ConfigSpace),
            (listed_kind, Evidence::MsiIrqs),
            (named_kind, Evidence::ChipName),
        ];
        let agreeing = sources.iter().filter(|(said, _)| *said == Some(kind));
        let active = match kind {
            MsiKind::Msi => Active::Msi,
            MsiKind::Msix => Active::Msix,
        };
        (active, agreeing.map(|(_, source)| *source).collect(), irqs)
    } else if config.complete {
        // A device can't send messages while both are off, whatever the kernel lists.
        stale.extend(mine);
        line(device, config, Evidence::ConfigSpace, has_handler)
    } else if listed.is_some() && device.driver.is_some() {
        // A directory that is empty, or doesn't say of which kind its interrupts are.
        (Active::Unknown, vec![Evidence::MsiIrqs], irqs)
    } else {
        line(device, config, Evidence::MsiIrqs, has_handler)
    };
    if !stale.is_empty() {
        let mut irqs: Vec<u32> = stale.iter().map(|irq| irq.irq).collect();
        irqs.sort_unstable();
        findings.push(Finding::StaleMsiIrqs { irqs });
    }
    Verdict {
        active,
        evidence,
        irqs,
        findings,
    }
}

/// INTx, nothing, or unknown, for a device that, by the evidence given, doesn't use MSI.
fn line(
    device: &PciDevice,
    config: &Capabilities,
    no_msi: Evidence,
    has_handler: impl FnOnce(u32) -> Option<bool>,
) -> (Active, Vec<Evidence>, Vec<u32>) {
    if device.driver.is_none() {
        return (Active::None, vec![no_msi, Evidence::NoDriver], vec![]);
    }
    let Some(irq) = device.irq else {
        return (Active::None, vec![no_msi, Evidence::NoIrq], vec![]);
    };
    if config.intx_disabled == Some(true) {
        // The kernel sets this bit when it turns MSI on, so that without a look at the
        // capabilities it speaks against what `msi_irqs` said.
        let active = match no_msi {
            Evidence::ConfigSpace => Active::None,
            _ => Active::Unknown,
        };
        return (active, vec![no_msi, Evidence::IntxDisable], vec![]);
    }
    match (has_handler(irq), config.intx_disabled) {
        (Some(true), _) => (Active::Intx, vec![no_msi, Evidence::Handler], vec![irq]),
        (Some(false), _) => (Active::None, vec![no_msi, Evidence::Handler], vec![]),
        (None, Some(_)) => (Active::Intx, vec![no_msi, Evidence::IntxDisable], vec![irq]),
        (None, None) => (Active::Unknown, vec![no_msi], vec![]),
    }
}
