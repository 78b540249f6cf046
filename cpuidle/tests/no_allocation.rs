//! A snapshot into one that is used again allocates nothing.
#![allow(clippy::unwrap_used)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::Tree;

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
fn a_snapshot_again_allocates_nothing() {
    let tree = Tree::with_states("0-3", 4);
    let mut reader = tree.idle().snapshotter().unwrap();
    let mut snapshot = reader.snapshot();
    assert!(
        allocations(|| drop(reader.snapshot())) > 0,
        "the count counts"
    );
    let count = allocations(|| {
        for _ in 0..100 {
            reader.snapshot_into(&mut snapshot);
        }
    });
    assert_eq!(count, 0);
    tree.set(3, 2, [1, 2, 3, 4, 5]);
    let count = allocations(|| reader.snapshot_into(&mut snapshot));
    assert_eq!(count, 0);
    let counters = snapshot.cpus()[3].states[2].counters.clone().unwrap();
    assert_eq!(counters.rejected, Some(5));
}
