//! One thread of a run: connects its clients, then serves whichever has something to do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::time::Duration;

use mio::{Events, Poll, Token, Waker};
use plinth_thread::CpuTime;
use plinth_wire::frontend;

use crate::arrivals::Arrivals;
use crate::assignment::Assignment;
use crate::cancelling::cancel_all;
use crate::client::Client;
use crate::clock::Clock;
use crate::commit_ledger::{Ledger, NewLedger};
use crate::connecting::Connected;
use crate::context::Context;
use crate::deck::Deck;
use crate::errors::Place;
use crate::log::Log;
use crate::pacing::Pacing;
use crate::program::Programs;
use crate::readiness::Alarm;
use crate::recorder::{Recorder, Scope};
use crate::report::Report;
use crate::seconds::nanoseconds;
use crate::shell;
use crate::started::Started;

/// Bytes read at once; a reply may be longer.
const READ_BYTES: usize = 64 * 1024;

/// How often one client reads before the others have their turn.
const READS_AT_ONCE: usize = 16;

/// Tokens of what is not a client.
const WAKER: Token = Token(usize::MAX);
const ALARM: usize = usize::MAX - 1;

impl Assignment<'_> {
    /// Runs the load with the clients that connected, from `started` on. `None`: it was stopped before that.
    pub(crate) fn run(
        &self,
        programs: &Programs,
        connected: Connected,
        log: Option<File>,
        ledger: Option<NewLedger>,
        started: Started,
    ) -> io::Result<Option<Report>> {
        // Before a part begins: what is made here takes a while, by which it would begin late.
        let mut worker = Worker::new(self, programs, connected, log, ledger, started)?;
        if !started.wait(|| self.control.is_stopping()) {
            return Ok(None);
        }
        worker.serve_all()?;
        worker.into_report().map(Some)
    }
}

struct Worker<'a> {
    assignment: &'a Assignment<'a>,
    /// The last time that the clock was read.
    last_ns: u64,
    context: Context<'a>,
    clients: Vec<Client>,
    clients_open: usize,
    poll: Poll,
    alarm: Alarm,
    buffer: Vec<u8>,
    bytes_received: u64,
    /// Clients that left something unread for the others' sake, and whether their connections have ended.
    unread: Vec<(usize, bool)>,
    /// Emptied lists, for the memory that they have.
    spare_unread: Vec<(usize, bool)>,
    spare_turns: Vec<usize>,
    /// When clients that are still busy are cut off.
    cut_off_ns: u64,
    interrupted: bool,
    server_version: Option<String>,
    first_start_ns: Option<u64>,
    /// What the thread had used when the measured phase began; nothing until then.
    cpu_before: Option<CpuTime>,
}

