//! Skeleton.
#![forbid(unsafe_code)]
mod attribute;
mod cpu_set;
mod error;
mod host_fs;
pub use attribute::Attribute;
pub use cpu_set::{CpuSet, Iter as CpuSetIter, ParseCpuSetError};
pub use error::{Error, OsError, Result};
pub use host_fs::HostFs;
