//! What the commands share: figures, tables, the report, and how they write and fail.
//!
//! Each command is a short file beside this crate's `Cargo.toml`, run with
//! `cargo run --release --example NAME -- ARGS`.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod child;
pub mod figures;
pub mod meters;
pub mod output;
pub mod report;
pub mod results_dir;
pub mod table;

/// The README's programs, compiled and run as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
