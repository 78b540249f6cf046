//! A bounded series allocates nothing while it is sampled. Alone in its process, since every
//! thread's allocations are counted.
#![allow(clippy::unwrap_used)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::Tree;
use rapl::Sampler;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: everything is handed on to the system's allocator; the count is an atomic, which
// allocates nothing itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
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

#[test]
fn sampling_allocates_nothing() {
    let tree = Tree::with(&[
        ("intel-rapl:0", "package-0", 1),
        ("intel-rapl:0:0", "core", 1),
        ("intel-rapl:0:1", "dram", 1),
    ]);
    let sampler = Sampler::start_bounded(tree.meter(), Duration::from_millis(1), 8).unwrap();
    // What the standard library sets up for a thread when it first waits.
    while sampler.series().dropped == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let dropped = sampler.series().dropped;
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(200));
    let count = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert!(sampler.series().dropped > dropped, "it went on sampling");
    assert_eq!(count, 0);
}
