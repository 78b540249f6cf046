//! Skeleton.
#![forbid(unsafe_code)]
mod attribute;
mod cpu_set;
mod error;
mod host_fs;
pub mod pci;
mod process;
mod restore;
mod topology;
pub use attribute::Attribute;
pub use cpu_set::{CpuSet, Iter as CpuSetIter, ParseCpuSetError};
pub use error::{Error, OsError, Result};
pub use host_fs::HostFs;
pub use process::Process;
#[cfg(feature = "journal")]
pub use restore::Replayed;
pub use restore::{Change, Entry, Restore, Restored, Trouble};
pub use topology::{Cache, CpuTopology, Topology};
