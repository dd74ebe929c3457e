//! Entries of csvlog, with the columns of
//! <https://www.postgresql.org/docs/current/runtime-config-logging.html#RUNTIME-CONFIG-LOGGING-CSVLOG>: 23 up to PostgreSQL
//! 12, 24 in 13, 26 from 14.

use std::borrow::Cow;

use memchr::memchr;

use crate::ends::has_second_record;
use crate::entry::{Bytes, Entry, SessionKey, Severity, is_of_client, sqlstate};
use crate::timestamp::{Zones, parse_time};

const COLUMNS: [usize; 3] = [23, 24, 26];

const LOG_TIME: usize = 0;
const USER_NAME: usize = 1;
const DATABASE_NAME: usize = 2;
const SESSION_ID: usize = 5;
const ERROR_SEVERITY: usize = 11;
const SQL_STATE_CODE: usize = 12;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;
const QUERY: usize = 19;
const APPLICATION_NAME: usize = 22;
const BACKEND_TYPE: usize = 23;

/// Parses a record. The reason says what is wrong with it.
pub(crate) fn parse<'a>(record: &'a [u8], zones: &mut Zones) -> Result<Entry<'a>, String> {
    let mut fields: [Bytes<'a>; 26] = std::array::from_fn(|_| Cow::Borrowed(&b""[..]));
    let (count, quoted) = split(record, &mut fields)?;
    if !COLUMNS.contains(&count) {
        return Err(format!("no record of csvlog: {count} columns"));
    }
    let time = parse_time(&fields[LOG_TIME]).ok_or("no record of csvlog: log_time is no time")?;
    let time_us = zones.utc_us(&time);
    let are_texts_quoted = [MESSAGE, DETAIL, QUERY]
        .iter()
        .all(|&column| fields[column].is_empty() || quoted & (1 << column) != 0);
    let mut take = |column: usize| std::mem::take(&mut fields[column]);
    Ok(Entry {
        time_us,
        session: SessionKey::parse(&take(SESSION_ID))
            .ok_or("no record of csvlog: session_id is none")?,
        user: take(USER_NAME),
        database: take(DATABASE_NAME),
        application: take(APPLICATION_NAME),
        severity: Severity::parse(&take(ERROR_SEVERITY)).unwrap_or_default(),
        sqlstate: sqlstate(&take(SQL_STATE_CODE)),
        message: take(MESSAGE),
        detail: take(DETAIL),
        statement: take(QUERY),
        is_of_client: is_of_client(&take(BACKEND_TYPE)),
        end_is_known: are_texts_quoted && !has_second_record(record),
    })
}

/// Splits a record at its commas, and returns how many fields it has, and which are in quotes, by bits.
fn split<'a>(record: &'a [u8], fields: &mut [Bytes<'a>; 26]) -> Result<(usize, u32), String> {
    let mut rest = record;
    let mut are_quoted = 0;
    for (count, field) in fields.iter_mut().enumerate() {
        let (value, length) = match rest.first() {
            Some(b'"') => {
                are_quoted |= 1 << count;
                quoted(&rest[1..]).ok_or("no record of csvlog: a quotation mark is missing")?
            }
            _ => {
                let length = memchr(b',', rest).unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..length]), length)
            }
        };
        *field = value;
        rest = &rest[length..];
        match rest.split_first() {
            None => return Ok((count + 1, are_quoted)),
            Some((b',', further)) => rest = further,
            Some(_) => return Err("no record of csvlog: text after a quotation mark".into()),
        }
    }
    Err("no record of csvlog: more than 26 columns".into())
}

/// Reads a field after its opening quotation mark: the value, and the length with both marks.
fn quoted(text: &[u8]) -> Option<(Bytes<'_>, usize)> {
    let first = memchr(b'"', text)?;
    if text.get(first + 1) != Some(&b'"') {
        return Some((Cow::Borrowed(&text[..first]), first + 2));
    }
    let mut value = Vec::with_capacity(text.len().min(4 * first + 64));
    let mut at = 0;
    loop {
        let mark = at + memchr(b'"', &text[at..])?;
        value.extend_from_slice(&text[at..mark]);
        if text.get(mark + 1) != Some(&b'"') {
            return Some((Cow::Owned(value), mark + 2));
        }
        value.push(b'"');
        at = mark + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(columns: usize, message: &str) -> String {
        let mut fields = vec![String::new(); columns];
        fields[LOG_TIME] = "2026-11-27 12:41:01.123 UTC".into();
        fields[USER_NAME] = "\"app\"".into();
        fields[DATABASE_NAME] = "\"shop\"".into();
        fields[SESSION_ID] = "6748a1f0.2b3c".into();
        fields[ERROR_SEVERITY] = "LOG".into();
        fields[SQL_STATE_CODE] = "00000".into();
        fields[MESSAGE] = message.into();
        fields[APPLICATION_NAME] = "\"till\"".into();
        if columns > BACKEND_TYPE {
            fields[BACKEND_TYPE] = "\"client backend\"".into();
        }
        fields.join(",")
    }

    #[test]
    fn records_of_every_version_are_entries() {
        for columns in COLUMNS {
            let text = record(columns, "\"statement: SELECT \"\"a\"\",\n1\"");
            let entry = parse(text.as_bytes(), &mut Zones::default()).unwrap();
            assert_eq!(&*entry.message, b"statement: SELECT \"a\",\n1");
            assert_eq!(
                (&*entry.user, &*entry.application),
                (&b"app"[..], &b"till"[..])
            );
            assert_eq!(entry.time_us, 1_795_783_261_123_000);
            assert_eq!(entry.sqlstate, None);
            assert!(entry.is_of_client);
        }
    }

    #[test]
    fn the_end_is_known_of_what_is_in_quotes() {
        for (message, is_known) in [
            ("\"statement: SELECT 1,\n2\"", true),
            ("", true),
            ("statement: SELECT 1", false),
            (
                "\"statement: SELECT '\n2026-11-27 12:41:02.123 UTC,,'\"",
                false,
            ),
            (
                "\"statement: SELECT '\n2026-11-27 12:41:02.123 UTC'\"",
                true,
            ),
        ] {
            let text = record(26, message);
            let entry = parse(text.as_bytes(), &mut Zones::default()).unwrap();
            assert_eq!(entry.end_is_known, is_known, "{message}");
        }
    }

    #[test]
    fn what_is_no_csvlog_has_a_reason() {
        for (text, reason) in [
            ("a,b", "2 columns"),
            (&record(25, ""), "25 columns"),
            (&record(30, ""), "more than 26 columns"),
            (
                "2026-11-27 12:41:01.123 UTC,\"a",
                "a quotation mark is missing",
            ),
            (&record(26, "\"a\"b"), "text after a quotation mark"),
            (&record(26, "").replace("2026", "x"), "log_time is no time"),
        ] {
            let error = parse(text.as_bytes(), &mut Zones::default()).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
