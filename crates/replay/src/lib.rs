//! Reads PostgreSQL's server logs: which statements were recorded, by which sessions, when, and how long they took.
//!
//! A log is untrusted: its texts are data, a line of any length takes bounded memory, and what cannot be read is counted
//! with its place and skipped. Texts are bytes, since a log can hold several encodings.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod assemble;
mod check;
mod csv;
mod entry;
mod error;
mod files;
mod json;
mod message;
mod normalise;
mod parameters;
mod prefix;
mod reader;
mod records;
mod replayable;
mod stderr;
mod timestamp;

pub use check::{CheckConfig, check};
pub use error::LogError;
pub use reader::Progress;
