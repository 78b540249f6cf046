//! A process that is known again: its number and when it started (`proc_pid_stat(5)`).

use crate::{Error, HostFs, Result};

/// A running process. Its number may be given to another one later; together with the
/// start time it is unique for this boot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name (`comm`), which the kernel cuts after 15 bytes.
    pub name: String,
    /// Clock ticks after boot at which it started.
    pub start_time: u64,
}

impl Process {
    /// The process of that number.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is none; [`Error::Malformed`].
    pub fn of(fs: &HostFs, pid: u32) -> Result<Self> {
        Ok(read_stat(fs, pid)?.process)
    }

    /// Every process of exactly that name, by number. Empty where `proc` has none.
    ///
    /// # Errors
    ///
    /// What the kernel answers when `proc` is listed.
    pub fn find_by_name(fs: &HostFs, name: &str) -> Result<Vec<Self>> {
        let pids = fs.list_numbered("proc", "")?;
        // A process that ends meanwhile is no longer one of them.
        Ok(pids
            .into_iter()
            .filter_map(|pid| read_stat(fs, pid).ok())
            .filter(|stat| stat.process.name == name && !stat.is_dead())
            .map(|stat| stat.process)
            .collect())
    }

    /// True while this very process runs (a zombie does not).
    pub fn is_alive(&self, fs: &HostFs) -> bool {
        read_stat(fs, self.pid)
            .is_ok_and(|stat| stat.process.start_time == self.start_time && !stat.is_dead())
    }

    /// True while it is stopped by a signal.
    pub fn is_stopped(&self, fs: &HostFs) -> bool {
        read_stat(fs, self.pid)
            .is_ok_and(|stat| stat.process.start_time == self.start_time && stat.state == 'T')
    }
}

struct Stat {
    process: Process,
    state: char,
}

impl Stat {
    fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

fn read_stat(fs: &HostFs, pid: u32) -> Result<Stat> {
    let path = format!("proc/{pid}/stat");
    let bytes = match fs.read_bytes(&path) {
        // The process ended between the open and the read.
        Err(Error::Os { os, .. }) if os.is(nix::errno::Errno::ESRCH) => {
            return Err(Error::NotFound {
                path: fs.full_path(&path),
            });
        }
        other => other?,
    };
    let text = String::from_utf8_lossy(&bytes);
    parse_stat(pid, &text)
        .ok_or_else(|| Error::malformed(fs.full_path(&path), "a process' state", &text))
}

/// The name is in parentheses and may hold any byte, parentheses and spaces too, so the
/// last `)` ends it; the state is field 3 and the start time field 22.
fn parse_stat(pid: u32, text: &str) -> Option<Stat> {
    let (_, rest) = text.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    Some(Stat {
        state: fields.next()?.chars().next()?,
        process: Process {
            pid,
            name: name.to_owned(),
            start_time: fields.nth(22 - 4)?.parse().ok()?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let text = "7 (a) R (b) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2";
        let stat = parse_stat(7, text).unwrap();
        assert_eq!(stat.process.name, "a) R (b");
        assert_eq!((stat.state, stat.process.start_time), ('S', 98765));
        for cut in 0..text.len() - 8 {
            let _ = parse_stat(7, &text[..cut]);
        }
        assert!(parse_stat(7, "7 (a) S 1 2 3").is_none());
    }

    #[test]
    fn this_process_is_alive_and_another_of_its_number_is_not() {
        let fs = HostFs::live();
        let me = Process::of(&fs, std::process::id()).unwrap();
        assert!(me.is_alive(&fs) && !me.is_stopped(&fs));
        assert!(Process::find_by_name(&fs, &me.name).unwrap().contains(&me));
        let other = Process {
            start_time: me.start_time + 1,
            ..me
        };
        assert!(!other.is_alive(&fs));
        assert!(Process::of(&fs, u32::MAX).unwrap_err().is_not_found());
    }

    #[test]
    fn a_zombie_is_not_alive() {
        let fs = HostFs::live();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = Process::of(&fs, child.id()).unwrap();
        // Waits without reaping: the child stays a zombie until `wait`.
        let options = nix::sys::wait::WaitPidFlag::WEXITED | nix::sys::wait::WaitPidFlag::WNOWAIT;
        let id = nix::sys::wait::Id::Pid(nix::unistd::Pid::from_raw(child.id() as i32));
        nix::sys::wait::waitid(id, options).unwrap();
        assert!(!process.is_alive(&fs));
        child.wait().unwrap();
        assert!(!process.is_alive(&fs));
    }
}
