//! What went wrong, counted by kind and place.

use serde::{Serialize, Serializer};

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The transaction could not be serialized with others (SQLSTATE 40001); it may be tried again.
    SerializationFailure,
    /// The transaction was in a deadlock (SQLSTATE 40P01); it may be tried again.
    DeadlockDetected,
    /// Any other error of a statement.
    Sql,
    /// The server does not take a statement's types, values or encoding as they were sent.
    Refused,
    /// The server refused a write in a read-only transaction, or what followed it in that transaction.
    RefusedWrite,
    /// A replayed statement failed as it did when it was recorded.
    AsRecorded,
    /// A client could not connect.
    Connect,
    /// No connection within the time allowed.
    Timeout,
    /// The connection ended: the server closed it, said FATAL, or vanished.
    ConnectionLost,
    /// An administrator ended the session, and its client opens another one.
    Terminated,
    /// The server sent what is not the protocol, or what the engine does not support, such as COPY.
    Protocol,
    /// The script cannot continue.
    Script,
    /// A statement that was cut off at the end could not be cancelled, and the server may still be at it.
    Cancel,
}

impl ErrorKind {
    /// The kind of a statement's error.
    pub(crate) fn of_sqlstate(sqlstate: &str) -> Self {
        match sqlstate {
            "40001" => Self::SerializationFailure,
            "40P01" => Self::DeadlockDetected,
            _ => Self::Sql,
        }
    }

    /// Whether the same transaction may succeed when it is tried again.
    pub(crate) fn is_retryable(self) -> bool {
        matches!(self, Self::SerializationFailure | Self::DeadlockDetected)
    }

    /// Whether there is no connection any more, or none yet.
    pub(crate) fn is_of_connection(self) -> bool {
        matches!(self, Self::Connect | Self::Timeout | Self::ConnectionLost)
    }

    /// As results name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SerializationFailure => "serialization_failure",
            Self::DeadlockDetected => "deadlock_detected",
            Self::Sql => "sql",
            Self::Refused => "refused",
            Self::RefusedWrite => "refused_write",
            Self::AsRecorded => "failed_as_recorded",
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::ConnectionLost => "connection_lost",
            Self::Terminated => "terminated",
            Self::Protocol => "protocol",
            Self::Script => "script",
            Self::Cancel => "cancel",
        }
    }
}

impl Serialize for ErrorKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Where in the scripts something went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    pub(crate) script: Option<usize>,
    /// Number of the statement within its script.
    pub(crate) statement: Option<usize>,
    pub(crate) line: Option<usize>,
}

/// One thing that went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) sqlstate: Option<String>,
    pub(crate) message: String,
    /// A server's error in full, if it is asked for.
    pub(crate) in_full: Option<String>,
}

/// The SQLSTATE of a session that an administrator ended: `admin_shutdown`, also of `pg_terminate_backend`.
const TERMINATED: &str = "57P01";

impl Failure {
    /// The server answered `ROLLBACK` to a statement that should have ended a transaction well, or prepared it.
    pub(crate) fn without_commit() -> Self {
        Self {
            kind: ErrorKind::Sql,
            sqlstate: None,
            message: "the server answered ROLLBACK, and the statement did not ask for that: nothing was committed"
                .to_owned(),
            in_full: None,
        }
    }

    /// Whether an administrator ended the session.
    pub(crate) fn is_termination(&self) -> bool {
        self.sqlstate.as_deref() == Some(TERMINATED)
    }
}

/// Why a client cannot continue.
#[derive(Debug)]
pub(crate) struct ClientError {
    pub(crate) failure: Failure,
    /// Line of the command that is to blame, when it is not a statement under way.
    pub(crate) line: Option<usize>,
}

impl ClientError {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            failure: Failure {
                kind,
                sqlstate: None,
                message: message.into(),
                in_full: None,
            },
            line: None,
        }
    }

    /// The connection cannot be used any more.
    pub(crate) fn lost(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::ConnectionLost, message)
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Protocol, message)
    }

    pub(crate) fn script(line: usize, message: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            ..Self::new(ErrorKind::Script, message)
        }
    }
}

