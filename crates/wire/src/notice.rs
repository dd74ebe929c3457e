//! The fields of `ErrorResponse` and `NoticeResponse`.

use std::fmt;

use crate::cursor;

/// An error reported by the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerError {
    /// `ERROR`, `FATAL` or `PANIC`, never translated; empty when missing.
    pub severity: String,
    /// Five characters, such as `40001`; empty when missing.
    pub sqlstate: String,
    /// The primary message, in the server's language.
    pub message: String,
    /// Details about the cause.
    pub detail: Option<String>,
    /// A suggestion what to do about it.
    pub hint: Option<String>,
    /// The position in the statement, in characters from 1.
    pub position: Option<usize>,
    /// An internally generated statement that failed, and the position in it.
    pub internal_query: Option<String>,
    /// See `internal_query`.
    pub internal_position: Option<usize>,
    /// The context of the error: the call stack, outermost call last.
    pub context: Option<String>,
    /// The function of the server's source that reported it, never translated.
    pub routine: Option<String>,
}

impl ServerError {
    /// Reads the body of an `ErrorResponse`, or of a `NoticeResponse`, which has the same fields. Fields that are missing or truncated stay empty: a malformed error must
    /// not hide that there was one.
    #[must_use]
    pub fn parse(body: &[u8]) -> Self {
        let mut error = Self::default();
        for field in body.split(|&byte| byte == 0) {
            let Some((kind, value)) = field.split_first() else {
                continue;
            };
            let text = || String::from_utf8_lossy(value).into_owned();
            match kind {
                // 'V' is 'S' without translation, and follows it.
                b'S' | b'V' => error.severity = text(),
                b'C' => error.sqlstate = text(),
                b'M' => error.message = text(),
                b'D' => error.detail = Some(text()),
                b'H' => error.hint = Some(text()),
                b'P' => error.position = text().parse().ok(),
                b'q' => error.internal_query = Some(text()),
                b'p' => error.internal_position = text().parse().ok(),
                b'W' => error.context = Some(text()),
                b'R' => error.routine = Some(text()),
                _ => {}
            }
        }
        error
    }

    /// The whole error in several lines, as psql and pgbench print it. `statement` is the text that was sent, if the
    /// position in it is to be shown.
    #[must_use]
    pub fn in_full(&self, statement: Option<&str>) -> String {
        let mut text = format!("{}:  {}", self.severity, self.message);
        let place = match self.position {
            Some(position) => Some((statement, position)),
            None => self
                .internal_position
                .map(|position| (self.internal_query.as_deref(), position)),
        };
        match place {
            Some((Some(query), position)) => text.extend(cursor::lines(query, position)),
            Some((None, position)) => text.push_str(&format!(" at character {position}")),
            None => {}
        }
        for (label, part) in [
            ("DETAIL", &self.detail),
            ("HINT", &self.hint),
            ("QUERY", &self.internal_query),
            ("CONTEXT", &self.context),
        ] {
            if let Some(part) = part {
                text.push_str(&format!("\n{label}:  {part}"));
            }
        }
        text
    }

    /// Whether it is the warning that the transaction has committed here, and that the wait for a standby was ended before that
    /// had confirmed it (`src/backend/replication/syncrep.c`): by a cancel, or by the end of the session.
    #[must_use]
    pub fn is_synchronous_wait_cancelled(&self) -> bool {
        self.severity == "WARNING" && self.routine.as_deref() == Some("SyncRepWaitForLSN")
    }

    /// Whether the server ends the session after this.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, self.message)?;
        if !self.sqlstate.is_empty() {
            write!(f, " (SQLSTATE {})", self.sqlstate)?;
        }
        for (label, text) in [("detail", &self.detail), ("hint", &self.hint)] {
            if let Some(text) = text {
                write!(f, "; {label}: {text}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_the_untranslated_severity_wins() {
        let error = ServerError::parse(
            b"SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0Fproc.c\0\0",
        );
        assert!(error.is_fatal());
        assert_eq!(
            error.to_string(),
            "FATAL: sorry, too many clients already (SQLSTATE 53300)"
        );
        assert_eq!(ServerError::parse(b"SFEHLER\0VERROR\0").severity, "ERROR");
    }

    #[test]
    fn in_full_it_is_as_libpq_shows_it() {
        let table: [(&[u8], Option<&str>, &str); 5] = [
            (
                b"SERROR\0C42703\0Mno column\0P8\0HTry.\0DBad.\0WSQL function \"f\"\0\0",
                Some("select nosuch;"),
                "ERROR:  no column\nLINE 1: select nosuch;\n               ^\nDETAIL:  Bad.\nHINT:  Try.\nCONTEXT:  SQL function \"f\"",
            ),
            (
                b"SERROR\0C42703\0Mno column\0P8\0\0",
                None,
                "ERROR:  no column at character 8",
            ),
            (
                b"SERROR\0C42703\0Mno column\0p8\0qselect nosuch\0WPL/pgSQL function f() line 1\0\0",
                Some("select f();"),
                "ERROR:  no column\nLINE 1: select nosuch\n               ^\nQUERY:  select nosuch\nCONTEXT:  PL/pgSQL function f() line 1",
            ),
            (b"SERROR\0Mbad\0P99\0\0", Some("select 1"), "ERROR:  bad"),
            (b"SFATAL\0Mbye\0\0", Some("select 1"), "FATAL:  bye"),
        ];
        for (body, statement, shown) in table {
            assert_eq!(ServerError::parse(body).in_full(statement), shown);
        }
    }

    #[test]
    fn a_cut_body_keeps_what_came() {
        let error = ServerError::parse(b"SERROR\0C40001\0Mcould not ser");
        assert_eq!(
            (error.sqlstate.as_str(), error.message.as_str()),
            ("40001", "could not ser")
        );
        assert_eq!(ServerError::parse(b""), ServerError::default());
    }
}
