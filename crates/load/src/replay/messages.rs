//! The messages of recorded statements.

use plinth_replay::{RecordedStatement, parameters};
use plinth_wire::frontend;

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
