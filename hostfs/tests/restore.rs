//! Changes go back to what was found: on drop, on panic, after a kill.
#![cfg(feature = "journal")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hostfs::{Error, HostFs, Process, Restore, Restored};
use tempfile::TempDir;

const BOOT: &str = "proc/sys/kernel/random/boot_id";

/// A root with two settings, and a folder for records beside it.
struct Machine {
    dir: TempDir,
    fs: HostFs,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [("sys/a", "1\n"), ("sys/b", "menu\n"), (BOOT, "boot-1\n")] {
            let path = dir.path().join("root").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let fs = HostFs::at(dir.path().join("root")).unwrap();
        Self { dir, fs }
    }

    fn holds(&self, path: &str) -> String {
        self.fs.read_text(path).unwrap()
    }

    fn other_writes(&self, path: &str, text: &str) {
        fs::write(self.dir.path().join("root").join(path), text).unwrap();
    }

    fn records(&self) -> PathBuf {
        self.dir.path().join("records")
    }

    fn journaled(&self) -> hostfs::Result<Restore> {
        Restore::journaled(&self.fs, self.records(), "test")
    }

    /// Leaves a record behind as a killed process would: its lock is gone, its guards
    /// never ran.
    fn killed_while(&self, change: impl FnOnce(&Restore) -> Vec<hostfs::Change>) {
        let record = self.journaled().unwrap();
        let changes = change(&record);
        let file = record_in(&self.records()).unwrap();
        let text = fs::read(&file).unwrap();
        let state = (self.holds("sys/a"), self.holds("sys/b"));
        drop(changes);
        drop(record);
        fs::write(file, text).unwrap();
        self.other_writes("sys/a", &state.0);
        self.other_writes("sys/b", &state.1);
    }
}

fn record_in(dir: &Path) -> Option<PathBuf> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|e| e == "json"))
}

#[test]
fn a_guard_restores_on_drop_and_on_panic() {
    let m = Machine::new();
    let record = Restore::new(&m.fs);
    let change = record.set("sys/a", "0").unwrap();
    assert_eq!((change.found(), change.now()), ("1", "0"));
    assert_eq!(m.holds("sys/a"), "0");
    drop(change);
    assert_eq!(m.holds("sys/a"), "1");

    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _change = record.set("sys/b", "teo").unwrap();
        assert_eq!(m.holds("sys/b"), "teo");
        panic!("in the middle");
    }));
    assert!(panicked.is_err());
    assert_eq!(m.holds("sys/b"), "menu");
    assert_eq!(record.troubles(), []);
}

#[test]
fn what_somebody_else_changed_is_left_alone_and_reported() {
    let m = Machine::new();
    let record = Restore::new(&m.fs);
    let change = record.set("sys/b", "teo").unwrap();
    m.other_writes("sys/b", "ladder\n");
    let holds = "ladder".to_owned();
    assert_eq!(change.restore(), Ok(Restored::LeftAlone { holds }));
    assert_eq!(m.holds("sys/b"), "ladder");
    assert_eq!(
        record.troubles()[0].to_string(),
        "sys/b (was \"menu\"): left alone: somebody else set it to \"ladder\" meanwhile"
    );
}

#[test]
fn what_a_program_of_ours_wrote_is_put_back_whatever_it_is() {
    let m = Machine::new();
    let record = Restore::new(&m.fs);
    let changes = record
        .expect_all([("sys/a", None), ("sys/b", Some("via".to_owned()))])
        .unwrap();
    m.other_writes("sys/a", "7\n");
    let outcomes: Vec<_> = changes.into_iter().map(|c| c.restore().unwrap()).collect();
    assert_eq!(outcomes, [Restored::PutBack, Restored::AsFound]);
    assert_eq!(m.holds("sys/a"), "1");
    assert_eq!(m.holds("sys/b"), "menu");
}

#[test]
fn guards_of_one_file_may_end_in_any_order() {
    let m = Machine::new();
    let record = Restore::new(&m.fs);
    let first = record.set("sys/b", "teo").unwrap();
    let second = record.set("sys/b", "ladder").unwrap();
    drop(first);
    assert_eq!(m.holds("sys/b"), "ladder", "the second change still stands");
    drop(second);
    assert_eq!(m.holds("sys/b"), "menu");

    let first = record.set("sys/b", "teo").unwrap();
    let second = record.set("sys/b", "ladder").unwrap();
    drop(second);
    assert_eq!(m.holds("sys/b"), "teo");
    drop(first);
    assert_eq!(m.holds("sys/b"), "menu");
}

#[test]
fn restore_all_leaves_nothing_for_the_guards() {
    let m = Machine::new();
    let record = Restore::new(&m.fs);
    let a = record.set("sys/a", "0").unwrap();
    record.restore_all();
    assert_eq!(m.holds("sys/a"), "1");
    m.other_writes("sys/a", "0");
    assert_eq!(a.restore(), Ok(Restored::AsFound));
    assert_eq!(m.holds("sys/a"), "0", "no longer ours to put back");
}

