//! One connection: a state machine that sends a statement, waits for its end, and takes the next step of its
//! script. It never blocks; what it needs from its thread it finds in [`Context`].

use std::cmp::Reverse;

use plinth_script::{Prng, Variables};
use plinth_wire::{Scanner, ServerError};
use rustix::io::Errno;

use crate::context::Context;
use crate::errors::{ErrorKind, Failure, Place, Trouble};
use crate::link::Link;
use crate::program::{Programs, Step};
use crate::recorder::Outcome;

/// What a client is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before its first transaction.
    New,
    /// The current step is a statement under way.
    Statement,
    /// The statement failed, and `ROLLBACK` is under way.
    Rollback,
    /// The current step is `\sleep`.
    Sleep { until_ns: u64 },
    /// At the start of a transaction, for the others to go first.
    Turn,
    /// No connection any more.
    Closed,
}

/// One connection and its script.
#[derive(Debug)]
pub(crate) struct Client {
    /// Its number on its thread.
    index: usize,
    link: Link,
    scanner: Scanner,
    state: State,

    variables: Variables,
    random: Prng,
    /// `random` as it was when the transaction began: a retry draws the same numbers.
    random_at_start: Prng,
    /// Statements that the server has prepared for this connection.
    prepared: Vec<bool>,

    script: usize,
    step: usize,
    tries: u32,
    transaction_began_ns: u64,
    statement_began_ns: u64,
    /// The statement under way failed; whether its transaction may be tried again.
    failed: Option<ErrorKind>,
    /// The server has a transaction block open.
    in_block: bool,
    /// Transactions that ended in the measured phase.
    measured: u64,
}

impl Client {
    pub(crate) fn new(
        index: usize,
        link: Link,
        scanner: Scanner,
        random: Prng,
        number: usize,
        programs: &Programs,
    ) -> Self {
        Self {
            index,
            link,
            scanner,
            state: State::New,
            variables: programs.variables(number),
            random,
            random_at_start: random,
            prepared: vec![false; programs.statements.len()],
            script: 0,
            step: 0,
            tries: 1,
            transaction_began_ns: 0,
            statement_began_ns: 0,
            failed: None,
            in_block: false,
            measured: 0,
        }
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state != State::Closed
    }

    /// Begins the first transaction.
    pub(crate) fn start(&mut self, context: &mut Context<'_>, now_ns: u64) {
        let result = self.next_transaction(context, now_ns);
        self.settle(result, context, now_ns);
    }

    /// Goes on after a sleep, or when its turn has come.
    pub(crate) fn resume(&mut self, context: &mut Context<'_>, now_ns: u64) {
        let result = match self.state {
            State::Sleep { .. } => {
                self.step += 1;
                self.run(context, now_ns)
            }
            State::Turn => self.run(context, now_ns),
            _ => return,
        };
        self.settle(result, context, now_ns);
    }

    /// Takes what the server sent.
    pub(crate) fn receive(&mut self, bytes: &[u8], context: &mut Context<'_>, now_ns: u64) {
        let result = self.frames(bytes, context, now_ns);
        self.settle(result, context, now_ns);
    }

    /// The connection ended; `errno` says how, if not by the server's own closing.
    pub(crate) fn hung_up(&mut self, errno: Option<Errno>, context: &mut Context<'_>, now_ns: u64) {
        let message = match errno {
            Some(errno) => format!("the connection was lost: {errno}"),
            None => "the server closed the connection unexpectedly".to_owned(),
        };
        self.settle(Err(Trouble::lost(message)), context, now_ns);
    }

    /// Sends on what the socket would not take before.
    pub(crate) fn writable(&mut self, context: &mut Context<'_>, now_ns: u64) {
        let flushed = self
            .link
            .flush(&context.registry)
            .map(|sent| context.bytes_sent += sent as u64);
        let result = flushed.map_err(|error| Trouble::lost(format!("cannot send: {error}")));
        self.settle(result, context, now_ns);
    }

    /// Ends without waiting for anything; a transaction under way stays open.
    pub(crate) fn cut_off(&mut self, context: &mut Context<'_>) {
        if self.is_open() {
            context
                .recorder
                .ended(self.script, Outcome::Open, 0, self.tries);
            self.close();
        }
    }

