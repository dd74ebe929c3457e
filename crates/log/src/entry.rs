//! An entry of a log, in any format.

use std::borrow::Cow;

/// Bytes of the log as they are, or a copy without escapes.
pub(crate) type Bytes<'a> = Cow<'a, [u8]>;

/// A message of a server process.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Entry<'a> {
    /// Microseconds since 1970; see [`crate::timestamp`] for zones.
    pub(crate) time_us: i64,
    pub(crate) session: SessionKey,
    pub(crate) user: Bytes<'a>,
    pub(crate) database: Bytes<'a>,
    pub(crate) application: Bytes<'a>,
    pub(crate) severity: Severity,
    pub(crate) sqlstate: Option<[u8; 5]>,
    pub(crate) message: Bytes<'a>,
    pub(crate) detail: Bytes<'a>,
    /// The statement that caused an error.
    pub(crate) statement: Bytes<'a>,
    /// False for processes without a client, such as the checkpointer.
    pub(crate) is_of_client: bool,
    /// Whether the ends of its texts are proven; see [`crate::ends`].
    pub(crate) end_is_known: bool,
}

impl Entry<'_> {
    /// Copies what is borrowed.
    pub(crate) fn into_owned(self) -> Entry<'static> {
        let owned = |bytes: Bytes<'_>| Cow::Owned(bytes.into_owned());
        Entry {
            time_us: self.time_us,
            session: self.session,
            user: owned(self.user),
            database: owned(self.database),
            application: owned(self.application),
            severity: self.severity,
            sqlstate: self.sqlstate,
            message: owned(self.message),
            detail: owned(self.detail),
            statement: owned(self.statement),
            is_of_client: self.is_of_client,
            end_is_known: self.end_is_known,
        }
    }
}

/// Identifies a session within a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum SessionKey {
    /// The entry names no process.
    #[default]
    None,
    /// `%c`: start of the process in seconds since 1970, and its pid. Unique.
    Session { start_s: u64, pid: u32 },
    /// `%p` alone, which a later session may get again.
    Pid(u32),
}

impl SessionKey {
    /// Parses a session ID as in `%c`, csvlog and jsonlog: two hexadecimal numbers, `start.pid`.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (start, pid) = text.split_once('.')?;
        Some(Self::Session {
            start_s: u64::from_str_radix(start, 16).ok()?,
            pid: u32::from_str_radix(pid, 16).ok()?,
        })
    }
}

/// Where an entry begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Index of the file.
    pub(crate) file: usize,
    /// Number of the line, from 1.
    pub(crate) line: u64,
}

/// How severe a message is, as far as it matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Severity {
    /// LOG, and all that is no error: DEBUG, INFO, NOTICE, WARNING.
    #[default]
    Log,
    /// ERROR: the statement failed.
    Error,
    /// FATAL or PANIC: the session ended.
    Fatal,
}

impl Severity {
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        match text {
            b"LOG" | b"INFO" | b"NOTICE" | b"WARNING" | b"DEBUG" => Some(Self::Log),
            b"DEBUG1" | b"DEBUG2" | b"DEBUG3" | b"DEBUG4" | b"DEBUG5" => Some(Self::Log),
            b"ERROR" => Some(Self::Error),
            b"FATAL" | b"PANIC" => Some(Self::Fatal),
            _ => None,
        }
    }
}

/// Returns whether a process of this type serves a client. A log that does not name types leaves this open.
pub(crate) fn is_of_client(backend_type: &[u8]) -> bool {
    matches!(backend_type, b"" | b"client backend" | b"not initialized")
}

/// Parses a whole decimal number.
pub(crate) fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses the five characters of an SQLSTATE. Returns None for success.
pub(crate) fn sqlstate(text: &[u8]) -> Option<[u8; 5]> {
    let code: [u8; 5] = text.try_into().ok()?;
    let is_code = code.iter().all(u8::is_ascii_alphanumeric);
    (is_code && code != *b"00000").then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_two_hexadecimal_numbers() {
        let key = SessionKey::parse(b"6748a1f0.2b3c");
        let expected = SessionKey::Session {
            start_s: 0x6748_a1f0,
            pid: 0x2b3c,
        };
        assert_eq!(key, Some(expected));
        for text in ["", ".", "1", "1.", "x.1", "1.2.3"] {
            assert_eq!(SessionKey::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn success_has_no_sqlstate() {
        assert_eq!(sqlstate(b"00000"), None);
        assert_eq!(sqlstate(b"40001"), Some(*b"40001"));
        assert_eq!(sqlstate(b"4000"), None);
    }
}