#[test]
fn a_change_that_fails_changes_and_records_nothing() {
    let m = Machine::new();
    let record = m.journaled().unwrap();
    assert!(record.set("sys/none", "1").unwrap_err().is_not_found());
    assert!(
        record
            .expect_all([("sys/a", None), ("sys/none", None)])
            .is_err()
    );
    assert_eq!(record_in(&m.records()), None);
}

#[test]
fn what_vanished_is_gone() {
    let m = Machine::new();
    let record = Restore::new(&m.fs);
    let change = record.set("sys/a", "0").unwrap();
    fs::remove_file(m.dir.path().join("root/sys/a")).unwrap();
    assert_eq!(change.restore(), Ok(Restored::Gone));
}

#[test]
fn what_cannot_be_put_back_stays_in_the_record_and_is_reported() {
    let m = Machine::new();
    let record = m.journaled().unwrap();
    let change = record.set("sys/a", "0").unwrap();
    let file = m.dir.path().join("root/sys/a");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(change.restore().is_err());
    assert_eq!(record.troubles().len(), 1);
    drop(record);
    assert!(record_in(&m.records()).is_some());
    fs::remove_dir(&file).unwrap();
    m.other_writes("sys/a", "0\n");
    Restore::replay(m.records()).unwrap();
    assert_eq!(m.holds("sys/a"), "1");
}

#[test]
fn after_a_kill_the_record_is_replayed_and_twice_is_harmless() {
    let m = Machine::new();
    m.killed_while(|record| {
        vec![
            record.set("sys/a", "0").unwrap(),
            record.set("sys/b", "teo").unwrap(),
        ]
    });
    assert_eq!(m.holds("sys/a"), "0");
    assert_eq!(m.holds("sys/b"), "teo");
    let error = m.journaled().unwrap_err();
    assert!(matches!(error, Error::Leftover { .. }), "{error}");

    let replayed = Restore::replay(m.records()).unwrap();
    assert_eq!(m.holds("sys/a"), "1");
    assert_eq!(m.holds("sys/b"), "menu");
    assert_eq!(replayed[0].command, "test");
    let (last, outcome) = &replayed[0].outcomes[0];
    assert_eq!(last.to_string(), "sys/b (was \"menu\")", "the latest first");
    assert_eq!(outcome, &Ok(Restored::PutBack));
    assert_eq!(Restore::replay(m.records()).unwrap(), []);
    m.journaled().unwrap();
}

#[test]
fn a_replay_goes_the_way_back_and_knows_one_that_was_begun() {
    let m = Machine::new();
    let change = |record: &Restore| {
        let change = record.set("sys/a", "0").unwrap();
        vec![change.with_way_back("via").unwrap()]
    };
    m.killed_while(change);
    Restore::replay(m.records()).unwrap();
    assert_eq!(m.holds("sys/a"), "1");

    m.killed_while(change);
    m.other_writes("sys/a", "via\n");
    let replayed = Restore::replay(m.records()).unwrap();
    assert_eq!(replayed[0].outcomes[0].1, Ok(Restored::PutBack));
    assert_eq!(m.holds("sys/a"), "1");

    m.killed_while(change);
    m.other_writes("sys/a", "else\n");
    Restore::replay(m.records()).unwrap();
    assert_eq!(m.holds("sys/a"), "else", "somebody else's");
}

#[test]
fn the_record_is_there_while_changed_and_gone_after() {
    let m = Machine::new();
    let record = m.journaled().unwrap();
    assert_eq!(record_in(&m.records()), None);
    let change = record.set("sys/a", "0").unwrap();
    let file = record_in(&m.records()).unwrap();
    let name = format!("test-{}.json", std::process::id());
    assert_eq!(file.file_name().unwrap().to_str(), Some(name.as_str()));
    let json: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let entry = &json["entries"][0]["file"];
    assert_eq!(entry["path"], "sys/a");
    assert_eq!(entry["found"], "1");
    assert_eq!(entry["wrote"], "0");
    drop(change);
    assert_eq!(record_in(&m.records()), None);
}

#[test]
fn two_cannot_change_the_machine_at_once() {
    let m = Machine::new();
    let record = m.journaled().unwrap();
    let error = m.journaled().unwrap_err();
    let me = std::process::id();
    assert!(
        error.to_string().contains(&format!("process {me}")),
        "{error}"
    );
    let error = Restore::replay(m.records()).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    drop(record);
    m.journaled().unwrap();
}

#[test]
fn a_record_of_an_earlier_boot_is_dropped() {
    let m = Machine::new();
    m.killed_while(|record| vec![record.set("sys/a", "0").unwrap()]);
    m.other_writes(BOOT, "boot-2\n");
    m.journaled().unwrap();
    assert_eq!(m.holds("sys/a"), "0", "not changed by us in this boot");
    assert_eq!(record_in(&m.records()), None);
}

