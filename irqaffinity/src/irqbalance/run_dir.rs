//! The folder of irqbalance's socket.

use std::fs::{DirBuilder, remove_dir, remove_file};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where irqbalance makes its socket, `irqbalance<PID>.sock`.
///
/// Where the folder is missing, irqbalance falls back to an abstract socket of one name
/// for all, so that a second one, even beside a daemon that is paused, exits at once
/// (`init_socket` in its `irqbalance.c`).
const PATH: &str = "/run/irqbalance";

/// The folder, deleted when it is dropped if it was not there before.
#[derive(Debug)]
pub(super) struct RunDir {
    path: PathBuf,
    made: bool,
}

impl RunDir {
    /// Makes the folder if need be. Where that fails, irqbalance can do without.
    pub fn make() -> Self {
        Self::make_at(Path::new(PATH))
    }

    fn make_at(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            made: DirBuilder::new().mode(0o755).create(path).is_ok(),
        }
    }

    /// Deletes the socket that a killed process left behind.
    pub fn forget(&self, pid: u32) {
        let _ = remove_file(self.path.join(format!("irqbalance{pid}.sock")));
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if self.made {
            // Fails, as it should, if somebody else has a socket in it.
            let _ = remove_dir(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::write;

    #[test]
    fn the_folder_goes_with_the_last_socket_if_it_came_with_us() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("irqbalance");
        let ours = RunDir::make_at(&path);
        write(path.join("irqbalance7.sock"), "").unwrap();
        ours.forget(7);
        ours.forget(8);
        drop(ours);
        assert!(!path.exists());

        let ours = RunDir::make_at(&path);
        write(path.join("irqbalance9.sock"), "").unwrap();
        drop(ours);
        assert!(path.join("irqbalance9.sock").exists(), "somebody else's");
        let theirs = RunDir::make_at(&path);
        theirs.forget(9);
        drop(theirs);
        assert!(path.exists(), "it was there before");
        drop(RunDir::make_at(Path::new("/proc/irqbalance")));
    }
}
