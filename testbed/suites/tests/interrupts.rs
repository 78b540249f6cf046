//! Interrupts of virtio, e1000e and NVMe: counted, moved, and moved back.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::Read;
use std::net::UdpSocket;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use hostfs::pci;
use irqaffinity::irqbalance::Irqbalance;
use irqaffinity::{CpuSet, Error, HostFs, Interrupts, Irq, IrqRestored, Restore, set_affinity};
use suites::{online, pin, run};

/// Each device's vectors with the name of who handles it, by driver.
fn vectors(driver: &str) -> Vec<(u32, String)> {
    let fs = HostFs::live();
    let table = Interrupts::read(&fs).unwrap();
    let devices = pci::devices(&fs).unwrap();
    let irqs = devices
        .iter()
        .filter(|device| {
            let virtio = device
                .virtio
                .as_ref()
                .and_then(|child| child.driver.as_deref());
            device.driver.as_deref() == Some(driver) || virtio == Some(driver)
        })
        .flat_map(|device| device.msi_irqs.clone().unwrap_or_default());
    irqs.filter_map(|msi| {
        let row = table.irq(msi.irq)?;
        Some((msi.irq, row.description().actions.join(",")))
    })
    .collect()
}

fn affinity(irq: u32) -> CpuSet {
    Irq::read(&HostFs::live(), irq).unwrap().affinity
}

fn affinities() -> Vec<(u32, CpuSet)> {
    let irqs = Irq::read_all(&HostFs::live()).unwrap();
    irqs.into_iter()
        .map(|irq| (irq.irq, irq.affinity))
        .collect()
}

/// Reads from a disk past the page cache, from this CPU.
fn read_disk(device: &str, cpu: u32, times: u32) {
    pin(cpu);
    let mut disk = File::options()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(device)
        .unwrap();
    // O_DIRECT wants whole, aligned blocks.
    let mut memory = vec![0; 8192];
    let start = memory.as_ptr().align_offset(4096);
    for _ in 0..times {
        disk.read_exact(&mut memory[start..start + 4096]).unwrap();
    }
}

/// The name of the network card that this driver serves.
fn card(driver: &str) -> String {
    let devices = pci::devices(&HostFs::live()).unwrap();
    let device = devices.iter().find(|d| d.driver.as_deref() == Some(driver));
    device.unwrap().net[0].clone()
}

#[test]
fn every_device_has_its_vectors_and_queues() {
    let names = |driver| {
        vectors(driver)
            .into_iter()
            .map(|(_, name)| name)
            .collect::<Vec<_>>()
    };
    let disk = names("virtio_blk");
    assert_eq!(disk.len(), 5, "{disk:?}");
    assert!(
        disk.iter().filter(|name| name.contains("-req.")).count() == 4,
        "{disk:?}"
    );
    let net = names("virtio_net");
    assert!(
        net.iter().filter(|name| name.contains("-input.")).count() == 4,
        "{net:?}"
    );
    assert!(
        net.iter().filter(|name| name.contains("-output.")).count() == 4,
        "{net:?}"
    );
    let e1000e = names("e1000e");
    assert!(e1000e.len() >= 3, "{e1000e:?}");
    let nvme = names("nvme");
    assert_eq!(nvme.len(), 9, "{nvme:?}");
}