#[test]
fn a_record_cannot_make_a_replay_write_elsewhere() {
    let m = Machine::new();
    m.other_writes("secret", "old");
    for path in ["secret", "sys/../secret", "/secret"] {
        let root = m.dir.path().join("root");
        let entry = serde_json::json!({"file": {
            "path": path, "found": "new", "wrote": null, "way_back": null
        }});
        let record = serde_json::json!({
            "schema": "restore-record/1", "command": "x", "root": root, "boot_id": null,
            "entries": [entry],
        });
        fs::create_dir_all(m.records()).unwrap();
        fs::write(m.records().join("x-1.json"), record.to_string()).unwrap();
        let replayed = Restore::replay(m.records()).unwrap();
        let error = replayed[0].unreadable.as_ref().unwrap();
        assert!(matches!(error, Error::Malformed { .. }), "{error}");
        assert_eq!(m.holds("secret"), "old");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_before_any_change() {
    let m = Machine::new();
    fs::write(m.records(), "a file").unwrap();
    assert!(m.journaled().is_err());
}

#[test]
fn a_record_that_cannot_be_read_is_said_and_the_others_are_put_back() {
    let m = Machine::new();
    m.killed_while(|record| vec![record.set("sys/a", "0").unwrap()]);
    // Sorts before the good one; a FIFO would block a careless reader for ever.
    fs::write(m.records().join("ab-0.json"), "garbage").unwrap();
    let fifo = m.records().join("ab-1.json");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::write(
        m.records().join("result.json"),
        "not a record, and not called so",
    )
    .unwrap();
    let replayed = Restore::replay(m.records()).unwrap();
    assert_eq!(m.holds("sys/a"), "1");
    let unreadable: Vec<bool> = replayed.iter().map(|r| r.unreadable.is_some()).collect();
    assert_eq!(unreadable, [true, true, false]);
    assert!(
        m.journaled().is_err(),
        "nothing is changed beside an unknown record"
    );
}

#[test]
fn the_lock_is_no_link_to_another_file() {
    let m = Machine::new();
    let victim = m.dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    fs::create_dir(m.records()).unwrap();
    std::os::unix::fs::symlink(&victim, m.records().join(".wakecost.lock")).unwrap();
    assert!(m.journaled().is_err());
    assert!(Restore::replay(m.records()).is_err());
    assert_eq!(fs::read_to_string(victim).unwrap(), "precious");
}

#[test]
fn a_folder_of_another_user_is_not_believed() {
    let m = Machine::new();
    m.killed_while(|record| vec![record.set("sys/a", "0").unwrap()]);
    if !nix::unistd::geteuid().is_root() {
        println!("only root can give a folder away: root's own folder is tried instead");
        assert!(Restore::replay("/").is_err());
        return;
    }
    let nobody = Some(65534);
    std::os::unix::fs::chown(m.records(), nobody, nobody).unwrap();
    let error = Restore::replay(m.records()).unwrap_err();
    assert!(matches!(error, Error::NotOurs { .. }), "{error}");
    assert_eq!(m.holds("sys/a"), "0");
    // A record of another user in a folder of ours.
    std::os::unix::fs::chown(m.records(), Some(0), Some(0)).unwrap();
    std::os::unix::fs::chown(record_in(&m.records()).unwrap(), nobody, nobody).unwrap();
    let replayed = Restore::replay(m.records()).unwrap();
    let error = replayed[0].unreadable.as_ref().unwrap();
    assert!(matches!(error, Error::NotOurs { .. }), "{error}");
    assert_eq!(m.holds("sys/a"), "0");
}

struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        let child = Command::new("sleep")
            .arg("600")
            .stdin(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_paused_process_runs_again_after_drop_and_after_a_kill() {
    let sleeper = Sleeper::start();
    let fs = HostFs::live();
    let process = Process::of(&fs, sleeper.0.id()).unwrap();
    let record = Restore::new(&fs);
    let pause = record.pause(&process).unwrap();
    wait_until(|| process.is_stopped(&fs));
    let again = record.pause(&process).unwrap();
    drop(again);
    assert!(process.is_stopped(&fs), "a process found stopped stays so");
    assert_eq!(pause.restore(), Ok(Restored::PutBack));
    wait_until(|| !process.is_stopped(&fs));

    let records = tempfile::tempdir().unwrap();
    let record = Restore::journaled(&fs, records.path(), "test").unwrap();
    let pause = record.pause(&process).unwrap();
    let file = record_in(records.path()).unwrap();
    let text = fs::read(&file).unwrap();
    wait_until(|| process.is_stopped(&fs));
    drop(pause);
    drop(record);
    wait_until(|| !process.is_stopped(&fs));
    let pid = nix::unistd::Pid::from_raw(process.pid as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
    wait_until(|| process.is_stopped(&fs));
    fs::write(file, text).unwrap();
    Restore::replay(records.path()).unwrap();
    wait_until(|| !process.is_stopped(&fs));

    drop(sleeper);
    let error = Restore::new(&fs).pause(&process).unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

fn wait_until(condition: impl Fn() -> bool) {
    for _ in 0..1000 {
        if condition() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("never happened");
}