/// The same thing at the same place, counted.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) failure: Failure,
    pub(crate) place: Place,
    pub(crate) count: u64,
    /// After how many of these the transaction was tried again.
    pub(crate) retried: u64,
    pub(crate) first_ns: u64,
}

/// All that went wrong. As many entries as there are kinds, codes and places, however long the run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Errors {
    counted: Vec<Counted>,
}

impl Errors {
    pub(crate) fn add(&mut self, place: Place, failure: Failure, count: u64, now_ns: u64) {
        self.merge_one(Counted {
            failure,
            place,
            count,
            retried: 0,
            first_ns: now_ns,
        });
    }

    /// After an error of `kind` at `place`, the transaction is tried again.
    pub(crate) fn tried_again(&mut self, place: Place, kind: ErrorKind) {
        let same = self
            .counted
            .iter_mut()
            .find(|known| known.place == place && known.failure.kind == kind);
        if let Some(known) = same {
            known.retried += 1;
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        other
            .counted
            .into_iter()
            .for_each(|counted| self.merge_one(counted));
    }

    fn merge_one(&mut self, new: Counted) {
        let same = self.counted.iter_mut().find(|known| {
            known.place == new.place
                && known.failure.kind == new.failure.kind
                && known.failure.sqlstate == new.failure.sqlstate
        });
        match same {
            Some(known) => {
                known.count += new.count;
                known.retried += new.retried;
                if new.first_ns < known.first_ns {
                    known.first_ns = new.first_ns;
                    known.failure.message = new.failure.message;
                }
            }
            None => self.counted.push(new),
        }
    }

    /// By first appearance.
    pub(crate) fn into_counted(mut self) -> Vec<Counted> {
        self.counted.sort_by_key(|counted| counted.first_ns);
        self.counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(kind: ErrorKind, sqlstate: Option<&str>, message: &str) -> Failure {
        Failure {
            kind,
            sqlstate: sqlstate.map(str::to_owned),
            message: message.to_owned(),
            in_full: None,
        }
    }

    #[test]
    fn the_same_at_the_same_place_is_counted_with_the_first_message() {
        let here = Place {
            script: Some(0),
            statement: Some(2),
            line: Some(7),
        };
        let mut errors = Errors::default();
        errors.add(here, failure(ErrorKind::Sql, Some("22012"), "later"), 1, 90);
        errors.add(
            here,
            failure(ErrorKind::Sql, Some("23505"), "other code"),
            1,
            50,
        );
        let mut other = Errors::default();
        other.add(here, failure(ErrorKind::Sql, Some("22012"), "first"), 1, 10);
        other.tried_again(here, ErrorKind::Sql);
        other.add(
            Place::default(),
            failure(ErrorKind::Connect, None, "nobody there"),
            3,
            0,
        );
        errors.merge(other);
        let seen: Vec<_> = errors
            .into_counted()
            .into_iter()
            .map(|counted| {
                (
                    counted.failure.message,
                    counted.count,
                    counted.retried,
                    counted.first_ns,
                )
            })
            .collect();
        let expected = [
            ("nobody there", 3, 0, 0),
            ("first", 2, 1, 10),
            ("other code", 1, 0, 50),
        ];
        assert_eq!(
            seen,
            expected.map(|(message, count, again, at)| (message.to_owned(), count, again, at))
        );
    }

    #[test]
    fn sqlstates_decide_what_may_be_tried_again() {
        for (sqlstate, name, retryable) in [
            ("40001", "serialization_failure", true),
            ("40P01", "deadlock_detected", true),
            ("40002", "sql", false),
            ("22012", "sql", false),
        ] {
            let kind = ErrorKind::of_sqlstate(sqlstate);
            assert_eq!((kind.as_str(), kind.is_retryable()), (name, retryable));
        }
    }
}