impl<'a> Worker<'a> {
    fn new(
        assignment: &'a Assignment<'a>,
        programs: &'a Programs,
        connected: Connected,
        log: Option<File>,
        ledger: Option<NewLedger>,
        started: Started,
    ) -> io::Result<Self> {
        let Assignment {
            thread,
            config,
            control,
            ..
        } = *assignment;
        let poll = Poll::new()?;
        control.set_waker(thread, Waker::new(poll.registry(), WAKER)?);
        let alarm = Alarm::new(poll.registry(), ALARM)?;
        let mut recorder = Recorder::new(
            thread,
            control.timeline(),
            control.series(),
            Scope {
                scripts: programs.programs.len(),
                statements: programs.statements.len(),
                is_open_loop: config.rate.is_some(),
                latency_limit_ns: config.latency_limit_ns(),
            },
        );
        if config.command_latencies {
            recorder.time_commands(programs.steps());
        }
        for (failure, count) in connected.failures {
            recorder.errors.add(Place::default(), failure, count, 0);
        }
        let arrivals = config.rate.as_ref().map(|rate| {
            let warmup_ns = control.timeline().warmup_ns;
            let (number, threads) = (assignment.thread_of_load, config.threads());
            if config.part.is_some() {
                Arrivals::shared(rate, warmup_ns, number, threads, assignment.shared_throttle)
            } else {
                Arrivals::new(rate, warmup_ns, number, threads, assignment.seeds.throttle)
            }
        });
        let clock = Clock::of(started.at);
        let ledger = assignment.begin_ledger(ledger, clock, started);
        let context = Context {
            programs,
            clock,
            recorder,
            registry: poll.registry().try_clone()?,
            control,
            dialer: assignment.dialer,
            log: assignment.log(log, started),
            ledger,
            shell_user: config.shell_user.as_ref(),
            reconnect: config.reconnect,
            retry_connect_ns: config.retry_connect_ns(),
            replace_terminated: config.replace_terminated,
            abort_on_error: config.abort_on_error,
            exit_on_abort: config.exit_on_abort,
            verbose_errors: config.verbose_errors,
            clients_aborted: 0,
            choose: assignment.seeds.choose,
            deck: config.deck.then(|| Deck::new(&programs.weights)),
            arrivals,
            // There are no arrivals then, which draw from the same.
            pacing: Pacing::new(&config.scripts, assignment.seeds.throttle),
            latency_limit_ns: config.latency_limit_ns(),
            sleepers: BinaryHeap::new(),
            waiting_for_turn: Vec::new(),
            ends_ns: assignment.ends_ns(control.timeline()),
            limit: config.transactions_per_client.unwrap_or(u64::MAX),
            max_tries: config.max_tries,
            bytes_sent: 0,
            server_transactions: 0,
            rollback: frontend::query("ROLLBACK").map_err(io::Error::other)?,
            out: Vec::new(),
        };
        let mut clients = Vec::new();
        let client = |index, number| {
            let random = assignment.client_seeds[number];
            let first_number = config
                .ledger
                .as_ref()
                .map_or(0, |ledger| ledger.first_number);
            Client::new(index, number, random, programs, first_number)
        };
        if config.reconnect {
            // Those that are there have shown that it is possible.
            let numbers = assignment.numbers_to_connect(!connected.opened.is_empty());
            clients.extend(
                numbers
                    .enumerate()
                    .map(|(index, number)| client(index, number)),
            );
        } else {
            for (index, (number, opened)) in connected.opened.into_iter().enumerate() {
                clients.push(client(index, number));
                clients[index].give(opened, poll.registry())?;
            }
        }
        let mut worker = Self {
            assignment,
            last_ns: 0,
            context,
            clients_open: clients.len(),
            clients,
            poll,
            alarm,
            buffer: vec![0; READ_BYTES],
            bytes_received: 0,
            unread: Vec::new(),
            spare_unread: Vec::new(),
            spare_turns: Vec::new(),
            cut_off_ns: u64::MAX,
            interrupted: false,
            server_version: connected.server_version,
            first_start_ns: None,
            cpu_before: None,
        };
        worker.note_cpu()?;
        Ok(worker)
    }

    /// Reads the clock, once for everything that one event brings about.
    #[inline]
    fn tick(&mut self) -> u64 {
        self.last_ns = self.context.clock.now_ns();
        self.context.recorder.advance(self.last_ns);
        self.last_ns
    }

    #[inline(never)] // what instructions per transaction are counted in
    fn serve_all(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(self.clients.len().clamp(8, 1024) + 2);
        for index in 0..self.clients.len() {
            let now_ns = self.tick();
            self.first_start_ns.get_or_insert(now_ns);
            self.with_client(index, |client, context| client.start(context, now_ns));
        }
        let mut row_ends_ns = 0;
        loop {
            self.watch_for_the_end();
            self.publish();
            if self.context.recorder.second_ends_ns() != row_ends_ns {
                row_ends_ns = self.context.recorder.second_ends_ns();
                self.end_at(self.assignment.ends_ns(self.context.recorder.timeline()));
                self.note_cpu()?;
                self.check_each_second()?;
            }
            if self.clients_open == 0 {
                return Ok(());
            }
            let next_sleeper_ns = self
                .context
                .sleepers
                .peek()
                .map_or(u64::MAX, |sleeper| sleeper.0.0);
            let next_ns = self
                .context
                .recorder
                .second_ends_ns()
                .min(next_sleeper_ns)
                .min(self.cut_off_ns);
            self.alarm.set(next_ns, self.last_ns)?;
            let is_idle = self.context.waiting_for_turn.is_empty() && self.unread.is_empty();
            let wait = if is_idle { None } else { Some(Duration::ZERO) };
            match self.poll.poll(&mut events, wait) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            self.serve(&events);
            self.wake_sleepers();
            self.give_turns();
        }
    }