/// Queues of disks belong to CPUs and nobody may move them; everything else moves.
#[test]
fn vectors_are_set_read_back_and_put_back_or_refused() {
    let record = Restore::new(&HostFs::live());
    let before = affinities();
    let (mut moved, mut refused) = (Vec::new(), Vec::new());
    for driver in ["virtio_blk", "virtio_net", "e1000e", "nvme"] {
        for (irq, name) in vectors(driver) {
            let found = affinity(irq);
            let cpu = if found.to_string() == "5" { 6 } else { 5 };
            let wanted: CpuSet = [cpu].into_iter().collect();
            match set_affinity(&record, irq, &wanted) {
                Ok(guard) => {
                    let outcome = guard.outcome().clone();
                    assert_eq!(
                        (outcome.requested, &outcome.affinity),
                        (wanted.clone(), &wanted)
                    );
                    assert_eq!(affinity(irq), wanted, "{name}");
                    let effective = outcome.effective.unwrap();
                    assert!(effective.is_subset(&wanted) || outcome.pending == Some(true));
                    let restored = guard.restore();
                    let fine = matches!(
                        restored,
                        IrqRestored::PutBack | IrqRestored::ServedElsewhere { .. }
                    );
                    assert!(fine, "{name}: {restored}");
                    assert_eq!(affinity(irq), found, "{name}");
                    moved.push(name);
                }
                Err(Error::NotSettable { .. }) => {
                    assert_eq!(affinity(irq), found, "{name}");
                    refused.push(name);
                }
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
    println!("moved {moved:?}, refused {refused:?}");
    assert_eq!(affinities(), before);
    let queues = |names: &[String], part: &str| names.iter().filter(|n| n.contains(part)).count();
    assert_eq!(queues(&refused, "-req."), 4);
    assert_eq!(queues(&refused, "nvme0q"), 8);
    assert_eq!(queues(&moved, "nvme0q0"), 1);
    assert_eq!(queues(&moved, "-input."), 4);
    assert_eq!(queues(&moved, "-output."), 4);
    assert!(queues(&moved, &card("e1000e")) >= 2, "{moved:?}");
}

#[test]
fn sets_of_cpus_are_stored_and_those_that_are_not_there_are_refused() {
    let record = Restore::new(&HostFs::live());
    let (irq, _) = vectors("e1000e")[0];
    let some: CpuSet = "1-2,7".parse().unwrap();
    let guard = set_affinity(&record, irq, &some).unwrap();
    assert_eq!(guard.outcome().affinity, some);
    assert_eq!(guard.outcome().effective.as_ref().map(CpuSet::len), Some(1));
    drop(guard);
    let past: CpuSet = "200".parse().unwrap();
    let error = set_affinity(&record, irq, &past).unwrap_err();
    assert!(
        matches!(error, Error::NoOnlineCpu { .. } | Error::OutOfRange { .. }),
        "{error}"
    );
}

/// The queue of CPU 3 interrupts CPU 3.
#[test]
fn interrupts_are_counted_on_the_cpu_that_serves_them() {
    let fs = HostFs::live();
    for disk in ["/dev/nvme0n1", "/dev/vda"] {
        let before = Interrupts::read(&fs).unwrap();
        std::thread::spawn(|| read_disk(disk, 3, 200))
            .join()
            .unwrap();
        let delta = Interrupts::read(&fs).unwrap().since(&before);
        let driver = if disk.contains("nvme") {
            "nvme"
        } else {
            "virtio_blk"
        };
        let mut by_irq = Vec::new();
        for (irq, name) in vectors(driver) {
            by_irq.push((delta.irq(irq).unwrap().change.total().unwrap(), irq, name));
        }
        by_irq.sort();
        let (most, irq, name) = by_irq.last().unwrap();
        // Two that come together are one.
        assert!((100..=220).contains(most), "{disk}: {by_irq:?}");
        let counts = delta.irq(*irq).unwrap();
        let at = Irq::read(&fs, *irq)
            .unwrap()
            .effective
            .unwrap()
            .min()
            .unwrap();
        let row = Interrupts::read(&fs).unwrap();
        let column = row.cpus().iter().position(|cpu| *cpu == at).unwrap();
        let there = u64::from(counts.change.per_cpu().unwrap()[column]);
        assert_eq!(there, *most, "{disk}: {name} is served by CPU {at}");
        if driver == "nvme" {
            assert_eq!(at, 3, "{name}");
        }
    }
}

#[test]
fn a_moved_interrupt_is_counted_where_it_was_moved_to() {
    let fs = HostFs::live();
    let name = card("e1000e");
    run(
        "ip",
        &[
            "addr",
            "add",
            "10.9.0.1/24",
            "broadcast",
            "10.9.0.255",
            "dev",
            &name,
        ],
    );
    let carrier = format!("sys/class/net/{name}/carrier");
    let end = Instant::now() + Duration::from_secs(20);
    while fs.read_text(&carrier).unwrap() != "1" {
        assert!(Instant::now() < end, "{name} has no link");
        std::thread::sleep(Duration::from_millis(100));
    }
    let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
    socket.set_broadcast(true).unwrap();
    let send = || {
        for _ in 0..50 {
            socket.send_to(b"anybody there?", "10.9.0.255:9").unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    let record = Restore::new(&fs);
    let six: CpuSet = "6".parse().unwrap();
    let guards: Vec<_> = vectors("e1000e")
        .iter()
        .map(|(irq, _)| set_affinity(&record, *irq, &six).unwrap())
        .collect();
    // Each moves at its next interrupt, which some will not have.
    send();
    let arrived: Vec<u32> = vectors("e1000e")
        .into_iter()
        .map(|(irq, _)| irq)
        .filter(|irq| Irq::read(&fs, *irq).unwrap().effective == Some(six.clone()))
        .collect();
    assert!(!arrived.is_empty());
    let before = Interrupts::read(&fs).unwrap();
    send();
    let after = Interrupts::read(&fs).unwrap();
    let delta = after.since(&before);
    let column = after.cpus().iter().position(|cpu| *cpu == 6).unwrap();
    let (mut all, mut there) = (0, 0);
    for irq in arrived {
        let row = delta.irq(irq).unwrap();
        all += row.change.total().unwrap();
        there += u64::from(row.change.per_cpu().unwrap()[column]);
    }
    assert!(all >= 10, "{all}");
    assert_eq!(there, all);
    drop(guards);
    run("ip", &["addr", "del", "10.9.0.1/24", "dev", &name]);
}

#[test]
fn irqbalance_moves_interrupts_and_leaves_nothing_behind() {
    let fs = HostFs::live();
    let before = affinities();
    let record = Restore::new(&fs);
    let mut balance = Irqbalance::builder().interval(1).start(&record).unwrap();
    assert_eq!(Irqbalance::find(&fs).unwrap().len(), 1);
    assert!(
        balance.wait_until_acted(Duration::from_secs(20)).unwrap(),
        "nothing was moved"
    );
    let moved = balance.saved().unwrap().moved();
    println!("moved {moved:?}");
    assert_ne!(affinities(), before);
    let report = balance.stop().unwrap();
    assert_eq!(affinities(), before, "{report}");
    assert!(report.is_clean(), "{report}");
    assert_eq!(record.troubles(), []);
    assert!(Irqbalance::find(&fs).unwrap().is_empty());
}

#[test]
fn a_daemon_is_paused_and_goes_on() {
    let fs = HostFs::live();
    let before = affinities();
    let saved = irqaffinity::Saved::take(&Restore::new(&fs)).unwrap();
    let mut daemon = std::process::Command::new("/bin/irqbalance")
        .args(["--foreground", "--interval=1"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while saved.moved().is_empty() {
        assert!(Instant::now() < end, "nothing was moved");
        std::thread::sleep(Duration::from_millis(100));
    }
    let record = Restore::new(&fs);
    let paused = Irqbalance::pause(&record).unwrap();
    assert_eq!(paused.len(), 1);
    let reset = Irqbalance::reset_to_default(&record).unwrap();
    assert!(!reset.is_empty());
    assert!(
        reset
            .iter()
            .all(|guard| guard.outcome().affinity == online())
    );
    drop((reset, paused));
    let process = &Irqbalance::find(&fs).unwrap()[0];
    assert!(!process.is_stopped(&fs));
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    drop(saved);
    assert_eq!(affinities(), before);
}
