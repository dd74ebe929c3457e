//! The fields of `ErrorResponse`.

use std::fmt;

/// What the server says when something went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerError {
    /// `ERROR`, `FATAL` or `PANIC`, never translated; empty when the server did not say.
    pub severity: String,
    /// Five characters, such as `40001`; empty when the server did not say.
    pub sqlstate: String,
    /// The primary message, in the server's language.
    pub message: String,
    /// Further words of the server on the cause.
    pub detail: Option<String>,
    /// What the server suggests.
    pub hint: Option<String>,
}

impl ServerError {
    /// Reads the body of an `ErrorResponse`. What is missing or cut off stays empty: an error that is
    /// hard to read must not hide that there was one.
    #[must_use]
    pub fn parse(body: &[u8]) -> Self {
        let mut error = Self::default();
        for field in body.split(|&byte| byte == 0) {
            let Some((kind, value)) = field.split_first() else {
                continue;
            };
            let text = || String::from_utf8_lossy(value).into_owned();
            match kind {
                // 'V' is 'S' untranslated, and comes after it.
                b'S' | b'V' => error.severity = text(),
                b'C' => error.sqlstate = text(),
                b'M' => error.message = text(),
                b'D' => error.detail = Some(text()),
                b'H' => error.hint = Some(text()),
                _ => {}
            }
        }
        error
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
    fn a_cut_body_keeps_what_came() {
        let error = ServerError::parse(b"SERROR\0C40001\0Mcould not ser");
        assert_eq!(
            (error.sqlstate.as_str(), error.message.as_str()),
            ("40001", "could not ser")
        );
        assert_eq!(ServerError::parse(b""), ServerError::default());
    }
}
