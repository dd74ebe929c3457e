//! A recorded session, and its statements that wait.

use std::collections::VecDeque;

use plinth_replay::RecordedStatement;

use crate::replay::messages::prepared;

/// What is known of a statement once its messages are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) label: usize,
    /// When it was due; of a closed loop, when it was sent.
    pub(super) intended_ns: u64,
    /// How long it took when it was recorded.
    pub(super) recorded_ns: Option<u64>,
    pub(super) has_failed: bool,
    pub(super) sqlstate: Option<[u8; 5]>,
    /// The text that has to be prepared for it.
    pub(super) prepared: Option<u32>,
}

impl Sent {
    pub(super) fn of(statement: &RecordedStatement<'_>, label: u32, intended_ns: u64) -> Self {
        Self {
            label: label as usize,
            intended_ns,
            recorded_ns: statement.duration_us.map(|us| us.saturating_mul(1_000)),
            has_failed: statement.has_failed,
            sqlstate: statement.sqlstate,
            prepared: prepared(statement),
        }
    }
}

/// A statement that waits until its session is free.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) sent: Sent,
    pub(super) messages: Box<[u8]>,
}

/// A session of this thread.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) connection: Option<usize>,
    pub(super) queue: VecDeque<Waiting>,
    /// Statements that have neither ended nor been given up.
    pub(super) left: u64,
    /// It is among those that wait for a connection.
    pub(super) waits: bool,
}
