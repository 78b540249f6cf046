//! The folder that a command leaves its results in.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::output::Failure;

/// A folder that holds no results yet and can be written to.
#[derive(Debug)]
pub struct ResultsDir {
    path: PathBuf,
}

impl ResultsDir {
    /// Makes the folder, by default `wakecost-results/<command>-<date>-<process>`
    /// below this one.
    ///
    /// # Errors
    ///
    /// A folder that holds results already, or one that can't be made or written to: found
    /// out now, before anything is measured or changed.
    pub fn create(path: Option<&Path>, command: &str) -> Result<Self, Failure> {
        let path = match path {
            Some(path) => path.to_path_buf(),
            None => {
                let date = Timestamp::now().strftime("%Y%m%d-%H%M%S");
                let name = format!("{command}-{date}-{}", std::process::id());
                Path::new("wakecost-results").join(name)
            }
        };
        if path.join("result.json").exists() {
            return Err(Failure::Usage(format!(
                "--out {}: holds results already: choose another folder",
                path.display()
            )));
        }
        let dir = Self { path };
        let probe = dir.path.join(".probe");
        fs::create_dir_all(&dir.path)
            .and_then(|()| fs::write(&probe, "results go here"))
            .and_then(|()| fs::remove_file(&probe))
            .map_err(|error| dir.failure(&dir.path, &error))?;
        Ok(dir)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Saves a file whole or not at all.
    ///
    /// # Errors
    ///
    /// The file and what the system answered, such as a full disk.
    pub fn save(&self, name: &str, text: &str) -> Result<(), Failure> {
        let (path, new) = (self.path.join(name), self.path.join(format!("{name}.new")));
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|error| {
                let _ = fs::remove_file(&new);
                self.failure(&path, &error)
            })
    }

    fn failure(&self, path: &Path, error: &std::io::Error) -> Failure {
        Failure::Failed(format!(
            "{}: {error}: is the disk full? Or choose another folder with --out",
            path.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let out = ResultsDir::create(Some(dir.path()), "ab").unwrap();
        out.save("result.json", "{}").unwrap();
        let Err(Failure::Usage(message)) = ResultsDir::create(Some(dir.path()), "ab") else {
            panic!("accepted");
        };
        assert!(message.contains("holds results already"), "{message}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_is_found_out_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [file.clone(), file.join("below")] {
            let Err(Failure::Failed(message)) = ResultsDir::create(Some(&path), "ab") else {
                panic!("accepted");
            };
            assert!(message.contains("--out"), "{message}");
        }
    }
}