    fn with_client(&mut self, index: usize, act: impl FnOnce(&mut Client, &mut Context<'_>)) {
        let client = &mut self.clients[index];
        if client.is_open() {
            act(client, &mut self.context);
            self.clients_open -= usize::from(!client.is_open());
        }
    }

    fn serve(&mut self, events: &Events) {
        let mut batch_began_ns = None;
        self.read_on(&mut batch_began_ns);
        for event in events {
            let index = event.token().0;
            if let Some(index) = shell::client_of(index, self.clients.len()) {
                let now_ns = self.tick();
                self.with_client(index, |client, context| {
                    client.on_shell_ready(context, now_ns)
                });
                continue;
            }
            if index >= self.clients.len() {
                // The waker or the alarm: what they are about is looked at after the clients.
                self.tick();
                continue;
            }
            if self.clients[index].is_connecting() {
                let now_ns = self.tick();
                self.with_client(index, |client, context| {
                    client.go_on_connecting(context, now_ns);
                });
                continue;
            }
            if event.is_writable() {
                let now_ns = self.tick();
                self.with_client(index, |client, context| client.writable(context, now_ns));
            }
            if event.is_readable() || event.is_read_closed() || event.is_error() {
                self.read(
                    index,
                    event.is_read_closed() || event.is_error(),
                    &mut batch_began_ns,
                );
            }
        }
    }

    /// Reads on what was left unread for the others' sake.
    #[inline]
    fn read_on(&mut self, batch_began_ns: &mut Option<u64>) {
        if self.unread.is_empty() {
            return;
        }
        let mut unread = std::mem::take(&mut self.spare_unread);
        std::mem::swap(&mut unread, &mut self.unread);
        for (index, to_the_end) in unread.drain(..) {
            self.read(index, to_the_end, batch_began_ns);
        }
        self.spare_unread = unread;
    }

    /// Reads what there is. A read that fills less than the buffer has emptied the socket; but when the server
    /// has closed it, there will be no further event, and the end has to be read too.
    #[inline]
    fn read(&mut self, index: usize, to_the_end: bool, batch_began_ns: &mut Option<u64>) {
        let mut reads = 0;
        while self.clients[index].is_open() {
            reads += 1;
            if reads > READS_AT_ONCE {
                self.unread.push((index, to_the_end));
                return;
            }
            let received = self.clients[index].read(&mut self.buffer);
            let now_ns = self.tick();
            let lag_ns = now_ns - *batch_began_ns.get_or_insert(now_ns);
            self.context.recorder.loop_lag.record(lag_ns);
            let (bytes, error) = match received {
                Ok(bytes) => (bytes, None),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => (0, Some(error)),
            };
            self.bytes_received += bytes as u64;
            let client = &mut self.clients[index];
            if bytes > 0 {
                client.receive(&self.buffer[..bytes], &mut self.context, now_ns);
            } else {
                client.hung_up(error, &mut self.context, now_ns);
            }
            self.clients_open -= usize::from(!client.is_open());
            if bytes < self.buffer.len() && !to_the_end {
                return;
            }
        }
    }

    /// Wakes who should be awake by now; who falls asleep again waits for the next round, however short the sleep.
    fn wake_sleepers(&mut self) {
        let due_ns = self.last_ns;
        while let Some(&Reverse((until_ns, index))) = self.context.sleepers.peek() {
            if until_ns > due_ns {
                return;
            }
            self.context.sleepers.pop();
            let now_ns = self.tick();
            self.context.recorder.loop_lag.record(now_ns - until_ns);
            self.with_client(index, |client, context| client.resume(context, now_ns));
        }
    }

    /// Lets clients whose scripts never wait run once each.
    fn give_turns(&mut self) {
        if self.context.waiting_for_turn.is_empty() {
            return;
        }
        let mut turns = std::mem::take(&mut self.spare_turns);
        std::mem::swap(&mut turns, &mut self.context.waiting_for_turn);
        for index in turns.drain(..) {
            let now_ns = self.tick();
            self.with_client(index, |client, context| client.resume(context, now_ns));
        }
        self.spare_turns = turns;
    }

    /// Obeys a stop, and closes the connections of clients that have not finished in time after it.
    fn watch_for_the_end(&mut self) {
        let now_ns = self.last_ns;
        let is_new = self.cut_off_ns == u64::MAX && self.clients_open > 0;
        if is_new && self.assignment.control.is_stopping() {
            self.interrupted |= now_ns < self.context.ends_ns;
            self.end_at(now_ns);
            self.cut_off_ns =
                now_ns.saturating_add(nanoseconds(self.assignment.config.stop_timeout_s));
        }
        if now_ns >= self.cut_off_ns {
            self.interrupted = true;
            let clients = self.clients.iter_mut();
            let cancellers: Vec<_> = clients
                .filter_map(|client| client.cut_off(&mut self.context, now_ns))
                .collect();
            self.clients_open = 0;
            cancel_all(&cancellers, &mut self.context.recorder, self.last_ns);
        }
    }

    /// Moves the end of the run to `ends_ns`, if that is earlier; clients that wait for what is due only later end.
    fn end_at(&mut self, ends_ns: u64) {
        if ends_ns < self.context.ends_ns {
            self.context.ends_ns = ends_ns;
            for client in self.clients.iter_mut().filter(|client| client.is_open()) {
                client.stop_waiting(&self.context);
                self.clients_open -= usize::from(!client.is_open());
            }
        }
    }

    /// Notes the CPU time that the thread has used when the measured phase begins.
    fn note_cpu(&mut self) -> io::Result<()> {
        if self.cpu_before.is_none() && self.context.recorder.is_measuring() {
            self.cpu_before = Some(CpuTime::of_this_thread()?);
        }
        Ok(())
    }

    /// What is checked once a second: connections that time out, and a log that cannot be written.
    fn check_each_second(&mut self) -> io::Result<()> {
        if self.context.connects() {
            for index in 0..self.clients.len() {
                let now_ns = self.last_ns;
                self.with_client(index, |client, context| {
                    client.go_on_connecting(context, now_ns);
                });
            }
        }
        match self.context.log.as_mut().and_then(Log::take_error) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn publish(&self) {
        self.assignment.control.publish(
            self.assignment.thread,
            self.context.recorder.so_far(),
            self.clients_open,
        );
    }

    /// Counts the arrivals that no client was free for before the run ended.
    fn count_what_was_due(&mut self, end_ns: u64) {
        // With a limit of transactions there is no time up to which more were asked for.
        if self.context.ends_ns < u64::MAX
            && let Some(arrivals) = &mut self.context.arrivals
        {
            let due = arrivals.count_until(end_ns.min(self.context.ends_ns));
            self.context.recorder.never_begun(due);
        }
    }

    fn into_report(mut self) -> io::Result<Report> {
        let end_ns = self.tick();
        self.count_what_was_due(end_ns);
        self.context.recorder.end(end_ns);
        self.publish();
        if let Some(log) = &mut self.context.log {
            log.take_error().map_or(Ok(()), Err)?;
            log.finish(end_ns)?;
        }
        if let Some(Err(error)) = self.context.ledger.take().map(Ledger::finish) {
            self.assignment.control.fail_ledger(error);
        }
        let cpu = CpuTime::of_this_thread()?;
        Ok(Report {
            recorder: self.context.recorder,
            end_ns,
            interrupted: self.interrupted,
            cpu: self
                .cpu_before
                .map_or_else(CpuTime::default, |before| cpu - before),
            bytes_sent: self.context.bytes_sent,
            server_transactions: self.context.server_transactions,
            bytes_received: self.bytes_received,
            clients_aborted: self.context.clients_aborted,
            server_version: self.server_version,
            first_start_ns: self.first_start_ns,
            replay: None,
        })
    }
}
