//! A recorded statement: the messages that run it, and what is known of it once they are written.

use plinth_log::{RecordedStatement, parameters};
use plinth_wire::frontend;

/// What is known of a statement once its messages are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) label: usize,
    /// When it was due; of a closed loop, when it was sent.
    pub(super) intended_ns: u64,
    /// How long it took when it was recorded.
    pub(super) recorded_ns: Option<u64>,
    pub(super) has_failed: bool,
    /// How many rollbacks it asks for.
    pub(super) rollbacks: u32,
    pub(super) sqlstate: Option<[u8; 5]>,
    /// The text that has to be prepared for it.
    pub(super) prepared: Option<u32>,
}

impl Sent {
    pub(super) fn of(
        statement: &RecordedStatement<'_>,
        label: u32,
        rollbacks: u32,
        intended_ns: u64,
    ) -> Self {
        Self {
            label: label as usize,
            intended_ns,
            recorded_ns: statement.duration_us.map(|us| us.saturating_mul(1_000)),
            has_failed: statement.has_failed,
            rollbacks,
            sqlstate: statement.sqlstate,
            prepared: prepared(statement),
        }
    }
}

/// A statement that waits until its session is free.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) sent: Sent,
    pub(super) messages: Box<[u8]>,
}

/// A statement that has been read and is not due yet.
#[derive(Debug)]
pub(super) struct Next {
    pub(super) due_ns: u64,
    pub(super) session: u32,
    pub(super) sent: Sent,
    /// Its session sent it as soon as the one before had ended.
    pub(super) follows: bool,
}

/// Appends the messages that run a statement; of one with a name, without those that prepare it.
pub(super) fn write_statement(statement: &RecordedStatement<'_>, out: &mut Vec<u8>) {
    let Some((count, bytes)) = statement.parameters else {
        return frontend::write_query(statement.text, out);
    };
    match prepared(statement) {
        Some(number) => frontend::write_bind(&name(number), count, parameters(bytes), out),
        None => {
            frontend::write_parse(b"", statement.text, out);
            frontend::write_bind(b"", count, parameters(bytes), out);
        }
    }
    out.extend_from_slice(&frontend::EXECUTE);
    out.extend_from_slice(&frontend::SYNC);
}

/// Appends the message that prepares a text.
pub(super) fn write_prepare(number: u32, text: &[u8], out: &mut Vec<u8>) {
    frontend::write_parse(&name(number), text, out);
}

/// The number of the text that has to be prepared for a statement.
pub(super) fn prepared(statement: &RecordedStatement<'_>) -> Option<u32> {
    statement.text_number.filter(|_| statement.is_prepared)
}

fn name(number: u32) -> Vec<u8> {
    format!("plinth_{number}").into_bytes()
}
