//! The replay file: the statements of a log that can be replayed, in the order of time.

mod format;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{
    RecordedClass, RecordedSession, RecordedStatement, RecordedText, ReplayFile, ReplayFileError,
    Statements, parameters,
};
pub(crate) use writer::{Writer, Written};