    /// A client in trouble records it, fails its transaction and ends; the others go on.
    fn settle(&mut self, result: Result<(), Trouble>, context: &mut Context<'_>, now_ns: u64) {
        let Err(trouble) = result else { return };
        if !self.is_open() {
            return;
        }
        let mut place = self.place(context);
        if let Some(line) = trouble.line {
            place = Place {
                statement: None,
                line: Some(line),
                ..place
            };
        }
        context.recorder.error(place, trouble.failure, now_ns);
        if self.state != State::New {
            self.end_transaction(Outcome::Failed, context, now_ns);
        }
        self.close();
    }

    /// The step under way, as errors name it.
    fn place(&self, context: &Context<'_>) -> Place {
        let program = &context.programs.programs[self.script];
        let (statement, line) = match program.steps.get(self.step) {
            Some(Step::Statement(id)) => {
                let statement = &context.programs.statements[*id];
                (Some(statement.index), Some(statement.line))
            }
            Some(Step::Set { line, .. } | Step::Sleep { line, .. }) => (None, Some(*line)),
            None => (None, None),
        };
        Place {
            script: Some(self.script),
            statement,
            line,
        }
    }

    fn close(&mut self) {
        self.link.close();
        self.state = State::Closed;
    }

    fn frames(
        &mut self,
        mut bytes: &[u8],
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), Trouble> {
        // The scanner's frames borrow it, and handling one changes the rest of the client.
        let mut scanner = std::mem::take(&mut self.scanner);
        while self.is_open() {
            let frame = scanner
                .next(&mut bytes)
                .map_err(|error| Trouble::protocol(error.to_string()))?;
            let Some(frame) = frame else { break };
            match frame.tag {
                b'Z' => self.ready(frame.body.first() != Some(&b'I'), context, now_ns)?,
                b'E' => self.server_error(ServerError::parse(frame.body), context, now_ns)?,
                b'1' => self.parsed(context),
                b'G' | b'H' | b'W' => {
                    return Err(Trouble::protocol(
                        "the statement is a COPY, which a load cannot run",
                    ));
                }
                // Rows and their ends, and what a server may say at any time.
                b'2' | b'3' | b'C' | b'D' | b'I' | b'n' | b's' | b'T' | b't' | b'A' | b'N'
                | b'S' => {}
                other => {
                    return Err(Trouble::protocol(format!(
                        "unexpected message '{}'",
                        other as char
                    )));
                }
            }
        }
        self.scanner = scanner;
        Ok(())
    }

    /// The server is ready for the next query.
    fn ready(
        &mut self,
        in_block: bool,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), Trouble> {
        self.in_block = in_block;
        match (self.state, self.failed) {
            (State::Statement, None) => {
                if let Some(Step::Statement(id)) =
                    context.programs.programs[self.script].steps.get(self.step)
                {
                    context
                        .recorder
                        .statement(*id, now_ns - self.statement_began_ns);
                }
                self.step += 1;
                self.run(context, now_ns)
            }
            (State::Statement, Some(_)) if in_block => {
                self.state = State::Rollback;
                let rollback = std::mem::take(&mut context.rollback);
                let result = self.send(&rollback, context);
                context.rollback = rollback;
                result
            }
            (State::Statement | State::Rollback, Some(kind)) => {
                self.after_failure(kind, context, now_ns)
            }
            _ => Err(Trouble::protocol(
                "ReadyForQuery, and no statement was sent",
            )),
        }
    }

    fn server_error(
        &mut self,
        error: ServerError,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), Trouble> {
        let sqlstate = (!error.sqlstate.is_empty()).then(|| error.sqlstate.clone());
        if error.is_fatal() || self.state != State::Statement {
            let failure = Failure {
                kind: ErrorKind::ConnectionLost,
                sqlstate,
                message: error.to_string(),
            };
            return Err(Trouble {
                failure,
                line: None,
            });
        }
        let kind = ErrorKind::of_sqlstate(&error.sqlstate);
        let failure = Failure {
            kind,
            sqlstate,
            message: error.to_string(),
        };
        context.recorder.error(self.place(context), failure, now_ns);
        self.failed = Some(kind);
        Ok(())
    }

    /// `ParseComplete`: the statement under way is prepared, also when it fails later.
    fn parsed(&mut self, context: &Context<'_>) {
        if let Some(Step::Statement(id)) =
            context.programs.programs[self.script].steps.get(self.step)
        {
            self.prepared[*id] = context.programs.keeps_prepared();
        }
    }

