//! Reads PostgreSQL's server logs: which statements were recorded, by which sessions, when, and how long they took. Statements that
//! can be replayed go into a replay file, which the load engine reads.
//!
//! A log is untrusted. Its texts are data, a line of any length takes bounded memory, and what cannot be read is counted with its
//! place and skipped. Texts are bytes, because one log may contain several encodings. A statement is replayed only if its end is
//! proven; `ends.rs` says what proves an end in each format.
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
