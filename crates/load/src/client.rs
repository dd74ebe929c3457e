//! One connection: a state machine that sends a statement, waits for its end, and takes the next step of its
//! script. It never blocks; what it needs from its thread it finds in [`Context`].

mod commits;
mod compiled;
mod connections;
mod pipelines;
mod replies;
mod results;
mod shells;
mod steps;
mod transactions;

use std::io;

use mio::Registry;
use plinth_connect::{Canceller, Opened};
use plinth_script::{Prng, Variables};
use plinth_wire::Scanner;

use crate::compiled::{Answers, WorkloadClient};
use crate::context::Context;
use crate::errors::{ClientError, ErrorKind, Failure, Place};
use crate::events::{Event, EventKind};
use crate::gset::Results;
use crate::link::{Dialing, Link};
use crate::pipeline::Pipeline;
use crate::program::{Programs, Step};
use crate::recorder::Outcome;
use crate::shell::Shell;

/// What a client is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before its first transaction.
    New,
    /// The current step is a statement under way.
    Statement,
    /// The current step is `\startpipeline`, and its statements are being prepared.
    Preparing,
    /// The current step is `\endpipeline`, and answers are to come.
    Pipeline,
    /// The current step is a transaction that is compiled in, and answers to a batch of it are to come.
    Batch,
    /// The statement failed, and `ROLLBACK` is under way.
    Rollback,
    /// The current step is `\sleep`.
    Sleep { until_ns: u64 },
    /// The current step is `\shell` or `\setshell`.
    Shell,
    /// At the start of a transaction, for the others to go first.
    Turn,
    /// A transaction is not due yet.
    Waiting,
    /// A transaction is due and gets a connection.
    Connecting,
    /// It has no connection, and tries to get one again at this time.
    Disconnected { until_ns: u64 },
    /// No connection any more.
    Closed,
}

/// One connection and its script.
#[derive(Debug)]
pub(crate) struct Client {
    /// Its number on its thread.
    index: usize,
    /// Its number among all.
    number: usize,
    link: Option<Link>,
    dialing: Option<Box<Dialing>>,
    connecting_since_ns: u64,
    canceller: Option<Box<Canceller>>,
    scanner: Scanner,
    state: State,

    variables: Variables,
    random: Prng,
    /// `random` as it was when the transaction began: a retry draws the same numbers.
    random_at_start: Prng,
    /// Statements that the server has prepared for this connection.
    prepared: Vec<bool>,
    pipeline: Pipeline,
    /// The answer to the statement under way is read, not only counted.
    keeps: bool,
    results: Results,
    /// Of each workload that is compiled in, the client's state.
    workloads: Vec<Box<dyn WorkloadClient>>,
    /// What the batch under way gave.
    answers: Answers,
    shell: Option<Box<Shell>>,

    script: usize,
    step: usize,
    tries: u32,
    /// The next transaction is chosen, and waits for a connection that was lost.
    is_due: bool,
    /// When the transaction was due; in a closed loop, when it began.
    intended_ns: u64,
    began_ns: u64,
    statement_began_ns: u64,
    /// Of a meta command that waits, if commands are timed.
    command_began_ns: u64,
    /// Results of the statement under way that have ended; the simple protocol may bring several.
    results_ended: u32,
    /// A statement under way failed, how, and where: the client may have reached `\endpipeline` since it was sent.
    failed: Option<(ErrorKind, Place)>,
    /// What it failed with, if such events are asked for.
    failure: Option<Box<Failure>>,
    /// The transaction under way is rolled back on purpose.
    rolls_back: bool,
    /// The server has a transaction block open.
    in_block: bool,
    /// Transactions that ended in the measured phase.
    measured: u64,
    /// The number of the next transaction that reaches its commit, by which the ledger and its tables know it.
    ledger_number: u64,
    /// The ledger's record of a commit that is on its way.
    commit: Option<u64>,
}

