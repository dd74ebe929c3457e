//! The replay file: the statements of a log that can be replayed, in the order of time.
//!
//! A header of 64 bytes, little-endian: the magic `PLINTHRP`, the version (4 bytes), 4 bytes of zeros, the time of the
//! beginning in microseconds since 1970, then the length of the recording in microseconds, the number of statements, the
//! number of sessions, where the tables begin, and the size of the file (8 bytes each).
//!
//! Then a record for each statement, each after its length. Numbers are LEB128 ([`crate::varint`]), times are microseconds:
//! time since the record before it, session, flags (a byte), duration if it is known, SQLSTATE (5 bytes) if the statement
//! failed and the log says how, number of the text or, with a flag, class and text. With the extended protocol, the number of
//! parameters follows, then the length plus 1 and the bytes of each, or 0 for NULL.
//!
//! Then the tables, each after its length: classes (text, statements, statements with a duration, durations in all), texts
//! (class, text), names, and sessions (statements, numbers of the names of user, database and application, beginning, length,
//! flags).

mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{
    RecordedClass, RecordedSession, RecordedStatement, RecordedText, ReplayFile, ReplayFileError,
    Statements, parameters,
};
pub(crate) use writer::{Writer, Written};

const MAGIC: &[u8; 8] = b"PLINTHRP";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 64;

const IS_EXTENDED: u8 = 1;
const IS_PREPARED: u8 = 2;
const HAS_DURATION: u8 = 4;
const HAS_FAILED: u8 = 8;
const HAS_SQLSTATE: u8 = 16;
const HAS_OWN_TEXT: u8 = 32;

const HAS_BEGINNING: u8 = 1;
const HAS_END: u8 = 2;
