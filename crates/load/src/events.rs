//! What happens to single transactions, reported while the load runs: pgbench's `--verbose-errors`, and the
//! end of clients.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// What happened to a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// It failed and is tried again.
    Retried,
    /// It failed for good.
    Failed,
    /// Its client cannot continue.
    Aborted,
}

/// One of them. Numbers of clients, scripts and commands count from 0.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// When, since the start of the run.
    pub t_ns: u64,
    /// What.
    pub kind: EventKind,
    /// Whose.
    pub client: usize,
    /// Number of its script.
    pub script: usize,
    /// Number of the command among all of the script.
    pub command: usize,
    /// It was for a connection of its own, which there was none of.
    pub is_connecting: bool,
    /// Number of the query among those that the command sent together.
    pub query: u32,
    /// The server's code, if it was the server that reported an error.
    pub sqlstate: Option<String>,
    /// What was wrong.
    pub message: String,
    /// The server's error in full, in several lines, as psql shows it.
    pub in_full: Option<String>,
    /// Which try it was.
    pub tries: u32,
    /// Time since the intended start.
    pub latency_ns: u64,
}

/// Events that were not fetched yet. Their number is bounded, in case they never are.
#[derive(Debug, Default)]
pub(crate) struct Events {
    state: Mutex<(Vec<Event>, u64)>,
}

const MOST_KEPT: usize = 10_000;

impl Events {
    pub(crate) fn add(&self, event: Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.0.len() < MOST_KEPT {
            state.0.push(event);
        } else {
            state.1 += 1;
        }
    }

    /// Those since the last call, and how many more there were.
    pub(crate) fn take(&self) -> (Vec<Event>, u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *state)
    }
}
