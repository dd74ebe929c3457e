//! One COPY: rows in, a count out.

use std::ops::Range;

use plinth_wire::frontend;

use crate::control::Control;
use crate::session::{Session, SessionError};
use crate::tpcb::{LONGEST_ROW_BYTES, Table};

/// Rows in a message: about 40 kB, which the server takes in few reads and a socket buffer holds.
const ROWS_PER_MESSAGE: u64 = 2_000;

/// A kind of message, and its length, which is not known before the rows are.
const COPY_DATA_HEADER: [u8; 5] = [b'd', 0, 0, 0, 0];
const COPY_DONE: [u8; 5] = [b'c', 0, 0, 0, 4];
/// With the reason `withdrawn`, for the server's log.
const COPY_FAIL: [u8; 15] = *b"f\0\0\0\x0ewithdrawn\0";

/// Copies into `table` what `next_rows` gives until it gives nothing. Yields the number of rows that the server has
/// taken for good; 0 without a COPY when there is nothing at all.
pub(crate) fn copy(
    session: &mut Session<'_>,
    control: &Control,
    table: Table,
    mut next_rows: impl FnMut() -> Option<Range<u64>>,
) -> Result<u64, SessionError> {
    let Some(mut rows) = next_rows() else {
        return Ok(0);
    };
    let query = frontend::query(&format!("COPY {} FROM STDIN", table.name()))
        .map_err(|error| SessionError::Unexpected(error.to_string()))?;
    session.command(&query)?;
    session.until(|said| said.copy_in || said.ready)?;
    let mut message = Vec::with_capacity(ROWS_PER_MESSAGE as usize * LONGEST_ROW_BYTES);
    let mut sent = 0;
    while !session.said.ready && session.said.error.is_none() {
        if control.is_withdrawing() {
            session.send(&COPY_FAIL)?;
            session.until(|said| said.ready)?;
            return Err(SessionError::Withdrawn);
        }
        if rows.is_empty() {
            match next_rows() {
                Some(more) => rows = more,
                None => {
                    session.send(&COPY_DONE)?;
                    break;
                }
            }
        }
        let count = ROWS_PER_MESSAGE.min(rows.end - rows.start);
        write_message(table, rows.start..rows.start + count, &mut message);
        rows.start += count;
        session.send(&message)?;
        sent += count;
        control.count_sent(count, message.len());
        session.glance()?;
    }
    session.until(|said| said.ready)?;
    outcome(session, sent)
}

fn write_message(table: Table, rows: Range<u64>, message: &mut Vec<u8>) {
    message.clear();
    message.extend_from_slice(&COPY_DATA_HEADER);
    table.write_rows(rows, message);
    let length = (message.len() - 1) as u32; // the length counts itself, but not the kind
    message[1..5].copy_from_slice(&length.to_be_bytes());
}

fn outcome(session: &mut Session<'_>, sent: u64) -> Result<u64, SessionError> {
    if let Some(error) = session.said.error.take() {
        return Err(SessionError::Server(Box::new(error)));
    }
    match session.said.rows {
        Some(rows) if rows != sent => Err(SessionError::Unexpected(format!(
            "of {sent} rows, the server copied {rows}"
        ))),
        _ => Ok(sent),
    }
}
