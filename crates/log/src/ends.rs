//! Decides whether the end of an entry is proven. A statement is replayed only if it is: a statement that lost its WHERE clause on
//! the way looks like any other. Only the signs below, in the form in which the server writes them, prove an end.
//!
//! **jsonlog.** The line begins as the server begins it and is one JSON object, whose closing brace is the end. If other keys come
//! first, another program has written the line and may have cut it.
//!
//! **csvlog.** The record has the columns of a PostgreSQL version, its texts are quoted, and a line end follows it. No line inside its
//! quotes begins like a record: that line would be the next record, after one that was cut.
//!
//! **stderr.** All of these hold:
//! - The next line of the file begins with log_line_prefix and a severity. The end of the last entry of a file is therefore unknown:
//!   the rest may be in another file or not written yet. Messages that always take one line, such as `duration: 1.2 ms`, need no
//!   next line.
//! - Each line in between begins with a tab. Any other line, even an empty one, may belong to the entry before it, so that the end of
//!   that entry is unknown.
//! - Its lines end as all lines of the file do: with LF, or with CR LF as on Windows.
//! - No line contains a second time and severity. Such a line was written by two processes at once.
//! - No line has exactly the length at which a common log collector cuts lines.
//! - If the file has no tabs, the entry does not begin while a string, a quoted name or a comment of the statement before it is open:
//!   once tabs are removed, a line of a string can look like an entry.
//! - Continuation lines were not removed from the file, as grep does: either its beginning contains one, or no text in its beginning
//!   is cut. The loss of a single line leaves no trace.
//!
//! In all formats, the text itself can show that it was cut ([`crate::normalise::Normalised::is_cut`]). If it does not, that proves
//! nothing.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use crate::entry::Bytes;
use crate::message::{self, Said, Timed};
use crate::stderr::tag_before;
use crate::timestamp::{parse_epoch, parse_time};

/// Line lengths at which collectors cut, with and without the line end: RFC 3164, rsyslog, GELF, containerd and Docker,
/// journald, syslog-ng, CloudWatch, and powers of two between.
const CUT_AT_BYTES: [usize; 14] = [
    1_024, 2_048, 4_096, 8_096, 8_192, 16_384, 32_768, 49_152, 65_536, 131_072, 262_118, 262_144,
    524_288, 1_048_576,
];
/// The largest distance between the time of an entry and its severity.
const MAX_PREFIX_BYTES: usize = 512;

/// Returns whether a line of jsonlog begins as the server begins it.
pub(crate) fn is_json_of_server(line: &[u8]) -> bool {
    line.starts_with(b"{\"timestamp\":\"")
}

/// Returns whether any line of a csvlog record after the first begins like a record.
pub(crate) fn has_second_record(record: &[u8]) -> bool {
    memchr_iter(b'\n', record).any(|at| {
        let line = &record[at + 1..];
        parse_time(line).is_some_and(|time| line.get(time.length) == Some(&b','))
    })
}

/// Removes the carriage returns from a record of a file with CR LF line ends. Also returns whether all of its lines had one.
pub(crate) fn without_carriage_returns(record: &[u8]) -> (Bytes<'_>, bool) {
    if memchr(b'\n', record).is_none() {
        return (Cow::Borrowed(record), true);
    }
    let mut plain = Vec::with_capacity(record.len());
    let mut are_all = true;
    for line in record.split_inclusive(|&byte| byte == b'\n') {
        match line {
            [text @ .., b'\r', b'\n'] => {
                plain.extend_from_slice(text);
                plain.push(b'\n');
            }
            _ => {
                are_all &= line.last() != Some(&b'\n');
                plain.extend_from_slice(line);
            }
        }
    }
    (Cow::Owned(plain), are_all)
}

