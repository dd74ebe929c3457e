//! Whether a session is of the kind that `target_session_attrs` asks for, by libpq's rules.

use plinth_wire::{Scanner, ServerError, Session, StartupError, frontend};

use crate::target::SessionAttrs;

/// More than the answer to one of our questions can have.
const LONGEST_ANSWER_BYTES: usize = 64 * 1024;

/// A session in question.
#[derive(Debug)]
pub(crate) struct Check {
    /// `None` once it has been handed on.
    session: Option<Session>,
    question: Option<Question>,
    /// The server's reply to the query.
    answer: Vec<u8>,
}

/// The reason why a session is not accepted.
#[derive(Debug)]
pub(crate) enum CheckError {
    /// The session is of this kind instead.
    Otherwise(&'static str),
    /// The server did not report it.
    Broken(StartupError),
}

/// The facts needed of a session.
#[derive(Debug, Clone, Copy)]
struct Question {
    fact: Fact,
    /// The required value.
    wanted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fact {
    /// Whether transactions are read-only if nothing is said.
    ReadOnly,
    /// Whether the server is in recovery.
    Recovery,
}

impl Question {
    fn of(wanted: SessionAttrs) -> Option<Self> {
        let (fact, wanted) = match wanted {
            SessionAttrs::Any => return None,
            SessionAttrs::ReadWrite => (Fact::ReadOnly, false),
            SessionAttrs::ReadOnly => (Fact::ReadOnly, true),
            SessionAttrs::Primary => (Fact::Recovery, false),
            SessionAttrs::Standby | SessionAttrs::PreferStandby => (Fact::Recovery, true),
        };
        Some(Self { fact, wanted })
    }

    /// The parameters that servers from 14 on have already reported.
    fn reported(self, session: &Session) -> Option<bool> {
        let is_on = |name| session.parameter(name).map(|value| value == "on");
        let in_hot_standby = is_on("in_hot_standby")?;
        match self.fact {
            Fact::ReadOnly => Some(in_hot_standby || is_on("default_transaction_read_only")?),
            Fact::Recovery => Some(in_hot_standby),
        }
    }

    fn sql(self) -> &'static str {
        match self.fact {
            Fact::ReadOnly => "SHOW transaction_read_only",
            Fact::Recovery => "SELECT pg_catalog.pg_is_in_recovery()",
        }
    }

    fn judge(self, is_so: bool) -> Result<(), CheckError> {
        if is_so == self.wanted {
            return Ok(());
        }
        Err(CheckError::Otherwise(match (self.fact, is_so) {
            (Fact::ReadOnly, true) => "the session is read-only",
            (Fact::ReadOnly, false) => "the session is not read-only",
            (Fact::Recovery, true) => "the server is in hot standby",
            (Fact::Recovery, false) => "the server is not in hot standby",
        }))
    }
}

impl Check {
    /// Begins the check; appends to `out` what has to be asked.
    pub(crate) fn new(wanted: SessionAttrs, session: Session, out: &mut Vec<u8>) -> Self {
        let question = Question::of(wanted);
        if let Some(question) = question
            && question.reported(&session).is_none()
            && let Ok(query) = frontend::query(question.sql())
        {
            out.extend(query);
        }
        Self {
            session: Some(session),
            question,
            answer: Vec::new(),
        }
    }

    /// Takes bytes of the answer.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.answer.extend_from_slice(bytes);
    }

    /// The session, if it will do; `None` when the answer is not whole yet.
    pub(crate) fn conclude(&mut self) -> Result<Option<Session>, CheckError> {
        if let (Some(question), Some(session)) = (self.question, &self.session) {
            let known = match question.reported(session) {
                Some(known) => Some(known),
                None => read_answer(&self.answer).map_err(CheckError::Broken)?,
            };
            let Some(is_so) = known else { return Ok(None) };
            question.judge(is_so)?;
        }
        Ok(self.session.take())
    }
}

