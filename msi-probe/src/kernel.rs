//! Whether the kernel can use MSI at all: how it was built, and what its command line says.

use hostfs::{CommandLine, Error, HostFs};

use crate::{Finding, Kernel, PciMsi};

/// What is known of the kernel before its devices are looked at.
pub(crate) fn read(fs: &HostFs, findings: &mut Vec<Finding>) -> Kernel {
    let mut note = |error: Error| {
        if !error.is_not_found() {
            findings.push(Finding::FileUnreadable {
                error: error.to_string(),
            });
        }
    };
    let release = fs.kernel_release().map_err(&mut note).ok();
    let line = CommandLine::read(fs).map_err(&mut note).ok();
    let mut kernel = Kernel {
        disabled_by: line.and_then(|line| disabled_by(&line)),
        pci_msi: PciMsi::Unknown,
        source: None,
        release,
    };
    let Some(release) = &kernel.release else {
        return kernel;
    };
    for path in [
        format!("boot/config-{release}"),
        format!("lib/modules/{release}/config"),
        format!("lib/modules/{release}/build/.config"),
    ] {
        match text(fs, &path).map(|config| built_with_msi(&config)) {
            Ok(Some(built)) => {
                kernel.pci_msi = if built { PciMsi::Yes } else { PciMsi::No };
                kernel.source = Some(path);
                break;
            }
            // A file that does not tell, such as one that was cut: the next one may.
            Ok(None) => {}
            Err(error) => note(error),
        }
    }
    kernel
}

/// As text, whatever bytes there are.
fn text(fs: &HostFs, path: &str) -> hostfs::Result<String> {
    let bytes = fs.read_bytes(path)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a kernel's configuration says of `CONFIG_PCI_MSI`; `None` if it doesn't.
///
/// The option is not named at all where there is no `CONFIG_PCI`.
fn built_with_msi(config: &str) -> Option<bool> {
    config
        .lines()
        .map(str::trim_end)
        .find_map(|line| match line {
            "CONFIG_PCI_MSI=y" => Some(true),
            "# CONFIG_PCI_MSI is not set" | "# CONFIG_PCI is not set" => Some(false),
            _ => None,
        })
}

/// The option that forbids MSI, if the kernel's command line has it: `nomsi` among the
/// comma-separated values of `pci=` (`pci_setup` in `drivers/pci/pci.c`).
fn disabled_by(line: &CommandLine) -> Option<String> {
    let nomsi = line.parameters().any(|(name, values)| {
        name == "pci" && values.is_some_and(|values| values.split(',').any(|v| v == "nomsi"))
    });
    nomsi.then(|| "pci=nomsi".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nomsi_is_looked_for_where_the_kernel_looks() {
        for line in [
            "pci=nomsi",
            "root=/dev/vda1 pci=nomsi quiet\n",
            "pci=noaer,nomsi,assign-busses",
            "pci=noaer pci=nomsi",
            "pci=\"nomsi,noaer\"",
            "\"pci=nomsi\"",
            "init=\"/bin/sh -c x\"  pci=nomsi",
        ] {
            assert_eq!(
                disabled_by(&CommandLine::new(line)).as_deref(),
                Some("pci=nomsi"),
                "{line:?}"
            );
        }
        for line in [
            "",
            "quiet",
            "pcie_pme=nomsi",
            "pci=nomsix",
            "pci=noaer",
            "PCI=nomsi",
            "nomsi",
            "quiet -- pci=nomsi",
            "dyndbg=\"file x pci=nomsi \" quiet",
            "xpci=nomsi",
        ] {
            assert_eq!(disabled_by(&CommandLine::new(line)), None, "{line:?}");
        }
    }

    #[test]
    fn a_configuration_tells_only_what_it_says() {
        let config = |line: &str| format!("CONFIG_64BIT=y\n{line}\nCONFIG_NET=y\n");
        assert_eq!(built_with_msi(&config("CONFIG_PCI_MSI=y")), Some(true));
        assert_eq!(built_with_msi(&config("CONFIG_PCI_MSI=y\r")), Some(true));
        let off = config("# CONFIG_PCI_MSI is not set");
        assert_eq!(built_with_msi(&off), Some(false));
        assert_eq!(
            built_with_msi(&config("# CONFIG_PCI is not set")),
            Some(false)
        );
        assert_eq!(
            built_with_msi(&config("CONFIG_PCI_MSI_ARCH_FALLBACKS=y")),
            None
        );
        assert_eq!(built_with_msi(&config("CONFIG_PCI=y")), None, "cut short");
        assert_eq!(built_with_msi(""), None);
    }
}
