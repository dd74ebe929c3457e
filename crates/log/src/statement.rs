//! Statements and sessions of a log, and what takes them.

use crate::entry::Place;
use crate::message::Executed;

/// The protocol by which a statement came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Simple,
    /// Extended, of a statement without a name: it is parsed each time.
    Extended,
    /// Extended, of a prepared statement.
    Prepared,
}

impl Form {
    /// The form of an execution.
    pub(crate) fn of(executed: &Executed<'_>) -> Self {
        if executed.name.is_empty() {
            Self::Extended
        } else {
            Self::Prepared
        }
    }
}

/// A statement that was recorded.
#[derive(Debug, PartialEq)]
pub(crate) struct Statement<'a> {
    /// What is known of its session so far.
    pub(crate) session: &'a SessionFacts,
    /// When it began, in microseconds since 1970: what was logged at its end says how long it took.
    pub(crate) start_us: i64,
    /// With parsing and binding. None if the log does not say.
    pub(crate) duration_us: Option<u64>,
    pub(crate) form: Form,
    pub(crate) text: &'a [u8],
    /// The entry's DETAIL, with its parameters if it has any.
    pub(crate) detail: &'a [u8],
    pub(crate) has_failed: bool,
    /// The code of the error by which it failed, if the log has it.
    pub(crate) sqlstate: Option<[u8; 5]>,
    pub(crate) place: Place,
    /// Whether it is proven where its text and its DETAIL end.
    pub(crate) end_is_known: bool,
}

/// What a session is known by.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SessionFacts {
    pub(crate) number: u32,
    pub(crate) user: Vec<u8>,
    pub(crate) database: Vec<u8>,
    pub(crate) application: Vec<u8>,
    pub(crate) first_us: i64,
    pub(crate) last_us: i64,
    /// Whether its connection, and its end, are in the log.
    pub(crate) has_beginning: bool,
    pub(crate) has_end: bool,
    pub(crate) statements: u64,
}

/// What takes the statements.
pub(crate) trait Sink {
    fn statement(&mut self, statement: &Statement<'_>);
    /// A session after its last statement.
    fn session(&mut self, session: &SessionFacts);
    fn further(&mut self, further: Further);
    /// Whether there is a reason to go on.
    fn wants_more(&self) -> bool {
        true
    }
}

/// What is no statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Further {
    /// A function call by the fast path.
    FastpathCall(Place),
    /// More rows of a portal.
    Fetch,
    ReplicationCommand,
    /// A duration of a statement that is not logged.
    LoneDuration,
    /// An error of a client's session outside of statements that were logged.
    OtherError,
}
