//! Meters as commands open them.

use hostfs::HostFs;
use rapl::{Backend, Error, Meter, Options, Watts};

/// Opens the counters, by one backend where one is asked for.
///
/// # Errors
///
/// As [`Meter::open_with`].
pub fn open(fs: &HostFs, backend: Option<Backend>, power_bound: f64) -> Result<Meter, Error> {
    let mut options = Options::default().power_bound(Watts(power_bound));
    if let Some(backend) = backend {
        options = options.backend(backend);
    }
    Meter::open_with(fs, options)
}
