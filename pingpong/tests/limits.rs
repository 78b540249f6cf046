//! A process that may have no more descriptors or threads. The limits are those of a child,
//! which is this binary again with one test to run.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::process::Command;

use common::cpus;
use pingpong::{Error, Limit, Rings, TransportKind};

/// Tells the child's tests from the parent's.
const CHILD: &str = "PINGPONG_TEST_CHILD";

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs a test of this binary under a `ulimit`.
fn run_limited(ulimit: &str, test: &str) {
    let output = Command::new("sh")
        .args([
            "-c",
            &format!("ulimit {ulimit} && exec \"$0\" --exact {test}"),
        ])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

fn run(kind: TransportKind, stops: usize) -> Error {
    let rings = Rings::builder()
        .ring([cpus()[0]; 2])
        .ring(vec![cpus()[0]; stops]);
    let rings = rings
        .transport(kind)
        .limit(Limit::Loops(1))
        .build()
        .unwrap();
    rings.run().unwrap_err()
}

#[test]
fn too_few_descriptors() {
    run_limited("-n 40", "child_without_descriptors");
}

#[test]
fn child_without_descriptors() {
    if !is_child() {
        return;
    }
    let before = fs::read_dir("/proc/self/fd").unwrap().count();
    // 20 pipes have 40 ends, and some descriptors are open already.
    let error = run(TransportKind::Pipe, 20);
    let Error::Create {
        ring: 1,
        transport: TransportKind::Pipe,
        source,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(source.raw_os_error(), Some(libc::EMFILE));
    assert!(
        error.to_string().contains("`ulimit -n` must be raised"),
        "{error}"
    );
    assert_eq!(fs::read_dir("/proc/self/fd").unwrap().count(), before);
}

#[test]
fn no_room_for_threads() {
    // In KiB: room for the program, and far from enough for a thousand stacks of 2 MiB.
    run_limited("-v 600000", "child_without_room_for_threads");
}

#[test]
fn child_without_room_for_threads() {
    if !is_child() {
        return;
    }
    let error = run(TransportKind::Futex, 1000);
    let Error::Spawn {
        ring: 1, source, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!(source.raw_os_error(), Some(libc::EAGAIN));
    assert!(
        error.to_string().contains("`ulimit -u` or pids.max"),
        "{error}"
    );
}
