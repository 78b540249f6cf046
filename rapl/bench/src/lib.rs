//! See `benches/beside.rs`.
