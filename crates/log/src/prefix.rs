//! log_line_prefix: its escapes, and what they stand for in a line.
//! <https://www.postgresql.org/docs/current/runtime-config-logging.html#GUC-LOG-LINE-PREFIX>

use crate::entry::{SessionKey, number, sqlstate};
use crate::timestamp::{Zones, parse_epoch, parse_time};

/// The prefixes of Debian and of PostgreSQL itself, which are tried when none is given.
pub(crate) const USUAL: [&str; 2] = ["%m [%p] %q%u@%d ", "%m [%p] "];

/// How many ways to read a line are tried: values may hold the text between escapes.
const MAX_TRIES: u32 = 1_000;
/// Longest value of an escape; names have at most 63 bytes, the others less.
const MAX_VALUE_BYTES: usize = 256;

/// A parsed log_line_prefix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prefix {
    parts: Vec<Part>,
    /// How many parts come before `%q`, where processes without a session stop.
    without_session: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(Vec<u8>),
    Escape(u8),
}

/// The values of a line.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Values<'a> {
    pub(crate) time_us: Option<i64>,
    pub(crate) session: SessionKey,
    pub(crate) user: &'a [u8],
    pub(crate) database: &'a [u8],
    pub(crate) application: &'a [u8],
    pub(crate) backend_type: &'a [u8],
    pub(crate) sqlstate: Option<[u8; 5]>,
}

impl Prefix {
    /// Parses a log_line_prefix. The reason says why no session, or no time, could be read with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut without_session = None;
        let mut literal = Vec::new();
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            if byte != b'%' {
                literal.push(byte);
                continue;
            }
            let mut escape = bytes.next();
            while matches!(escape, Some(b'-' | b'0'..=b'9')) {
                escape = bytes.next(); // a width: values are padded with blanks, which are skipped
            }
            match escape {
                None | Some(b'%') => literal.push(b'%'),
                Some(b'q') => {
                    push_text(&mut parts, &mut literal);
                    without_session = Some(parts.len());
                }
                Some(escape) if b"audrhbpPtmnsiecliQvx".contains(&escape) => {
                    push_text(&mut parts, &mut literal);
                    if matches!(parts.last(), Some(Part::Escape(before)) if is_free(*before)) {
                        return Err(format!(
                            "between an escape such as %u and %{} a text is needed that tells where the value ends",
                            char::from(escape)
                        ));
                    }
                    parts.push(Part::Escape(escape));
                }
                Some(other) => {
                    return Err(format!(
                        "%{} is no escape of log_line_prefix",
                        char::from(other)
                    ));
                }
            }
        }
        push_text(&mut parts, &mut literal);
        let has = |escapes: &[u8]| {
            parts
                .iter()
                .any(|part| matches!(part, Part::Escape(escape) if escapes.contains(escape)))
        };
        if !has(b"mtn") {
            return Err("it has no time: %m, %n or %t is needed".into());
        }
        if !has(b"pc") {
            return Err("it names no session: %c or %p is needed".into());
        }
        Ok(Self {
            parts,
            without_session,
        })
    }

    /// Matches the beginning of a line: the values, and what follows the prefix, for which `accepts` is true.
    pub(crate) fn read<'a>(
        &self,
        line: &'a [u8],
        zones: &mut Zones,
        accepts: impl Fn(&[u8]) -> bool,
    ) -> Option<(Values<'a>, &'a [u8])> {
        let ends = [Some(self.parts.len()), self.without_session];
        for end in ends.into_iter().flatten() {
            let mut found = Vec::with_capacity(end);
            let mut tries = MAX_TRIES;
            let parts = &self.parts[..end];
            if let Some(rest) = matched(parts, line, &accepts, &mut found, &mut tries) {
                return Some((values(&found, zones)?, rest));
            }
        }
        None
    }
}

fn push_text(parts: &mut Vec<Part>, literal: &mut Vec<u8>) {
    if !literal.is_empty() {
        parts.push(Part::Text(std::mem::take(literal)));
    }
}

/// Whether the value of an escape may be any text.
fn is_free(escape: u8) -> bool {
    b"audrhbi".contains(&escape)
}

/// Matches the parts against the text; the escapes that were found are in `found`, the text that follows is returned.
fn matched<'a>(
    parts: &[Part],
    text: &'a [u8],
    accepts: &impl Fn(&[u8]) -> bool,
    found: &mut Vec<(u8, &'a [u8])>,
    tries: &mut u32,
) -> Option<&'a [u8]> {
    *tries = tries.checked_sub(1)?;
    let Some((part, further)) = parts.split_first() else {
        return accepts(text).then_some(text);
    };
    match part {
        Part::Text(literal) => matched(
            further,
            text.strip_prefix(&literal[..])?,
            accepts,
            found,
            tries,
        ),
        Part::Escape(escape) if is_free(*escape) => {
            for length in 0..=text.len().min(MAX_VALUE_BYTES) {
                let is_end = match further.first() {
                    Some(Part::Text(literal)) => text[length..].starts_with(literal),
                    _ => accepts(&text[length..]),
                };
                if is_end {
                    let depth = found.len();
                    found.push((*escape, &text[..length]));
                    if let Some(rest) = matched(further, &text[length..], accepts, found, tries) {
                        return Some(rest);
                    }
                    found.truncate(depth);
                }
            }
            None
        }
        Part::Escape(escape) => {
            let padding = text.iter().take_while(|&&byte| byte == b' ').count();
            let value = &text[padding..];
            let length = structured_length(*escape, value)?;
            found.push((*escape, &value[..length]));
            let mut rest = &value[length..];
            // A value that is padded on its right is followed by more blanks than the text after it has.
            loop {
                let depth = found.len();
                if let Some(rest) = matched(further, rest, accepts, found, tries) {
                    return Some(rest);
                }
                found.truncate(depth);
                rest = rest.strip_prefix(b" ")?;
            }
        }
    }
}

