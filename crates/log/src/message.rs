//! Reads what messages of PostgreSQL say about statements and sessions: the English texts of postgres.c, postmaster.c and
//! postinit.c.

/// What a message says.
#[derive(Debug, PartialEq)]
pub(crate) enum Said<'a> {
    /// log_statement: a statement of the simple protocol begins.
    Statement(&'a [u8]),
    /// log_statement: a portal of the extended protocol is executed.
    Execute(Executed<'a>),
    /// log_duration or log_min_duration_statement: how long something took, in microseconds.
    Duration(u64, Timed<'a>),
    /// A function call by the fast path, whose arguments are not logged.
    FastpathCall,
    /// log_connections: a process for a client has started. The client is not authenticated yet.
    ConnectionReceived,
    /// log_connections: user, database and application. Old versions do not log the application.
    ConnectionAuthorized(&'a [u8], &'a [u8], &'a [u8]),
    /// log_disconnections.
    Disconnection,
    /// log_replication_commands.
    ReplicationCommand,
    Other,
}

/// What a duration belongs to.
#[derive(Debug, PartialEq)]
pub(crate) enum Timed<'a> {
    /// The statement or step that was logged before.
    Before,
    Statement(&'a [u8]),
    Parse,
    Bind,
    Execute(Executed<'a>),
    FastpathCall,
    /// A plan of auto_explain. Its statement has an entry of its own.
    Plan,
}

/// An execution of a portal.
#[derive(Debug, PartialEq)]
pub(crate) struct Executed<'a> {
    /// Name of the prepared statement; empty if it has none.
    pub(crate) name: &'a [u8],
    pub(crate) text: &'a [u8],
    /// Whether it fetches more rows from a portal that was executed before.
    pub(crate) is_fetch: bool,
}

/// Reads the text of a message.
pub(crate) fn read(message: &[u8]) -> Said<'_> {
    if let Some(text) = message.strip_prefix(b"duration: ") {
        return duration(text).unwrap_or(Said::Other);
    }
    if let Some(text) = message.strip_prefix(b"statement: ") {
        return Said::Statement(text);
    }
    if let Some(executed) = executed(message) {
        return Said::Execute(executed);
    }
    if message.starts_with(b"connection received: ") {
        return Said::ConnectionReceived;
    }
    if let Some(text) = message.strip_prefix(b"connection authorized: ") {
        return authorized(text);
    }
    if message.starts_with(b"disconnection: ") {
        return Said::Disconnection;
    }
    if message.starts_with(b"fastpath function call: ") {
        return Said::FastpathCall;
    }
    if message.starts_with(b"received replication command: ") {
        return Said::ReplicationCommand;
    }
    Said::Other
}

/// Reads what follows "duration: ".
fn duration(text: &[u8]) -> Option<Said<'_>> {
    let length = text
        .iter()
        .take_while(|&&byte| byte.is_ascii_digit() || byte == b'.')
        .count();
    let duration_us = microseconds(&text[..length])?;
    let rest = text[length..].strip_prefix(b" ms")?;
    let timed = match rest.strip_prefix(b"  ") {
        None if rest.is_empty() => Timed::Before,
        None => return None,
        Some(rest) => {
            if let Some(text) = rest.strip_prefix(b"statement: ") {
                Timed::Statement(text)
            } else if rest.starts_with(b"parse ") {
                Timed::Parse
            } else if rest.starts_with(b"bind ") {
                Timed::Bind
            } else if let Some(executed) = executed(rest) {
                Timed::Execute(executed)
            } else if rest.starts_with(b"fastpath function call: ") {
                Timed::FastpathCall
            } else {
                Timed::Plan
            }
        }
    };
    Some(Said::Duration(duration_us, timed))
}

/// Reads milliseconds with up to three decimals.
fn microseconds(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = whole.parse().ok()?;
    let thousandths: u64 = match decimals.len() {
        0 => 0,
        digits @ 1..=3 => decimals.parse::<u64>().ok()? * 10_u64.pow(3 - digits as u32),
        _ => return None,
    };
    whole.checked_mul(1_000)?.checked_add(thousandths)
}

/// Reads `execute NAME: text`, `execute NAME/PORTAL: text` and `execute fetch from NAME/PORTAL: text`.
fn executed(message: &[u8]) -> Option<Executed<'_>> {
    let rest = message.strip_prefix(b"execute ")?;
    let (rest, is_fetch) = match rest.strip_prefix(b"fetch from ") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let colon = memchr::memmem::find(rest, b": ")?;
    let name = rest[..colon]
        .split(|&byte| byte == b'/')
        .next()
        .unwrap_or_default();
    Some(Executed {
        name: if name == b"<unnamed>" { b"" } else { name },
        text: &rest[colon + 2..],
        is_fetch,
    })
}

