//! The kernel's command line.

use crate::{HostFs, Result};

/// The kernel's own parameters, in their order (`parse_args` in `kernel/params.c`): separated
/// by white space outside quotation marks, and ended by `--`, behind which all is for `init`.
///
/// ```
/// use hostfs::{CommandLine, HostFs};
///
/// let line = CommandLine::read(&HostFs::live())?;
/// let off = line.parameters().any(|parameter| parameter == ("cpuidle.off", Some("1")));
/// println!("idle states are {}", if off { "switched off" } else { "allowed" });
/// # Ok::<(), hostfs::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    text: String,
}

impl CommandLine {
    /// Reads `proc/cmdline`, whatever bytes it holds.
    ///
    /// # Errors
    ///
    /// As [`HostFs::read_bytes`].
    pub fn read(fs: &HostFs) -> Result<Self> {
        let bytes = fs.read_bytes("proc/cmdline")?;
        Ok(Self::new(&String::from_utf8_lossy(&bytes)))
    }

    /// A line as the boot loader gave it.
    pub fn new(text: &str) -> Self {
        Self {
            text: text.trim().to_owned(),
        }
    }

    /// Each parameter with its value, where it has one; quotation marks around either are
    /// taken off. One that is given several times comes several times.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let mut quoted = false;
        let words = self.text.split(move |c: char| {
            quoted ^= c == '"';
            !quoted && c.is_whitespace()
        });
        words
            .take_while(|word| *word != "--")
            .map(|word| word.strip_prefix('"').unwrap_or(word))
            .filter(|word| !word.is_empty())
            .map(|word| match word.split_once('=') {
                Some((name, value)) => (name, Some(value.trim_matches('"'))),
                None => (word.trim_matches('"'), None),
            })
    }
}

impl std::fmt::Display for CommandLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(text: &str) -> Vec<(String, Option<String>)> {
        let line = CommandLine::new(text);
        let owned = |(name, value): (&str, Option<&str>)| (name.into(), value.map(str::to_owned));
        line.parameters().map(owned).collect()
    }

    #[test]
    fn parameters_are_split_as_the_kernel_does() {
        let line = "root=/dev/vda1  quiet pci=noaer,nomsi -- pci=late\n";
        assert_eq!(
            parameters(line),
            [
                ("root".into(), Some("/dev/vda1".into())),
                ("quiet".into(), None),
                ("pci".into(), Some("noaer,nomsi".into())),
            ]
        );
        assert_eq!(parameters(""), []);
        assert_eq!(parameters(" -- quiet"), []);
    }

    #[test]
    fn quotation_marks_keep_white_space_and_come_off() {
        assert_eq!(
            parameters("dyndbg=\"file x +p\" \"pci=nomsi\" \"two words\" a=\"\""),
            [
                ("dyndbg".into(), Some("file x +p".into())),
                ("pci".into(), Some("nomsi".into())),
                ("two words".into(), None),
                ("a".into(), Some(String::new())),
            ]
        );
    }
}