/// The length of a value whose form is known.
fn structured_length(escape: u8, text: &[u8]) -> Option<usize> {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match escape {
        b'm' | b't' | b's' => Some(parse_time(text)?.length),
        b'n' => Some(parse_epoch(text)?.1),
        b'e' => text
            .get(..5)?
            .iter()
            .all(u8::is_ascii_alphanumeric)
            .then_some(5),
        b'c' => {
            let is_part = |byte: &&u8| byte.is_ascii_hexdigit() || **byte == b'.';
            let length = text.iter().take_while(is_part).count();
            SessionKey::parse(&text[..length]).map(|_| length)
        }
        b'v' => Some(
            text.iter()
                .take_while(|&&byte| byte.is_ascii_digit() || byte == b'/')
                .count(),
        ),
        b'Q' if text.first() == Some(&b'-') => Some(1 + digits(&text[1..])),
        // %P is empty without a parallel leader.
        b'P' | b'p' | b'l' | b'x' | b'Q' => Some(digits(text)),
        _ => None,
    }
}

fn values<'a>(found: &[(u8, &'a [u8])], zones: &mut Zones) -> Option<Values<'a>> {
    let mut values = Values::default();
    for &(escape, text) in found {
        let known = if text == b"[unknown]" { &b""[..] } else { text };
        match escape {
            b'm' | b't' => values.time_us = Some(zones.utc_us(&parse_time(text)?)),
            b'n' => values.time_us = Some(parse_epoch(text)?.0),
            b'c' => values.session = SessionKey::parse(text)?,
            b'p' if values.session == SessionKey::None => {
                values.session = SessionKey::Pid(number(text)?)
            }
            b'u' => values.user = known,
            b'd' => values.database = known,
            b'a' => values.application = known,
            b'b' => values.backend_type = text,
            b'e' => values.sqlstate = sqlstate(text),
            _ => {}
        }
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_log(text: &[u8]) -> bool {
        text.starts_with(b"LOG:  ")
    }

    fn read<'a>(prefix: &str, line: &'a str) -> Option<(Values<'a>, &'a [u8])> {
        Prefix::parse(prefix)
            .unwrap()
            .read(line.as_bytes(), &mut Zones::default(), is_log)
    }

    #[test]
    fn usual_prefixes_are_read() {
        let line = "2026-11-27 12:41:01.123 UTC [11068] app@shop LOG:  statement: SELECT 1";
        let (values, rest) = read(USUAL[0], line).unwrap();
        assert_eq!(values.time_us, Some(1_795_783_261_123_000));
        assert_eq!(values.session, SessionKey::Pid(11068));
        assert_eq!((values.user, values.database), (&b"app"[..], &b"shop"[..]));
        assert_eq!(rest, b"LOG:  statement: SELECT 1");
        let line = "2026-11-27 12:41:01.123 UTC [1] LOG:  checkpoint starting: time";
        assert!(
            read(USUAL[0], line).is_some(),
            "a process without a session stops at %q"
        );
        assert!(read(USUAL[1], line).is_some());
    }

    #[test]
    fn every_escape_is_read() {
        let prefix = "%n %c %l %-8p|%5e %v %x %Q %P<%a/%u/%d/%r/%h/%b/%i> %s %% ";
        let line = "1732707661.123 6748a1f0.2b3c 7 11068   |00000 3/7 0 -42 <psql - 1/app/shop/10.0.0.7(51)/10.0.0.7/client backend/SELECT> 2026-11-27 12:41:00 UTC % LOG:  x";
        let (values, _) = read(prefix, line).unwrap();
        assert_eq!(values.session, SessionKey::parse(b"6748a1f0.2b3c").unwrap());
        assert_eq!(values.application, b"psql - 1");
        assert_eq!(values.backend_type, b"client backend");
    }

    #[test]
    fn values_may_hold_the_text_between_escapes() {
        let (values, _) = read(
            "%m %p %u@%d ",
            "2026-11-27 12:41:01.1 UTC 7 a@b@c d LOG:  x",
        )
        .unwrap();
        assert_eq!(values.user, b"a");
        assert_eq!(values.database, b"b@c d");
        assert!(read("%m %p %u@%d ", "2026-11-27 12:41:01.1 UTC 7 a LOG:  x").is_none());
    }

    #[test]
    fn a_line_made_to_be_slow_ends() {
        let line = format!("2026-11-27 12:41:01.1 UTC 7 {}", "@".repeat(250));
        assert!(read("%m %p %u@%d@%a@%h@%i@", &line).is_none());
    }

    #[test]
    fn prefixes_that_do_not_suffice_have_a_reason() {
        for (prefix, reason) in [
            ("", "no time"),
            ("%m ", "names no session"),
            ("%p ", "no time"),
            ("%m %p %u%d ", "between an escape"),
            ("%m %p %z ", "%z is no escape"),
        ] {
            let error = Prefix::parse(prefix).unwrap_err();
            assert!(error.contains(reason), "{prefix}: {error}");
        }
    }
}