/// The one value of an answer; `None` when it is not whole yet.
fn read_answer(mut answer: &[u8]) -> Result<Option<bool>, StartupError> {
    let is_too_long = answer.len() > LONGEST_ANSWER_BYTES;
    let mut scanner = Scanner::new();
    let mut value = None;
    while let Some(frame) = scanner.next(&mut answer)? {
        match frame.tag {
            // One column: its number, its length, its text.
            b'D' => value = frame.body.get(6..).map(|text| matches!(text, b"on" | b"t")),
            b'E' => {
                let error = ServerError::parse(frame.body);
                return Err(StartupError::Server(Box::new(error)));
            }
            b'Z' => return value.map(Some).ok_or(StartupError::Unexpected(b'Z')),
            _ => {}
        }
    }
    if is_too_long {
        return Err(StartupError::Unexpected(b'D'));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(reported: &[(&str, &str)]) -> Session {
        let parameters = reported
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Session {
            parameters,
            ..Session::default()
        }
    }

    /// Whether the session is taken, after `answer` when the server was asked.
    fn is_taken(wanted: SessionAttrs, reported: &[(&str, &str)], answer: Option<&str>) -> bool {
        let mut out = Vec::new();
        let mut check = Check::new(wanted, session(reported), &mut out);
        assert_eq!(!out.is_empty(), answer.is_some(), "asked: {out:?}");
        if let Some(text) = answer {
            let row = [&[0, 1, 0, 0, 0, text.len() as u8], text.as_bytes()].concat();
            let bytes = [
                &[b'D', 0, 0, 0, row.len() as u8 + 4],
                &row[..],
                b"Z\0\0\0\x05I",
            ]
            .concat();
            for byte in bytes {
                assert!(matches!(check.conclude(), Ok(None)));
                check.receive(&[byte]);
            }
        }
        match check.conclude() {
            Ok(session) => session.is_some(),
            Err(CheckError::Otherwise(_)) => false,
            Err(CheckError::Broken(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn what_the_server_reports_decides() {
        use SessionAttrs::{Any, PreferStandby, Primary, ReadOnly, ReadWrite, Standby};
        let report = |standby, read_only| {
            [
                ("in_hot_standby", standby),
                ("default_transaction_read_only", read_only),
            ]
        };
        let primary = report("off", "off");
        let read_only_primary = report("off", "on");
        let standby = report("on", "off");
        for (wanted, taken) in [
            (Any, [true, true, true]),
            (ReadWrite, [true, false, false]),
            (ReadOnly, [false, true, true]),
            (Primary, [true, true, false]),
            (Standby, [false, false, true]),
            (PreferStandby, [false, false, true]),
        ] {
            let got = [primary, read_only_primary, standby].map(|at| is_taken(wanted, &at, None));
            assert_eq!(got, taken, "{wanted:?}");
        }
    }

    #[test]
    fn older_servers_are_asked() {
        use SessionAttrs::{Primary, ReadOnly, ReadWrite, Standby};
        for (wanted, answer, taken) in [
            (ReadWrite, "off", true),
            (ReadWrite, "on", false),
            (ReadOnly, "on", true),
            (ReadOnly, "off", false),
            (Primary, "f", true),
            (Primary, "t", false),
            (Standby, "t", true),
            (Standby, "f", false),
        ] {
            assert_eq!(
                is_taken(wanted, &[], Some(answer)),
                taken,
                "{wanted:?} {answer}"
            );
        }
    }

    #[test]
    fn an_endless_answer_is_broken_off() {
        let mut check = Check::new(SessionAttrs::Primary, session(&[]), &mut Vec::new());
        check.receive(b"N\0\x7f\xff\xff");
        check.receive(&vec![0; LONGEST_ANSWER_BYTES]);
        assert!(matches!(check.conclude(), Err(CheckError::Broken(_))));
    }
}
