//! Decides which statements can be replayed, and why others cannot.

use serde::Serialize;

use crate::entry::Bytes;
use crate::normalise::Normalised;
use crate::parameters;
use crate::statement::{Form, Statement};

/// Why a statement cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    /// Nothing proves its end, or its text shows that it was cut.
    EndUncertain,
    /// The log lacks the values of its parameters.
    ParametersAbsent,
    /// A value ends with three dots, as log_parameter_max_length leaves it.
    ParametersCut,
    /// COPY ... FROM STDIN: the rows are not in the log.
    CopyData,
    /// A function call by the fast path: its arguments are not in the log.
    FastpathCall,
    /// Its text has a NUL byte, which the protocol cannot carry.
    NulByte,
    /// Its entry is too long to be read.
    TooLong,
}

/// Returns the parameters with which to replay a statement, None for the simple protocol, or why it cannot be replayed.
pub(crate) fn parameters_of<'a>(
    statement: &Statement<'a>,
    normalised: &Normalised,
) -> Result<Option<Vec<Option<Bytes<'a>>>>, Reason> {
    if !statement.end_is_known || normalised.is_cut {
        return Err(Reason::EndUncertain);
    }
    if memchr::memchr(0, statement.text).is_some() {
        return Err(Reason::NulByte);
    }
    if is_copy_from_stdin(&normalised.text) {
        return Err(Reason::CopyData);
    }
    let is_simple = statement.form == Form::Simple;
    // In the simple protocol $1 is an error of the original, too. One that failed may have been of the other protocol.
    if normalised.highest_parameter == 0 || (is_simple && !statement.has_failed) {
        return Ok((!is_simple).then(Vec::new));
    }
    let Some(values) = parameters::read(statement.detail) else {
        return Err(Reason::ParametersAbsent);
    };
    if (values.len() as u64) < u64::from(normalised.highest_parameter) {
        return Err(Reason::ParametersAbsent);
    }
    if values
        .iter()
        .flatten()
        .any(|value| parameters::may_be_cut(value))
    {
        return Err(Reason::ParametersCut);
    }
    if values
        .iter()
        .flatten()
        .any(|value| memchr::memchr(0, value).is_some())
    {
        return Err(Reason::NulByte);
    }
    Ok(Some(values))
}

/// Returns whether a normalised text contains a statement that reads rows from the client.
fn is_copy_from_stdin(text: &[u8]) -> bool {
    text.split(|&byte| byte == b';').any(|one| {
        let one = one.trim_ascii_start();
        one.starts_with(b"copy ") && memchr::memmem::find(one, b" from stdin").is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Place;
    use crate::normalise::normalise;
    use crate::statement::SessionFacts;

    #[test]
    fn a_text_without_a_known_end_is_not_replayed() {
        let session = SessionFacts::default();
        let text = b"DELETE FROM t";
        let mut statement = statement(&session, Form::Simple, text, b"");
        assert!(parameters_of(&statement, &normalise(text)).is_ok());
        statement.end_is_known = false;
        assert_eq!(
            parameters_of(&statement, &normalise(text)),
            Err(Reason::EndUncertain)
        );
    }

    fn statement<'a>(
        session: &'a SessionFacts,
        form: Form,
        text: &'a [u8],
        detail: &'a [u8],
    ) -> Statement<'a> {
        Statement {
            session,
            start_us: 0,
            duration_us: None,
            form,
            text,
            detail,
            has_failed: false,
            sqlstate: None,
            place: Place::default(),
            end_is_known: true,
        }
    }

    fn reason_of(form: Form, text: &str, detail: &str) -> Option<Reason> {
        let session = SessionFacts::default();
        let statement = statement(&session, form, text.as_bytes(), detail.as_bytes());
        parameters_of(&statement, &normalise(text.as_bytes())).err()
    }

    #[test]
    fn reasons_are_by_what_the_log_lacks() {
        use Form::{Extended, Simple};
        let cases = [
            (Simple, "SELECT 1", "", None),
            (Extended, "SELECT $1", "parameters: $1 = '1'", None),
            (
                Extended,
                "SELECT $1, $2",
                "parameters: $1 = '1'",
                Some(Reason::ParametersAbsent),
            ),
            (Extended, "SELECT $1", "", Some(Reason::ParametersAbsent)),
            (
                Extended,
                "SELECT $1",
                "parameters: $1 = 'abc...'",
                Some(Reason::ParametersCut),
            ),
            (Extended, "SELECT '$1'", "", None),
            (Simple, "copy t (a) FROM stdin", "", Some(Reason::CopyData)),
            (
                Simple,
                "BEGIN; /* rows */ COPY t FROM STDIN WITH CSV; COMMIT",
                "",
                Some(Reason::CopyData),
            ),
            (Simple, "COPY t TO STDOUT", "", None),
            (Simple, "SELECT 'copy t from stdin'", "", None),
            (Simple, "SELECT '\0'", "", Some(Reason::NulByte)),
            (Simple, "SELECT 'a", "", Some(Reason::EndUncertain)),
            (
                Extended,
                "SELECT a FROM t WHERE (b = $1",
                "parameters: $1 = '1'",
                Some(Reason::EndUncertain),
            ),
        ];
        for (form, text, detail, expected) in cases {
            assert_eq!(reason_of(form, text, detail), expected, "{text}");
        }
    }
}
