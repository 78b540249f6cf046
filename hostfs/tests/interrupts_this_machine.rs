//! Reading `/proc/interrupts` of this machine, and of trees, again and again.
#![allow(clippy::unwrap_used)]

use std::fs;

use hostfs::interrupts::{CountChange, Interrupts, InterruptsReader};
use hostfs::{CpuSet, HostFs};

#[test]
fn the_live_table_agrees_with_sysfs() {
    let fs = HostFs::live();
    let mut reader = InterruptsReader::open(&fs).unwrap();
    let before = reader.read().unwrap();
    assert_eq!(
        before.findings(),
        [],
        "every row of this kernel is understood"
    );
    assert!(before.irqs().len() > 0, "a machine without interrupts");
    let online: CpuSet = fs.read("sys/devices/system/cpu/online").unwrap();
    assert_eq!(CpuSet::from(&before), online);
    let possible: CpuSet = fs.read("sys/devices/system/cpu/possible").unwrap();
    for row in before.irqs() {
        let dir = format!("sys/kernel/irq/{}", row.irq);
        // By possible CPU, read between the two tables.
        let Ok(text) = fs.read_text(format!("{dir}/per_cpu_count")) else {
            continue;
        };
        let counts: Vec<u32> = text.split(',').map(|n| n.parse().unwrap()).collect();
        let after = Interrupts::read(&fs).unwrap();
        for ((cpu, count), (_, now)) in row.per_cpu().zip(after.irq(row.irq).unwrap().per_cpu()) {
            let place = possible.iter().position(|other| other == cpu).unwrap();
            let middle = counts[place];
            assert!(
                count <= middle && middle <= now,
                "IRQ {} CPU {cpu}",
                row.irq
            );
        }
        let description = row.description();
        assert_eq!(
            description.chip,
            fs.read_text(format!("{dir}/chip_name")).unwrap()
        );
        let hwirq = fs.read_text(format!("{dir}/hwirq")).unwrap();
        assert_eq!(description.hwirq, hwirq.parse().ok());
        let actions = fs.read_text(format!("{dir}/actions")).unwrap();
        assert_eq!(description.actions.join(","), actions);
    }
}

#[test]
fn interrupts_arrive_between_two_readings() {
    let fs = HostFs::live();
    let mut reader = InterruptsReader::open(&fs).unwrap();
    let before = reader.read().unwrap();
    let mut after = before.clone();
    // A sleep needs the timer's interrupt, wherever this architecture counts it.
    let all = |table: &Interrupts| {
        let others: u64 = table.others().map(|row| row.total()).sum();
        others + table.irqs().map(|row| row.total()).sum::<u64>()
    };
    for _ in 0..1000 {
        std::thread::sleep(std::time::Duration::from_millis(1));
        reader.read_into(&mut after).unwrap();
        if all(&after) > all(&before) {
            break;
        }
    }
    assert!(all(&after) > all(&before), "no interrupt in a second");
    let delta = after.since(&before);
    assert_eq!(delta.cpus, before.cpus());
    for row in &delta.irqs {
        assert!(matches!(row.change, CountChange::Counted { .. }), "{row:?}");
    }
}

fn tree(text: &str) -> (tempfile::TempDir, HostFs) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("proc")).unwrap();
    fs::write(dir.path().join("proc/interrupts"), text).unwrap();
    let host = HostFs::at(dir.path()).unwrap();
    (dir, host)
}

#[test]
fn a_held_file_is_read_anew_from_its_start() {
    let (dir, host) = tree("  CPU0\n  1:  5  A  1-edge  a\n  2:  5  A  2-edge  b\n");
    let mut reader = InterruptsReader::open(&host).unwrap();
    let mut table = reader.read().unwrap();
    let earlier = table.clone();
    assert_eq!(table, Interrupts::read(&host).unwrap());
    // Shorter, and in place, as the kernel's file is.
    fs::write(
        dir.path().join("proc/interrupts"),
        "  CPU0\n  1:  7  A  1-edge  a\n",
    )
    .unwrap();
    reader.read_into(&mut table).unwrap();
    assert_eq!(table.irqs().len(), 1);
    assert_eq!(
        table.since(&earlier).irq(1).unwrap().change.total(),
        Some(2)
    );
    fs::write(dir.path().join("proc/interrupts"), "nothing\n").unwrap();
    let error = reader.read_into(&mut table).unwrap_err();
    let path = dir.path().join("proc/interrupts");
    assert_eq!(
        error.to_string(),
        format!(
            "{}: malformed: expected a header of CPUs, found \"nothing\"",
            path.display()
        )
    );
    assert_eq!((table.irqs().len(), table.cpus().len()), (0, 0));
}

#[test]
fn a_table_longer_than_the_buffer_is_read_whole() {
    let mut text: String = (0..700).map(|cpu| format!(" CPU{cpu}")).collect();
    text.push('\n');
    for irq in 0..300 {
        text += &format!("{irq}:{}  A  1-edge  a\n", "          7".repeat(700));
    }
    let (_dir, host) = tree(&text);
    let table = Interrupts::read(&host).unwrap();
    assert_eq!(table.findings(), []);
    assert_eq!(table.irqs().len(), 300);
    assert!(
        table
            .per_cpu_total()
            .iter()
            .all(|(_, total)| *total == 2100)
    );
}

#[test]
fn rows_that_stay_wrong_stay_findings() {
    let (_dir, host) = tree("  CPU0  CPU1\n  1:  5  A  1-edge  a\n");
    let table = InterruptsReader::open(&host).unwrap().read().unwrap();
    assert_eq!(table.findings().len(), 1);
}

#[test]
fn no_table_is_not_found() {
    let dir = tempfile::tempdir().unwrap();
    let host = HostFs::at(dir.path()).unwrap();
    assert!(Interrupts::read(&host).unwrap_err().is_not_found());
    assert!(InterruptsReader::open(&host).unwrap_err().is_not_found());
}
