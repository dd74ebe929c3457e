//! Parses entries of the plain log: a log_line_prefix, a severity and a message, then lines such as DETAIL.

use std::borrow::Cow;

use memchr::memchr;

use crate::entry::{Bytes, Entry, SessionKey, Severity, is_of_client, sqlstate};
use crate::prefix::Prefix;
use crate::timestamp::Zones;

/// What a record is.
#[derive(Debug)]
pub(crate) enum Parsed<'a> {
    /// The beginning of an entry.
    Message(Entry<'a>),
    /// A DETAIL, STATEMENT or the like, which belongs to the entry before it of the same session.
    Further(Further, SessionKey, Bytes<'a>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Further {
    Detail,
    Statement,
    Other,
}

const FURTHER: [(&[u8], Further); 7] = [
    (b"DETAIL", Further::Detail),
    (b"STATEMENT", Further::Statement),
    (b"HINT", Further::Other),
    (b"CONTEXT", Further::Other),
    (b"QUERY", Further::Other),
    (b"LOCATION", Further::Other),
    (b"BACKTRACE", Further::Other),
];

/// Parses a record. The reason says what is wrong with it.
pub(crate) fn parse<'a>(
    record: &'a [u8],
    prefix: &Prefix,
    zones: &mut Zones,
) -> Result<Parsed<'a>, String> {
    let is_tagged = |text: &[u8]| tagged(text).is_some();
    let (values, rest) = prefix
        .read(record, zones, is_tagged)
        .ok_or("no line of this log_line_prefix, with a severity in English behind it")?;
    let (tag, text) = tagged(rest).unwrap_or((b"", b""));
    if let Some((_, further)) = FURTHER.iter().find(|(name, _)| *name == tag) {
        return Ok(Parsed::Further(
            *further,
            values.session,
            without_indentation(text),
        ));
    }
    let is_of_code = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    // log_error_verbosity = verbose puts the code before the message.
    let (code, text) = match text.split_at_checked(7) {
        Some((code, after)) if code.ends_with(b": ") && code[..5].iter().all(is_of_code) => {
            (Some(&code[..5]), after)
        }
        _ => (None, text),
    };
    Ok(Parsed::Message(Entry {
        time_us: values.time_us.unwrap_or_default(),
        session: values.session,
        user: Cow::Borrowed(values.user),
        database: Cow::Borrowed(values.database),
        application: Cow::Borrowed(values.application),
        severity: Severity::parse(tag).unwrap_or_default(),
        sqlstate: values.sqlstate.or_else(|| code.and_then(sqlstate)),
        message: without_indentation(text),
        is_of_client: is_of_client(values.backend_type),
        ..Entry::default()
    }))
}

/// Returns the tag at the end of a text, after which `:  ` follows.
pub(crate) fn tag_before(text: &[u8]) -> Option<&[u8]> {
    let is_of_tag = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let begin = text
        .iter()
        .rposition(|byte| !is_of_tag(byte))
        .map_or(0, |at| at + 1);
    Some(&text[begin..]).filter(|tag| is_tag(tag))
}

fn is_tag(tag: &[u8]) -> bool {
    Severity::parse(tag).is_some() || FURTHER.iter().any(|(name, _)| *name == tag)
}

/// Splits `LOG:  text` at the colon, if the word before it is one of PostgreSQL's.
fn tagged(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr(b':', text.get(..text.len().min(16))?)?;
    let tag = &text[..colon];
    let text = text[colon + 1..].strip_prefix(b"  ")?;
    is_tag(tag).then_some((tag, text))
}

/// Removes the tabs that indent the continuation lines of a message.
fn without_indentation(text: &[u8]) -> Bytes<'_> {
    let Some(mut line_end) = memchr(b'\n', text) else {
        return Cow::Borrowed(text);
    };
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        plain.extend_from_slice(&rest[..=line_end]);
        rest = &rest[line_end + 1..];
        rest = rest.strip_prefix(b"\t").unwrap_or(rest);
        match memchr(b'\n', rest) {
            Some(next) => line_end = next,
            None => break,
        }
    }
    plain.extend_from_slice(rest);
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Parsed<'_>, String> {
        let prefix = Prefix::parse("%m [%p] ").unwrap();
        parse(text.as_bytes(), &prefix, &mut Zones::default())
    }

    fn message(text: &str) -> Entry<'_> {
        match parsed(text).unwrap() {
            Parsed::Message(entry) => entry,
            Parsed::Further(..) => panic!("not the beginning of an entry"),
        }
    }

    #[test]
    fn a_line_is_an_entry() {
        let entry =
            message("2026-11-27 12:41:01.123 UTC [7] LOG:  statement: SELECT 1,\n\t\t2;\n\t");
        assert_eq!(entry.session, SessionKey::Pid(7));
        assert_eq!(&*entry.message, b"statement: SELECT 1,\n\t2;\n");
    }

    #[test]
    fn further_lines_have_their_kind() {
        for (tag, kind) in [
            ("DETAIL", Further::Detail),
            ("STATEMENT", Further::Statement),
            ("HINT", Further::Other),
        ] {
            let line = format!("2026-11-27 12:41:01.123 UTC [7] {tag}:  text");
            match parsed(&line).unwrap() {
                Parsed::Further(found, _, text) => {
                    assert_eq!((found, &*text), (kind, &b"text"[..]))
                }
                Parsed::Message(_) => panic!("{tag} begins no entry"),
            }
        }
    }

    #[test]
    fn verbose_messages_begin_with_their_code() {
        let entry =
            message("2026-11-27 12:41:01.123 UTC [7] ERROR:  42P01: relation \"x\" does not exist");
        assert_eq!(
            (entry.severity, entry.sqlstate),
            (Severity::Error, Some(*b"42P01"))
        );
        assert_eq!(&*entry.message, b"relation \"x\" does not exist");
        let entry = message("2026-11-27 12:41:01.123 UTC [7] LOG:  00000: statement: SELECT 1");
        assert_eq!(
            (entry.sqlstate, &*entry.message),
            (None, &b"statement: SELECT 1"[..])
        );
    }

    #[test]
    fn other_lines_have_a_reason() {
        for text in [
            "",
            "x",
            "2026-11-27 12:41:01.123 UTC [7] PROTOKOLL:  x",
            "2026-11-27 12:41:01.123 UTC [x] LOG:  x",
        ] {
            assert!(
                parsed(text).unwrap_err().contains("log_line_prefix"),
                "{text}"
            );
        }
    }
}
