//! One COPY: sends rows and returns their count.

use std::ops::Range;

use crate::control::CopyControl;
use crate::session::{Session, SessionError};
use crate::table::Table;

/// A message is sent when it is at least as long: the server takes it in few reads, and a socket buffer holds it.
const MESSAGE_BYTES: usize = 40_000;
/// Rows that are written into a message at once.
const ROWS_AT_ONCE: u64 = 50;

/// A kind of message, and its length, which is not known before the rows are.
const COPY_DATA_HEADER: [u8; 5] = [b'd', 0, 0, 0, 0];
const COPY_DONE: [u8; 5] = [b'c', 0, 0, 0, 4];
/// With the reason `withdrawn`, for the server's log.
const COPY_FAIL: [u8; 15] = *b"f\0\0\0\x0ewithdrawn\0";

/// Runs `sql`, one of whose statements is a COPY of `rows` of `table`. Returns the number of rows that the server has copied.
pub(crate) fn copy(
    session: &mut Session<'_>,
    control: &CopyControl,
    sql: &str,
    table: &dyn Table,
    mut rows: Range<u64>,
) -> Result<u64, SessionError> {
    session.query(sql)?;
    session.until(|answer| answer.copy_in || answer.ready)?;
    let mut message = Vec::with_capacity(2 * MESSAGE_BYTES);
    let mut sent = 0;
    while !session.answer.ready && session.answer.error.is_none() {
        if control.is_withdrawing() {
            withdraw(session);
            return Err(SessionError::Withdrawn);
        }
        if rows.is_empty() {
            session.send(&COPY_DONE)?;
            break;
        }
        let count = write_message(table, &mut rows, &mut message);
        session.send(&message)?;
        sent += count;
        control.count(count, message.len());
        session.drain()?;
    }
    session.until(|answer| answer.ready)?;
    outcome(session, sent)
}

/// Withdraws the rows that were sent. Errors from here on are consequences of what caused the withdrawal, and no failure
/// of this stream: a server that shuts down may have ended this session first, for example.
fn withdraw(session: &mut Session<'_>) {
    if session.send(&COPY_FAIL).is_ok() {
        let _ = session.until(|answer| answer.ready);
    }
}

/// Moves rows from the front of `rows` into a message. Returns their number.
fn write_message(table: &dyn Table, rows: &mut Range<u64>, message: &mut Vec<u8>) -> u64 {
    let first = rows.start;
    message.clear();
    message.extend_from_slice(&COPY_DATA_HEADER);
    while !rows.is_empty() && message.len() < MESSAGE_BYTES {
        let end = rows.end.min(rows.start + ROWS_AT_ONCE);
        table.write_rows(rows.start..end, message);
        rows.start = end;
    }
    let length = (message.len() - 1) as u32; // the length counts itself, but not the kind
    message[1..5].copy_from_slice(&length.to_be_bytes());
    rows.start - first
}

fn outcome(session: &mut Session<'_>, sent: u64) -> Result<u64, SessionError> {
    if let Some(error) = session.answer.error.take() {
        return Err(SessionError::Server(Box::new(error)));
    }
    match session.answer.rows {
        Some(rows) if rows != sent => Err(SessionError::Unexpected(format!(
            "of {sent} rows, the server copied {rows}"
        ))),
        _ => Ok(sent),
    }
}
