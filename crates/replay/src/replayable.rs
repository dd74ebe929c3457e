//! What of a log cannot be replayed, and why.

use serde::Serialize;

use crate::assemble::{Form, Statement};
use crate::normalise::Normalised;
use crate::parameters;

/// Why a statement cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    /// It has parameters, whose values the log lacks.
    ParametersAbsent,
    /// A value ends with three dots, as one that log_parameter_max_length has cut.
    ParametersCut,
    /// COPY ... FROM STDIN: the rows are not in the log.
    CopyData,
    /// A function call by the fast path: its arguments are not in the log.
    FastpathCall,
    /// A text with a NUL byte, which no protocol carries.
    NulByte,
    /// An entry longer than what is read.
    TooLong,
}

/// Says why a statement cannot be replayed; None if it can.
pub(crate) fn reason(statement: &Statement<'_>, normalised: &Normalised) -> Option<Reason> {
    if memchr::memchr(0, statement.text).is_some() {
        return Some(Reason::NulByte);
    }
    if is_copy_from_stdin(&normalised.text) {
        return Some(Reason::CopyData);
    }
    if normalised.highest_parameter == 0 {
        return None;
    }
    // In the simple protocol $1 is an error of the original, too.
    if statement.form == Form::Simple && !statement.has_failed {
        return None;
    }
    let Some(values) = parameters::read(statement.detail) else {
        return Some(Reason::ParametersAbsent);
    };
    if (values.len() as u64) < u64::from(normalised.highest_parameter) {
        return Some(Reason::ParametersAbsent);
    }
    let mut known = values.iter().flatten();
    known
        .any(|value| parameters::may_be_cut(value))
        .then_some(Reason::ParametersCut)
}

/// Whether one of the statements of a normalised text reads rows from the client.
fn is_copy_from_stdin(text: &[u8]) -> bool {
    text.split(|&byte| byte == b';').any(|one| {
        let one = one.trim_ascii_start();
        one.starts_with(b"copy ") && memchr::memmem::find(one, b" from stdin").is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::Place;
    use crate::normalise::normalise;

    fn reason_of(form: Form, text: &str, detail: &str) -> Option<Reason> {
        let statement = Statement {
            session: 0,
            start_us: 0,
            duration_us: None,
            form,
            text: text.as_bytes(),
            detail: detail.as_bytes(),
            has_failed: false,
            sqlstate: None,
            place: Place::default(),
        };
        reason(&statement, &normalise(text.as_bytes()))
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
        ];
        for (form, text, detail, expected) in cases {
            assert_eq!(reason_of(form, text, detail), expected, "{text}");
        }
    }
}