impl Client {
    /// Without a connection.
    pub(crate) fn new(
        index: usize,
        number: usize,
        random: Prng,
        programs: &Programs,
        ledger_number: u64,
    ) -> Self {
        Self {
            index,
            number,
            link: None,
            dialing: None,
            connecting_since_ns: 0,
            canceller: None,
            scanner: Scanner::new(),
            state: State::New,
            variables: programs.variables(number),
            random,
            random_at_start: random,
            prepared: vec![false; programs.statements.len()],
            pipeline: Pipeline::default(),
            keeps: false,
            results: Results::default(),
            workloads: programs.workloads.clients(number),
            answers: Answers::default(),
            shell: None,
            script: 0,
            step: 0,
            tries: 1,
            is_due: false,
            intended_ns: 0,
            began_ns: 0,
            statement_began_ns: 0,
            command_began_ns: 0,
            results_ended: 0,
            failed: None,
            failure: None,
            rolls_back: false,
            in_block: false,
            measured: 0,
            ledger_number,
            commit: None,
        }
    }

    /// Gives it a connection that it keeps.
    pub(crate) fn give(&mut self, opened: Opened, registry: &Registry) -> io::Result<()> {
        self.canceller = Some(Box::new(opened.canceller()));
        self.link = Some(Link::new(opened.stream, self.index, registry)?);
        self.scanner = opened.session.scanner;
        Ok(())
    }

    /// Reads what there is, at most what `buffer` holds; 0 at the end of the connection.
    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.link {
            Some(link) => link.receive(buffer),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state != State::Closed
    }

    /// Begins the first transaction.
    pub(crate) fn start(&mut self, context: &mut Context<'_>, now_ns: u64) {
        self.give_ledger_number(context);
        let result = self.next_transaction(context, now_ns);
        self.end_on_error(result, context, now_ns);
    }

    /// Goes on after a sleep, or when its turn has come.
    pub(crate) fn resume(&mut self, context: &mut Context<'_>, now_ns: u64) {
        let result = match self.state {
            State::Sleep { until_ns } if now_ns >= until_ns => {
                self.command_ended(context);
                self.run(context, now_ns)
            }
            State::Turn => self.run(context, now_ns),
            State::Waiting if now_ns >= context.ends_ns => {
                context.recorder.never_begun(1);
                self.close();
                return;
            }
            State::Waiting if now_ns >= self.intended_ns => {
                match self.begin_or_connect(context, now_ns) {
                    Ok(true) => self.run(context, now_ns),
                    Ok(false) => Ok(()),
                    Err(error) => Err(error),
                }
            }
            State::Connecting => return self.go_on_connecting(context, now_ns),
            State::Disconnected { until_ns } if now_ns >= until_ns => {
                return self.connect_again(context, now_ns);
            }
            _ => return,
        };
        self.end_on_error(result, context, now_ns);
    }

    /// Takes what the server sent.
    pub(crate) fn receive(&mut self, bytes: &[u8], context: &mut Context<'_>, now_ns: u64) {
        let result = self.frames(bytes, context, now_ns);
        self.end_on_error(result, context, now_ns);
    }

    /// The connection ended; `error` says how, if not by the server's own closing.
    pub(crate) fn hung_up(
        &mut self,
        error: Option<io::Error>,
        context: &mut Context<'_>,
        now_ns: u64,
    ) {
        let message = match error {
            Some(error) => format!("the connection was lost: {error}"),
            None => "the server closed the connection unexpectedly".to_owned(),
        };
        self.end_on_error(Err(ClientError::lost(message)), context, now_ns);
    }

    /// Sends on what the socket would not take before.
    pub(crate) fn writable(&mut self, context: &mut Context<'_>, now_ns: u64) {
        let Some(link) = &mut self.link else { return };
        let flushed = link
            .flush(&context.registry)
            .map(|sent| context.bytes_sent += sent as u64);
        let result = flushed.map_err(|error| ClientError::lost(format!("cannot send: {error}")));
        self.end_on_error(result, context, now_ns);
    }

