//! Entries of jsonlog (PostgreSQL 15 and later): one JSON object a line, with the keys of
//! <https://www.postgresql.org/docs/current/runtime-config-logging.html#RUNTIME-CONFIG-LOGGING-JSONLOG>.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use crate::ends::is_json_of_server;
use crate::entry::{Bytes, Entry, SessionKey, Severity, is_of_client, sqlstate};
use crate::timestamp::{Zones, parse_time};

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    timestamp: Text<'a>,
    #[serde(borrow, default)]
    user: Text<'a>,
    #[serde(borrow, default)]
    dbname: Text<'a>,
    #[serde(borrow, default)]
    session_id: Text<'a>,
    #[serde(borrow, default)]
    error_severity: Text<'a>,
    #[serde(borrow, default)]
    state_code: Text<'a>,
    #[serde(borrow, default)]
    message: Text<'a>,
    #[serde(borrow, default)]
    detail: Text<'a>,
    #[serde(borrow, default)]
    statement: Text<'a>,
    #[serde(borrow, default)]
    application_name: Text<'a>,
    #[serde(borrow, default)]
    backend_type: Text<'a>,
}

/// A string in any encoding: PostgreSQL writes bytes above 127 as they are.
#[derive(Default)]
struct Text<'a>(Bytes<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(bytes)))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(bytes.to_vec())))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        self.visit_borrowed_bytes(text.as_bytes())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        self.visit_bytes(text.as_bytes())
    }
}

/// Parses a line. The reason says what is wrong with it.
pub(crate) fn parse<'a>(line: &'a [u8], zones: &mut Zones) -> Result<Entry<'a>, String> {
    let end_is_known = is_json_of_server(line);
    let line: Line<'a> = serde_json::from_slice(line).map_err(|error| {
        let text = error.to_string();
        let reason = text.split(" at line ").next().unwrap_or_default();
        format!("no line of jsonlog: {reason}")
    })?;
    let time = parse_time(&line.timestamp.0).ok_or("no line of jsonlog: timestamp is no time")?;
    Ok(Entry {
        time_us: zones.utc_us(&time),
        session: SessionKey::parse(&line.session_id.0)
            .ok_or("no line of jsonlog: session_id is none")?,
        user: line.user.0,
        database: line.dbname.0,
        application: line.application_name.0,
        severity: Severity::parse(&line.error_severity.0).unwrap_or_default(),
        sqlstate: sqlstate(&line.state_code.0),
        message: line.message.0,
        detail: line.detail.0,
        statement: line.statement.0,
        is_of_client: is_of_client(&line.backend_type.0),
        end_is_known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"timestamp":"2026-11-27 12:41:01.123 UTC","user":"app","dbname":"shop","pid":11068,"remote_host":"10.0.0.7","remote_port":51234,"session_id":"6748a1f0.2b3c","line_num":3,"ps":"SELECT","session_start":"2026-11-27 12:41:00 UTC","vxid":"3/7","txid":0,"error_severity":"LOG","message":"execute <unnamed>: SELECT \"a\"\n$1","detail":"Parameters: $1 = '1'","application_name":"till","backend_type":"client backend","query_id":0}"#;

    #[test]
    fn a_line_is_an_entry() {
        let entry = parse(LINE.as_bytes(), &mut Zones::default()).unwrap();
        assert_eq!(entry.time_us, 1_795_783_261_123_000);
        assert_eq!(entry.session, SessionKey::parse(b"6748a1f0.2b3c").unwrap());
        assert_eq!(
            (&*entry.user, &*entry.database, &*entry.application),
            (&b"app"[..], &b"shop"[..], &b"till"[..])
        );
        assert_eq!(&*entry.message, b"execute <unnamed>: SELECT \"a\"\n$1");
        assert_eq!(&*entry.detail, b"Parameters: $1 = '1'");
        assert!(entry.is_of_client);
    }

    #[test]
    fn the_end_is_known_of_what_the_server_has_written() {
        let server = r#"{"timestamp":"2026-11-27 12:41:01.123 UTC","session_id":"1.7"}"#;
        for (line, is_known) in [
            (server.to_owned(), true),
            (server.replace(":\"2026", ": \"2026"), false),
            (server.replace('{', r#"{"log":"1","#), false),
            (server.replace('{', r#" {"#), false),
        ] {
            let entry = parse(line.as_bytes(), &mut Zones::default()).unwrap();
            assert_eq!(entry.end_is_known, is_known, "{line}");
        }
    }

    #[test]
    fn bytes_of_other_encodings_stay_as_they_are() {
        let mut line =
            br#"{"timestamp":"2026-11-27 12:41:01.123 UTC","session_id":"1.7","message":"statement: SELECT 'X'"}"#
                .to_vec();
        let place = line.iter().position(|&byte| byte == b'X').unwrap();
        line[place] = 0xe4;
        let entry = parse(&line, &mut Zones::default()).unwrap();
        assert_eq!(&*entry.message, b"statement: SELECT '\xe4'");
    }

    #[test]
    fn errors_have_a_code_and_their_statement() {
        let line = br#"{"timestamp":"2026-11-27 12:41:01.123 UTC","session_id":"1.7","error_severity":"ERROR","state_code":"23505","message":"duplicate","statement":"INSERT"}"#;
        let entry = parse(line, &mut Zones::default()).unwrap();
        assert_eq!(
            (entry.severity, entry.sqlstate),
            (Severity::Error, Some(*b"23505"))
        );
        assert_eq!(&*entry.statement, b"INSERT");
    }

    #[test]
    fn what_is_no_jsonlog_has_a_reason() {
        for (line, reason) in [
            ("x", "expected value"),
            ("{}", "missing field `timestamp`"),
            (r#"{"timestamp":"yesterday"}"#, "timestamp is no time"),
            (r#"{"timestamp":7}"#, "invalid type"),
            (
                r#"{"timestamp":"2026-11-27 12:41:01.123 UTC"}"#,
                "session_id is none",
            ),
        ] {
            let error = parse(line.as_bytes(), &mut Zones::default()).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
}