    /// The failed transaction is over on the server: try it again, or count it.
    fn after_failure(
        &mut self,
        kind: ErrorKind,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), Trouble> {
        self.failed = None;
        let may_try = context.max_tries == 0 || self.tries < context.max_tries;
        if kind.is_retryable() && may_try && now_ns < context.ends_ns {
            self.tries += 1;
            self.random = self.random_at_start;
            self.step = 0;
            return self.run(context, now_ns);
        }
        self.end_transaction(Outcome::Failed, context, now_ns);
        self.next_transaction(context, now_ns)
    }

    fn end_transaction(&mut self, outcome: Outcome, context: &mut Context<'_>, now_ns: u64) {
        let latency_ns = now_ns - self.transaction_began_ns;
        context
            .recorder
            .ended(self.script, outcome, latency_ns, self.tries);
        self.measured += u64::from(context.recorder.is_measuring());
    }

    /// Begins the next transaction, or ends the client when the run is over for it.
    fn next_transaction(&mut self, context: &mut Context<'_>, now_ns: u64) -> Result<(), Trouble> {
        if !self.begin(context, now_ns) {
            return Ok(());
        }
        self.run(context, now_ns)
    }

    /// Whether there is a next transaction.
    fn begin(&mut self, context: &mut Context<'_>, now_ns: u64) -> bool {
        if now_ns >= context.ends_ns || self.measured >= context.limit {
            self.close();
            return false;
        }
        self.script = plinth_script::choose_script(&context.programs.weights, &mut context.choose);
        self.step = 0;
        self.tries = 1;
        self.random_at_start = self.random;
        self.transaction_began_ns = now_ns;
        self.state = State::Turn;
        context.recorder.begun();
        true
    }

    /// Takes steps until one has to wait.
    fn run(&mut self, context: &mut Context<'_>, now_ns: u64) -> Result<(), Trouble> {
        let programs = context.programs;
        loop {
            let program = &programs.programs[self.script];
            match program.steps.get(self.step) {
                Some(Step::Set { slot, expr, line }) => {
                    let value = expr.eval(&self.variables, &mut self.random);
                    let value = value.map_err(|error| Trouble::script(*line, error.to_string()))?;
                    self.variables.set(*slot, value);
                    self.step += 1;
                }
                Some(Step::Statement(id)) => return self.send_statement(*id, context, now_ns),
                Some(Step::Sleep {
                    duration,
                    unit,
                    line,
                }) => {
                    let sleep = duration.eval(&self.variables, &mut self.random);
                    let sleep_us = sleep.and_then(|sleep| unit.to_microseconds(sleep));
                    let sleep_us =
                        sleep_us.map_err(|error| Trouble::script(*line, error.to_string()))?;
                    let until_ns = now_ns.saturating_add(sleep_us.saturating_mul(1_000));
                    self.state = State::Sleep { until_ns };
                    context.sleepers.push(Reverse((until_ns, self.index)));
                    return Ok(());
                }
                None if self.in_block => {
                    let line = programs
                        .statements
                        .iter()
                        .rfind(|statement| statement.script == self.script);
                    return Err(Trouble::script(
                        line.map_or(1, |statement| statement.line),
                        "the script ends inside a transaction block; end it with COMMIT or ROLLBACK",
                    ));
                }
                None => {
                    self.end_transaction(Outcome::Done, context, now_ns);
                    if !self.begin(context, now_ns) {
                        return Ok(());
                    }
                    if !program.waits {
                        context.waiting_for_turn.push(self.index);
                        return Ok(());
                    }
                }
            }
        }
    }

    #[inline]
    fn send_statement(
        &mut self,
        id: usize,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Result<(), Trouble> {
        let mut out = std::mem::take(&mut context.out);
        out.clear();
        context
            .programs
            .write(id, !self.prepared[id], &self.variables, &mut out);
        self.state = State::Statement;
        self.statement_began_ns = now_ns;
        let result = self.send(&out, context);
        context.out = out;
        result
    }

    #[inline]
    fn send(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Result<(), Trouble> {
        let sent = self.link.send(bytes, &context.registry);
        context.bytes_sent +=
            sent.map_err(|error| Trouble::lost(format!("cannot send: {error}")))? as u64;
        Ok(())
    }
}
