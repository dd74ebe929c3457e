//! Statements and sessions of a log, and the trait of what receives them.

use crate::entry::Place;
use crate::message::Executed;

/// The protocol that the client used for a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Simple,
    /// Extended, with the unnamed statement, which is parsed each time.
    Extended,
    /// Extended, with a prepared statement that has a name.
    Prepared,
}

impl Form {
    /// Returns the form of an execution.
    pub(crate) fn of(executed: &Executed<'_>) -> Self {
        if executed.name.is_empty() {
            Self::Extended
        } else {
            Self::Prepared
        }
    }
}

/// A recorded statement.
#[derive(Debug, PartialEq)]
pub(crate) struct Statement<'a> {
    /// What is known about its session so far.
    pub(crate) session: &'a SessionFacts,
    /// When it began, in microseconds since 1970. If it was logged at its end, its duration has been subtracted.
    pub(crate) start_us: i64,
    /// Includes parsing and binding. None if the log does not say.
    pub(crate) duration_us: Option<u64>,
    pub(crate) form: Form,
    pub(crate) text: &'a [u8],
    /// The entry's DETAIL, with its parameters if it has any.
    pub(crate) detail: &'a [u8],
    pub(crate) has_failed: bool,
    /// SQLSTATE of its error, if the log has it.
    pub(crate) sqlstate: Option<[u8; 5]>,
    pub(crate) place: Place,
    /// Whether the ends of its text and its DETAIL are proven.
    pub(crate) end_is_known: bool,
}

/// What the log says about a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SessionFacts {
    pub(crate) number: u32,
    pub(crate) user: Vec<u8>,
    pub(crate) database: Vec<u8>,
    pub(crate) application: Vec<u8>,
    pub(crate) first_us: i64,
    pub(crate) last_us: i64,
    /// Whether the log has its connection and its end.
    pub(crate) has_beginning: bool,
    pub(crate) has_end: bool,
    pub(crate) statements: u64,
}

/// Receives statements and sessions.
pub(crate) trait Sink {
    fn statement(&mut self, statement: &Statement<'_>);
    /// Takes a session after its last statement.
    fn session(&mut self, session: &SessionFacts);
    fn further(&mut self, further: Further);
    /// Returns whether to read on.
    fn wants_more(&self) -> bool {
        true
    }
}

/// Something in a session that is not a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Further {
    /// A function call by the fast path.
    FastpathCall(Place),
    /// More rows of a portal.
    Fetch,
    ReplicationCommand,
    /// A duration whose statement is not logged.
    LoneDuration,
    /// An error in a client's session outside of logged statements.
    OtherError,
}
