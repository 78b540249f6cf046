//! Where the program is.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Where daemons are, whatever the user's `PATH` says.
const SYSTEM: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The program of that name in `PATH`, `/usr/sbin` or `/sbin`.
pub(super) fn find(name: &str) -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    find_in(
        name,
        env::split_paths(&path).chain(SYSTEM.map(PathBuf::from)),
    )
}

fn find_in(name: &str, dirs: impl Iterator<Item = PathBuf>) -> Result<PathBuf> {
    // An empty part of `PATH` means the working directory, which nobody wants here.
    dirs.filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|path| is_program(path))
        .ok_or_else(|| Error::ProgramNotFound {
            program: name.into(),
            searched: "PATH, /usr/sbin and /sbin".into(),
        })
}

/// The program at that path.
pub(super) fn check(path: &Path) -> Result<PathBuf> {
    if is_program(path) {
        return Ok(path.to_path_buf());
    }
    Err(Error::ProgramNotFound {
        program: path.display().to_string(),
        searched: "the path that was given (or it is no program)".into(),
    })
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_first_program_of_that_name_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (name, mode) in [("a", 0o644), ("b", 0o755), ("c", 0o755)] {
            fs::create_dir(at(name)).unwrap();
            let program = at(name).join("irqbalance");
            fs::write(&program, "").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir_all(at("d/irqbalance")).unwrap();
        let dirs = ["", "none", "d", "a", "b", "c"].map(|name| match name {
            "" => PathBuf::new(),
            name => at(name),
        });
        let found = find_in("irqbalance", dirs.into_iter());
        assert_eq!(found.unwrap(), at("b/irqbalance"));
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let error = find("no-such-program-here").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no-such-program-here: not found in PATH, /usr/sbin and /sbin: install it \
             (Debian's and Fedora's package is called irqbalance)"
        );
        let error = check(Path::new("/proc/self/status")).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("/proc/self/status: not found in the path")
        );
    }
}