/// Returns whether a plain-log entry may be cut, or may contain a second entry.
pub(crate) fn is_doubtful(record: &[u8]) -> bool {
    let is_of_that_length = |length: usize| {
        let with_its_end = length + 1;
        with_its_end >= CUT_AT_BYTES[0]
            && (CUT_AT_BYTES.contains(&length) || CUT_AT_BYTES.contains(&with_its_end))
    };
    let mut begin = 0;
    let has_that_length = memchr_iter(b'\n', record)
        .chain([record.len()])
        .any(|end| is_of_that_length(end - std::mem::replace(&mut begin, end + 1)));
    has_that_length || has_second_entry(record)
}

/// Returns whether a time and a severity follow the entry's own severity.
fn has_second_entry(record: &[u8]) -> bool {
    let mut own_end = None;
    for at in memchr_iter(b':', record) {
        if !record[at + 1..].starts_with(b"  ") {
            continue;
        }
        let Some(tag) = tag_before(&record[..at]) else {
            continue;
        };
        let Some(from) = own_end.replace(at) else {
            continue;
        };
        // Go back no further than the severity before, so that each byte is read once.
        let before = &record[from.max(at.saturating_sub(MAX_PREFIX_BYTES))..at - tag.len()];
        let mut last = None;
        for (place, &byte) in before.iter().enumerate() {
            let is_first_digit = byte.is_ascii_digit()
                && !last.replace(byte).is_some_and(|byte| byte.is_ascii_digit());
            let text = &before[place..];
            if is_first_digit && (parse_time(text).is_some() || parse_epoch(text).is_some()) {
                return true;
            }
            last = Some(byte);
        }
    }
    false
}

/// Returns the text of the statement that a message logs.
pub(crate) fn statement_of(message: &[u8]) -> Option<&[u8]> {
    match message::read(message) {
        Said::Statement(text) | Said::Duration(_, Timed::Statement(text)) => Some(text),
        Said::Execute(executed) | Said::Duration(_, Timed::Execute(executed)) => {
            Some(executed.text)
        }
        _ => None,
    }
}

/// Returns whether this kind of message always takes one line.
pub(crate) fn is_of_one_line(message: &[u8]) -> bool {
    matches!(
        message::read(message),
        Said::Duration(_, Timed::Before)
            | Said::ConnectionReceived
            | Said::ConnectionAuthorized(..)
            | Said::Disconnection
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriage_returns_before_line_ends_go_one_a_line() {
        for (text, plain, are_all) in [
            ("a", "a", true),
            ("a\r\n\tb", "a\n\tb", true),
            ("a\r\r\n\tb\r", "a\r\n\tb\r", true),
            ("a\n\tb", "a\n\tb", false),
        ] {
            let (found, all) = without_carriage_returns(text.as_bytes());
            assert_eq!((&*found, all), (plain.as_bytes(), are_all), "{text:?}");
        }
    }

    #[test]
    fn lines_of_certain_lengths_and_second_entries_are_doubtful() {
        let line = |length: usize| {
            let beginning = "2026-11-27 12:00:00.000 UTC [7] LOG:  statement: ";
            format!("{beginning}{}", "x".repeat(length - beginning.len()))
        };
        for (text, expected) in [
            (line(100), false),
            (line(1_022), false),
            (line(1_023), true),
            (line(1_024), true),
            (line(1_025), false),
            (format!("{}\n\t{}", line(100), "x".repeat(8_191)), true),
            (format!("{}ERROR:  x", line(100)), false),
            (format!("{}\n\tLOG:  x: LOG:  x", line(100)), false),
            (
                format!("{}2026-11-27 12:00:00.000 UTC [8] LOG:  x", line(100)),
                true,
            ),
            (format!("{}1795783261.123 [8] DETAIL:  x", line(100)), true),
        ] {
            assert_eq!(is_doubtful(text.as_bytes()), expected, "{text}");
        }
    }

    /// Each byte is read once even if there are many severities without a time.
    #[test]
    fn a_line_made_to_be_slow_ends() {
        is_doubtful("1LOG:  ".repeat(1 << 20).as_bytes());
    }
}