    /// Ends without waiting for anything; a transaction under way stays open. What cancels the statement that the server
    /// is at.
    pub(crate) fn cut_off(
        &mut self,
        context: &mut Context<'_>,
        now_ns: u64,
    ) -> Option<Box<Canceller>> {
        if !self.is_open() {
            return None;
        }
        if self.is_disconnected() {
            self.give_up_connecting(context);
            return None;
        }
        let is_asked = matches!(
            self.state,
            State::Statement | State::Preparing | State::Pipeline | State::Batch | State::Rollback
        );
        let canceller = self.canceller.take().filter(|_| is_asked);
        self.record(Outcome::Open, context, now_ns);
        self.close();
        canceller
    }

    /// The end of the run has moved to `context.ends_ns`: ends if the transaction waited for is due only later.
    pub(crate) fn stop_waiting(&mut self, context: &Context<'_>) {
        if self.state == State::Waiting && self.intended_ns > context.ends_ns {
            self.close();
        }
    }

    /// Records a client's error, fails its transaction and ends the client. The other clients continue.
    fn end_on_error(
        &mut self,
        result: Result<(), ClientError>,
        context: &mut Context<'_>,
        now_ns: u64,
    ) {
        let Err(mut error) = result else { return };
        if !self.is_open() {
            return;
        }
        if error.failure.kind == ErrorKind::ConnectionLost && error.failure.sqlstate.is_none() {
            self.add_last_words(&mut error.failure);
        }
        let mut place = self.place(context);
        if let Some(line) = error.line {
            place = Place {
                statement: None,
                line: Some(line),
                ..place
            };
        }
        let pause_ns = context.pause_before_connecting_ns(&mut error.failure);
        let kind = error.failure.kind;
        self.failure = Some(Box::new(error.failure.clone()));
        context.recorder.error(place, error.failure, now_ns);
        if let Some(pause_ns) = pause_ns {
            return self.disconnected(kind, pause_ns, context, now_ns);
        }
        self.abort(kind, context, now_ns);
    }

    /// The meta command that was waited for has ended well.
    fn command_ended(&mut self, context: &mut Context<'_>) {
        context.command_ended(self.script, self.step, self.command_began_ns);
        self.step += 1;
    }

    /// Emits an event about the transaction, if such events are asked for.
    fn emit(&mut self, kind: EventKind, context: &Context<'_>, now_ns: u64) {
        let failure = self.failure.take();
        if let Some(failure) = failure.filter(|_| context.emits(kind)) {
            context.control.events().add(Event {
                t_ns: now_ns,
                kind,
                client: self.number,
                script: self.script,
                command: self.step,
                is_connecting: self.is_connecting(),
                query: self.results_ended,
                sqlstate: failure.sqlstate,
                message: failure.message,
                in_full: failure.in_full,
                tries: self.tries,
                latency_ns: now_ns.saturating_sub(self.intended_ns),
            });
        }
    }

    /// The step under way, as errors name it.
    fn place(&self, context: &Context<'_>) -> Place {
        let program = &context.programs.programs[self.script];
        let (statement, line) = match self.statement(context) {
            Some(id) => {
                let statement = &context.programs.statements[id];
                (Some(statement.index), Some(statement.line))
            }
            None => (None, program.lines.get(self.step).copied()),
        };
        Place {
            script: Some(self.script),
            statement,
            line,
        }
    }

    /// The statement that the server is at, or is given next.
    fn statement(&self, context: &Context<'_>) -> Option<usize> {
        match context.programs.programs[self.script]
            .steps
            .get(self.step)?
        {
            Step::Statement(id) if !self.pipeline.is_open() => Some(*id),
            Step::StartPipeline(statements) if self.state == State::Preparing => {
                statements.clone().find(|id| !self.prepared[*id])
            }
            _ => self.pipeline.statement(),
        }
    }

    fn close(&mut self) {
        self.hang_up();
        self.shell = None;
        self.state = State::Closed;
    }
}
