//! Reading into a reading that is used again allocates nothing.
#![allow(clippy::unwrap_used)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::Tree;
use hostfs::HostFs;
use hostfs::pmu::{Event, Pmu};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is handed on to the system's allocator; the count is a plain cell of
// the thread, which allocates nothing itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Not there any more while a thread ends: that allocation is not of interest.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are handed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn reading_again_allocates_nothing() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0", 1),
        ("intel-rapl:0:0", "core", 1),
        ("intel-rapl:0:1", "dram", 1),
        ("intel-rapl:1", "psys", 1),
    ]);
    let mut meter = tree.meter();
    let mut reading = meter.read();
    assert!(allocations(|| drop(meter.read())) > 0, "the count counts");
    let count = allocations(|| {
        for _ in 0..100 {
            meter.read_into(&mut reading);
        }
    });
    assert_eq!(count, 0);
    tree.set("intel-rapl:0", 4_000_000);
    let count = allocations(|| meter.read_into(&mut reading));
    assert_eq!(count, 0);
    assert_eq!(
        reading.get("intel-rapl/package-0").unwrap().count,
        Ok(4_000_000)
    );
}

#[test]
fn registers_allocate_nothing() {
    let tree = Tree::bare("");
    tree.processor("GenuineIntel", 6, 0x9E);
    tree.cpu(0, 0, 0, 0);
    tree.register(0, 0x606, 0x000A_0E03);
    tree.register(0, 0x611, 1);
    tree.register(0, 0x639, 1);
    let mut meter = tree.meter();
    assert_eq!(meter.domains().len(), 2);
    let mut reading = meter.read();
    let count = allocations(|| {
        for _ in 0..100 {
            meter.read_into(&mut reading);
        }
    });
    assert_eq!(count, 0);
}

/// The perf backend reads events and nothing else; this machine may have no event of energy.
#[test]
fn events_allocate_nothing() {
    let fs = HostFs::live();
    let event = Pmu::read(&fs, "msr").and_then(|pmu| {
        let tsc = pmu.event("tsc").and_then(|event| event.config);
        Event::open(&fs, &pmu, tsc.unwrap_or_default(), 0)
    });
    let Ok(mut event) = event else {
        println!("no event can be opened here");
        return;
    };
    let count = allocations(|| {
        for _ in 0..100 {
            event.read().unwrap();
        }
    });
    assert_eq!(count, 0);
}
