//! What a thread lends to its clients.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use mio::Registry;
use plinth_connect::Dialer;
use plinth_script::Prng;

use crate::arrivals::Arrivals;
use crate::clock::Clock;
use crate::commit_ledger::Ledger;
use crate::config::ShellUser;
use crate::control::Control;
use crate::deck::Deck;
use crate::errors::{ErrorKind, Failure};
use crate::events::EventKind;
use crate::log::Log;
use crate::pacing::Pacing;
use crate::program::Programs;
use crate::recorder::Recorder;

/// What a thread lends to its clients.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) clock: Clock,
    pub(crate) recorder: Recorder,
    pub(crate) registry: Registry,
    pub(crate) control: &'a Control,
    pub(crate) dialer: &'a Arc<Dialer>,
    pub(crate) log: Option<Log>,
    pub(crate) ledger: Option<Ledger>,
    /// Who runs the commands of the shell, if not we.
    pub(crate) shell_user: Option<&'a ShellUser>,
    /// Each transaction gets a connection of its own.
    pub(crate) reconnect: bool,
    /// The pause after which a client that lost its connection, or got none, tries again; `None`: the client ends.
    pub(crate) retry_connect_ns: Option<u64>,
    /// A session that an administrator terminated is replaced by another one.
    pub(crate) replace_terminated: bool,
    /// An error of a statement that cannot be tried again ends its client.
    pub(crate) abort_on_error: bool,
    /// An aborted client ends the run.
    pub(crate) exit_on_abort: bool,
    /// Every error is reported while the load runs.
    pub(crate) verbose_errors: bool,
    pub(crate) clients_aborted: u64,
    /// Chooses scripts.
    pub(crate) choose: Prng,
    /// What they are dealt from, if not chosen again for each transaction.
    pub(crate) deck: Option<Deck>,
    /// When transactions are due; `None` in a closed loop.
    pub(crate) arrivals: Option<Arrivals>,
    /// How long clients wait between transactions of a closed loop; `None` if they do not.
    pub(crate) pacing: Option<Pacing>,
    /// `u64::MAX` for none.
    pub(crate) latency_limit_ns: u64,
    /// Clients asleep: when to wake them, and who.
    pub(crate) sleepers: BinaryHeap<Reverse<(u64, usize)>>,
    /// Clients that could continue at once but yield to the others.
    pub(crate) waiting_for_turn: Vec<usize>,
    /// No transaction begins, and none is tried again, from here on.
    pub(crate) ends_ns: u64,
    /// Measured transactions of each client.
    pub(crate) limit: u64,
    /// 0 for no limit.
    pub(crate) max_tries: u32,
    pub(crate) bytes_sent: u64,
    /// Of the server, which clients saw end.
    pub(crate) server_transactions: u64,
    pub(crate) rollback: Vec<u8>,
    /// Where messages are put together before they are sent.
    pub(crate) out: Vec<u8>,
}

impl Context<'_> {
    /// The script of the next transaction.
    pub(crate) fn choose_script(&mut self) -> usize {
        match &mut self.deck {
            Some(deck) => deck.deal(&mut self.choose),
            None => plinth_script::choose_script(&self.programs.weights, &mut self.choose),
        }
    }

    /// A meta command has ended well: times it, if commands are timed.
    pub(crate) fn command_ended(&mut self, script: usize, step: usize, began_ns: u64) {
        if self.recorder.times_commands() {
            let took_ns = self.clock.now_ns() - began_ns;
            self.recorder.command(script, step, took_ns);
        }
    }

    /// How long a client that has failed so waits before it connects again; `None`: it ends. A failure that only an administrator's
    /// order makes a reason to go on becomes one of that kind.
    pub(crate) fn pause_before_connecting_ns(&self, failure: &mut Failure) -> Option<u64> {
        if !failure.kind.is_of_connection() {
            return None;
        }
        if self.retry_connect_ns.is_some() {
            return self.retry_connect_ns;
        }
        // A server that shuts down says the same, and then refuses the connection: there the client ends.
        if self.replace_terminated && failure.is_termination() {
            failure.kind = ErrorKind::Terminated;
            return Some(0);
        }
        None
    }

    /// Whether the run has ended, or is asked to, by a clock that is read for it.
    pub(crate) fn is_over(&self) -> bool {
        self.clock.now_ns() >= self.ends_ns || self.control.is_stopping()
    }

    /// Whether clients open connections while the load runs.
    pub(crate) fn connects(&self) -> bool {
        self.reconnect || self.retry_connect_ns.is_some() || self.replace_terminated
    }

    /// Whether errors of statements are of interest beyond being counted.
    pub(crate) fn tells_errors(&self) -> bool {
        self.verbose_errors || self.abort_on_error
    }

    /// The end of a client is always reported.
    pub(crate) fn emits(&self, kind: EventKind) -> bool {
        self.verbose_errors || kind == EventKind::Aborted
    }
}
