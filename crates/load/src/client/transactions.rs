//! How a client's transactions begin and end.

use std::cmp::Reverse;

use plinth_thread::lifecycle::StopReason;

use crate::arrivals::Arrivals;
use crate::client::{Client, State};
use crate::context::Context;
use crate::errors::{ClientError, ErrorKind, Place};
use crate::events::EventKind;
use crate::log::Log;
use crate::recorder::{Ended, Outcome};

/// Skipped transactions that are written to a log before the clock is looked at: some milliseconds.
const LINES_AT_ONCE: u64 = 10_000;

impl Client {
    /// The failed transaction is over on the server: try it again, or count it.
    pub(super) fn after_failure(
        &mut self,
        kind: ErrorKind,
        place: Place,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        self.failed = None;
        let may_try = (context.max_tries == 0 || self.tries < context.max_tries)
            && now_ns - self.intended_ns <= context.latency_limit_ns;
        if kind.is_retryable() && may_try && now_ns < context.ends_ns {
            context.recorder.errors.tried_again(place, kind);
            self.emit(EventKind::Retried, context, now_ns);
            self.tries += 1;
            self.random = self.random_at_start;
            self.rolls_back = false;
            self.step = 0;
            return self.run(context, now_ns);
        }
        if context.abort_on_error && !kind.is_retryable() {
            self.abort(kind, context, now_ns);
            return Ok(());
        }
        self.emit(EventKind::Failed, context, now_ns);
        self.end_transaction(Outcome::Failed(kind), context, now_ns);
        self.next_transaction(context, now_ns)
    }

    /// Aborts the client, and the transaction that it is in.
    pub(super) fn abort(&mut self, kind: ErrorKind, context: &mut Context<'_>, now_ns: u64) {
        self.emit(EventKind::Aborted, context, now_ns);
        if self.state != State::New {
            self.record(Outcome::Failed(kind), context, now_ns);
        }
        self.close();
        context.clients_aborted += 1;
        if context.exit_on_abort {
            context.control.stop(StopReason::Requested);
        }
    }

    /// The transaction has ended, and its client continues.
    #[inline]
    pub(super) fn end_transaction(
        &mut self,
        outcome: Outcome,
        context: &mut Context<'_>,
        now_ns: u64,
    ) {
        let ended = self.record(outcome, context, now_ns);
        if let Some(log) = &mut context.log
            && context.recorder.is_measuring()
        {
            log.ended(self.number, self.measured, &ended);
        }
    }

    /// Aggregates the end of the transaction. The log does not get it: as pgbench's, it has none with which its client ends.
    #[inline]
    pub(super) fn record(
        &mut self,
        outcome: Outcome,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Ended {
        if matches!(self.state, State::Waiting | State::Connecting) {
            self.began_ns = now_ns.max(self.intended_ns);
        }
        let ended = Ended {
            script: self.script,
            outcome,
            rolls_back: self.rolls_back,
            tries: self.tries,
            intended_ns: self.intended_ns,
            began_ns: self.began_ns,
            now_ns,
        };
        context.recorder.ended(&ended);
        self.measured += u64::from(context.recorder.is_measuring());
        ended
    }

    pub(super) fn next_transaction(
        &mut self,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), ClientError> {
        if self.begin(context, now_ns)? {
            self.run(context, now_ns)
        } else {
            Ok(())
        }
    }

    /// Chooses the next transaction, and begins it if it can be; `false` when it has to wait, or when the client is done.
    pub(super) fn begin(
        &mut self,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<bool, ClientError> {
        if context.reconnect {
            self.hang_up();
        }
        if now_ns >= context.ends_ns || self.measured >= context.limit {
            self.close();
            return Ok(false);
        }
        let before = self.script;
        self.script = context.choose_script();
        self.rolls_back = false;
        self.step = 0;
        self.tries = 1;
        self.intended_ns = match context.arrivals.as_mut().map(Arrivals::next_ns) {
            None => self.after_wait(before, context, now_ns),
            Some(due_ns) => match self.not_too_late(due_ns, context, now_ns) {
                Some(due_ns) => due_ns,
                None => return Ok(false),
            },
        };
        if self.intended_ns > now_ns {
            if self.intended_ns > context.ends_ns {
                self.close();
                return Ok(false);
            }
            self.state = State::Waiting;
            let sleeper = (self.intended_ns, self.index);
            context.sleepers.push(Reverse(sleeper));
            return Ok(false);
        }
        self.begin_or_connect(context, now_ns)
    }

    /// When the transaction is due in a closed loop: now, or after keying and think times. That is in the past if a
    /// deferred transaction took longer than these.
    /// `before`: the script of the client's transaction before, if there was one.
    fn after_wait(&self, before: usize, context: &mut Context<'_>, now_ns: u64) -> u64 {
        let Some(pacing) = &mut context.pacing else {
            return now_ns;
        };
        match self.state {
            State::New => now_ns + pacing.first_ns(self.script),
            _ => pacing.next_ns(before, self.script, self.intended_ns, now_ns),
        }
    }

    /// The first arrival from `due_ns` on that is not too late to be begun, those before it skipped; `None`, and the
    /// client is done, when it has reached its limit or the run has ended meanwhile.
    fn not_too_late(
        &mut self,
        mut due_ns: u64,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Option<u64> {
        let late_ns = now_ns.saturating_sub(context.latency_limit_ns);
        while due_ns < late_ns && self.measured < context.limit {
            let left = context.limit - self.measured;
            let writes_lines = context.log.as_ref().is_some_and(Log::has_each_skipped);
            let most = if writes_lines {
                LINES_AT_ONCE.min(left)
            } else {
                left
            };
            let passed;
            (passed, due_ns) = context.arrivals.as_mut()?.pass(due_ns, late_ns, most);
            context.recorder.skipped(self.script, passed);
            if context.recorder.is_measuring() {
                if let Some(log) = &mut context.log {
                    log.skipped(self.number, self.measured, passed, self.script, now_ns);
                }
                self.measured += passed;
            }
            if writes_lines && context.is_over() {
                // Those that are late now may be more than there is time to write down.
                context
                    .recorder
                    .never_begun(u64::from(due_ns <= context.ends_ns));
                self.close();
                return None;
            }
        }
        if self.measured >= context.limit {
            self.close();
            return None;
        }
        Some(due_ns)
    }

    /// The transaction is due. Whether it has begun; if not, it gets a connection of its own first.
    pub(super) fn begin_or_connect(
        &mut self,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<bool, ClientError> {
        self.random_at_start = self.random;
        if self.link.is_none() {
            self.state = State::Connecting;
            self.connecting_since_ns = now_ns;
            return self.connect(context, now_ns);
        }
        self.began_ns = now_ns;
        self.state = State::Turn;
        Ok(true)
    }
}
