//! Reads PostgreSQL's server logs: which statements were recorded, by which sessions, when, and how long they took. What of them
//! can be replayed goes into a replay file, which the load engine reads.
//!
//! A log is untrusted: its texts are data, a line of any length takes bounded memory, and what cannot be read is counted
//! with its place and skipped. Texts are bytes, since a log can hold several encodings. A statement whose end is not proven is
//! not replayed; what proves an end in each format is in `ends.rs`.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod assemble;
mod check;
mod classifier;
mod continued;
mod counts;
mod csv;
mod ends;
mod entry;
mod error;
mod files;
mod json;
mod message;
mod normalise;
mod parameters;
mod prefix;
mod prepare;
mod reader;
mod reading;
mod records;
mod replay_file;
mod replayable;
mod session;
mod sorted;
mod spans;
mod statement;
mod stderr;
mod timestamp;
mod varint;

pub use check::{CheckConfig, check};
pub use error::LogError;
pub use prepare::{PrepareConfig, prepare};
pub use reader::Progress;
pub use replay_file::{
    RecordedClass, RecordedSession, RecordedStatement, RecordedText, ReplayFile, ReplayFileError,
    Statements, parameters,
};
pub use spans::most_at_once;