/// Reads what follows "connection authorized: ", as `PerformAuthentication` in postinit.c writes it: `user=U database=D`,
/// then ` application_name=A`, ` SSL enabled (...)` and ` GSS (...)`, each only if there is one. Names may hold blanks.
fn authorized(text: &[u8]) -> Said<'_> {
    let text = without_suffix(text, b" GSS (authenticated=");
    let text = without_suffix(text, b" SSL enabled (protocol=");
    let (text, application) = split(text, b" application_name=");
    let (user, database) = split(text, b" database=");
    let user = user.strip_prefix(b"user=").unwrap_or_default();
    Said::ConnectionAuthorized(user, database, application)
}

/// Removes the last part that begins with `begin`, if it ends with the text.
fn without_suffix<'a>(text: &'a [u8], begin: &[u8]) -> &'a [u8] {
    match memchr::memmem::rfind(text, begin) {
        Some(at) if text.ends_with(b")") => &text[..at],
        _ => text,
    }
}

/// Splits a text at the first `key`; without it, the second part is empty.
fn split<'a>(text: &'a [u8], key: &[u8]) -> (&'a [u8], &'a [u8]) {
    match memchr::memmem::find(text, key) {
        Some(at) => (&text[..at], &text[at + key.len()..]),
        None => (text, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execute<'a>(name: &'a str, text: &'a str, is_fetch: bool) -> Executed<'a> {
        Executed {
            name: name.as_bytes(),
            text: text.as_bytes(),
            is_fetch,
        }
    }

    #[test]
    fn messages_of_statements_are_read() {
        let cases = [
            ("statement: SELECT 1", Said::Statement(b"SELECT 1")),
            (
                "execute <unnamed>: SELECT $1",
                Said::Execute(execute("", "SELECT $1", false)),
            ),
            (
                "execute s1: SELECT ': '",
                Said::Execute(execute("s1", "SELECT ': '", false)),
            ),
            (
                "execute s1/c1: SELECT 1",
                Said::Execute(execute("s1", "SELECT 1", false)),
            ),
            (
                "execute fetch from s1/c1: SELECT 1",
                Said::Execute(execute("s1", "SELECT 1", true)),
            ),
            ("duration: 0.123 ms", Said::Duration(123, Timed::Before)),
            (
                "duration: 12 ms  statement: SELECT 1",
                Said::Duration(12_000, Timed::Statement(b"SELECT 1")),
            ),
            (
                "duration: 1.5 ms  parse s1: SELECT 1",
                Said::Duration(1_500, Timed::Parse),
            ),
            (
                "duration: 1.50 ms  bind s1: SELECT 1",
                Said::Duration(1_500, Timed::Bind),
            ),
            (
                "duration: 7.001 ms  execute <unnamed>: SELECT 1",
                Said::Duration(7_001, Timed::Execute(execute("", "SELECT 1", false))),
            ),
            (
                "duration: 7.001 ms  plan:\nQuery Text: SELECT 1",
                Said::Duration(7_001, Timed::Plan),
            ),
            (
                "duration: 7.001 ms  fastpath function call: \"lo_open\" (OID 952)",
                Said::Duration(7_001, Timed::FastpathCall),
            ),
            (
                "fastpath function call: \"lo_open\" (OID 952)",
                Said::FastpathCall,
            ),
            (
                "received replication command: IDENTIFY_SYSTEM",
                Said::ReplicationCommand,
            ),
            ("checkpoint starting: time", Said::Other),
            ("duration: x ms", Said::Other),
            ("duration: 1.2345 ms", Said::Other),
            ("duration: 99999999999999999999 ms", Said::Other),
            ("duration: 1 msx", Said::Other),
        ];
        for (message, said) in cases {
            assert_eq!(read(message.as_bytes()), said, "{message}");
        }
    }

    #[test]
    fn messages_of_sessions_are_read() {
        const TLS: &str =
            " SSL enabled (protocol=TLSv1.3, cipher=TLS_AES_256_GCM_SHA384, bits=256)";
        const GSS: &str = " GSS (authenticated=yes, encrypted=yes, delegated_credentials=no, principal=app@EXAMPLE.ORG)";
        for application in [
            "till",
            "my app",
            "app (new)",
            "x SSL enabled",
            "a=b, c",
            "GSS (x",
            "",
        ] {
            for suffix in ["", TLS, GSS, &format!("{TLS}{GSS}")] {
                let name = if application.is_empty() {
                    String::new()
                } else {
                    format!(" application_name={application}")
                };
                let message =
                    format!("connection authorized: user=an app database=the shop{name}{suffix}");
                assert_eq!(
                    read(message.as_bytes()),
                    Said::ConnectionAuthorized(b"an app", b"the shop", application.as_bytes()),
                    "{message}"
                );
            }
        }
        let ended = "disconnection: session time: 0:00:00.123 user=app database=shop host=10.0.0.7 port=51234";
        assert_eq!(read(ended.as_bytes()), Said::Disconnection);
        assert_eq!(
            read(b"connection received: host=10.0.0.7 port=51234"),
            Said::ConnectionReceived
        );
    }
}
