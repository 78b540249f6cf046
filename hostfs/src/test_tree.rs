//! Small roots for the unit tests.

use std::fs;

use crate::HostFs;

/// A root with these files, given as (path, text); it is deleted with the first value.
pub(crate) fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, HostFs) {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let fs = HostFs::at(dir.path()).unwrap();
    (dir, fs)
}
