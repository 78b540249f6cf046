//! Why a probe could not be made at all.

/// The result of everything in this crate that touches the machine.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a probe could not be made. What goes wrong with one device or one file is a
/// [`Finding`](crate::Finding) instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The PCI bus could not be listed.
    #[error(transparent)]
    Host(#[from] hostfs::Error),
}
