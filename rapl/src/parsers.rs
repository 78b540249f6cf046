//! The parsers and the arithmetic, for the fuzz targets alone (`rapl/fuzz`).
#![allow(missing_docs)]

use std::time::Duration;

use hostfs::Stamp;

use crate::outcome::outcome as of;
use crate::place::Place;
use crate::zone::{ZoneId, parse_name};
use crate::{Backend, Domain, DomainReading, Joules, Kind, Modulus, Outcome, Watts};

pub fn zone(text: &str) -> Option<String> {
    ZoneId::parse(text).map(|zone| zone.to_string())
}

pub fn name(text: &str) -> Option<Kind> {
    parse_name(text).map(|role| role.kind)
}

pub fn constraint(text: &str) -> Option<u32> {
    crate::limits::number(text)
}

/// Two readings that far apart, at a bound of 1 kW.
pub fn outcome(backend: u8, from: u64, to: u64, ms: u32, range_uj: u64, unit: u8) -> Outcome {
    let unit = Joules(2f64.powi(-i32::from(unit % 32)));
    let mut domain = Domain::at(Backend::Powercap, "x", Kind::Package, Place::default());
    let (mut from, mut to) = (from, to);
    match backend % 3 {
        0 => {
            domain.unit = Joules(1e-6);
            domain.max_energy_range_uj = Some(range_uj);
            domain.modulus = Modulus::of_range(Some(range_uj));
        }
        1 => {
            (from, to) = (from & 0xFFFF_FFFF, to & 0xFFFF_FFFF);
            (domain.unit, domain.modulus) = (unit, Modulus::Register);
        }
        _ => {
            domain.unit = Joules(2f64.powi(-32));
            domain.modulus = Modulus::Accumulated { step: Some(unit) };
        }
    }
    let reading = |count, at: Duration| DomainReading {
        count: Ok(count),
        stamp: Stamp::between(at, at, at),
        reopened: 0,
    };
    let start = Duration::from_secs(100);
    let end = start + Duration::from_millis(ms.into());
    of(
        &domain,
        Watts(1000.0),
        &reading(from, start),
        &reading(to, end),
    )
}
