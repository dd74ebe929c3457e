//! One thread of a run: connects its clients, then serves whichever has something to do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token, Waker};
use plinth_connect::{Address, Opened};
use plinth_script::{Prng, ThreadSeeds};
use plinth_thread::CpuTime;
use plinth_wire::frontend;
use rustix::io::Errno;

use crate::client::Client;
use crate::config::{Config, nanoseconds};
use crate::connecting::Connected;
use crate::context::Context;
use crate::control::Control;
use crate::errors::Place;
use crate::link::Link;
use crate::program::Programs;
use crate::readiness::Alarm;
use crate::recorder::Recorder;
use crate::report::Report;

/// Bytes read at once; a reply may be longer.
const READ_BYTES: usize = 64 * 1024;

/// How often one client reads before the others have their turn.
const READS_AT_ONCE: usize = 16;

/// Tokens of what is not a client.
const WAKER: Token = Token(usize::MAX);
const ALARM: usize = usize::MAX - 1;

/// What a thread is given.
#[derive(Debug)]
pub(crate) struct Assignment<'a> {
    pub(crate) thread: usize,
    pub(crate) config: &'a Config,
    pub(crate) addresses: &'a [Address],
    pub(crate) programs: &'a Programs,
    pub(crate) control: &'a Control,
    pub(crate) seeds: &'a ThreadSeeds,
    /// By client number.
    pub(crate) client_seeds: &'a [Prng],
}

impl Assignment<'_> {
    /// Runs the load with the clients that connected, from `started` on.
    pub(crate) fn run(&self, connected: Connected, started: Instant) -> io::Result<Report> {
        let mut worker = Worker::new(self, connected, started)?;
        worker.serve_all()?;
        Ok(worker.into_report())
    }
}

struct Worker<'a> {
    assignment: &'a Assignment<'a>,
    started: Instant,
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
    /// When clients that are still busy are cut off.
    cut_off_ns: u64,
    interrupted: bool,
    server_version: Option<String>,
}

impl<'a> Worker<'a> {
    fn new(
        assignment: &'a Assignment<'a>,
        connected: Connected,
        started: Instant,
    ) -> io::Result<Self> {
        let Assignment {
            thread,
            config,
            programs,
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
            programs.programs.len(),
            programs.statements.len(),
        );
        for (failure, count) in connected.failures {
            recorder.errors.add(Place::default(), failure, count, 0);
        }
        let measured_ns = config.duration_s.map_or(u64::MAX, nanoseconds);
        let context = Context {
            programs,
            recorder,
            registry: poll.registry().try_clone()?,
            choose: assignment.seeds.choose,
            sleepers: BinaryHeap::new(),
            waiting_for_turn: Vec::new(),
            ends_ns: measured_ns.saturating_add(control.timeline().warmup_ns),
            limit: config.transactions_per_client.unwrap_or(u64::MAX),
            max_tries: config.max_tries,
            bytes_sent: 0,
            rollback: frontend::query("ROLLBACK").map_err(io::Error::other)?,
            out: Vec::new(),
        };
        let server_version = connected
            .opened
            .first()
            .and_then(|(_, opened)| opened.session.parameter("server_version"));
        let server_version = server_version.map(str::to_owned);
        let mut clients = Vec::new();
        for (index, (number, Opened { socket, session })) in
            connected.opened.into_iter().enumerate()
        {
            let link = Link::new(socket, index, poll.registry())?;
            let random = assignment.client_seeds[number];
            clients.push(Client::new(
                index,
                link,
                session.scanner,
                random,
                number,
                programs,
            ));
        }
        Ok(Self {
            assignment,
            started,
            last_ns: 0,
            context,
            clients_open: clients.len(),
            clients,
            poll,
            alarm,
            buffer: vec![0; READ_BYTES],
            bytes_received: 0,
            unread: Vec::new(),
            cut_off_ns: u64::MAX,
            interrupted: false,
            server_version,
        })
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Reads the clock, once for everything that one event brings about.
    #[inline]
    fn tick(&mut self) -> u64 {
        self.last_ns = self.now_ns();
        self.context.recorder.advance(self.last_ns);
        self.last_ns
    }

    fn serve_all(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(self.clients.len().clamp(8, 1024) + 2);
        for index in 0..self.clients.len() {
            let now_ns = self.tick();
            self.with_client(index, |client, context| client.start(context, now_ns));
        }
        loop {
            self.watch_for_the_end();
            self.publish();
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
        for (index, to_the_end) in std::mem::take(&mut self.unread) {
            self.read(index, to_the_end, &mut batch_began_ns);
        }
        for event in events {
            let index = event.token().0;
            if index >= self.clients.len() {
                // The waker or the alarm: what they are about is looked at after the clients.
                self.tick();
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
            let received = self.clients[index].link().receive(&mut self.buffer);
            let now_ns = self.tick();
            let lag_ns = now_ns - *batch_began_ns.get_or_insert(now_ns);
            self.context.recorder.lag.record(lag_ns);
            let (bytes, error) = match received {
                Ok(bytes) => (bytes, None),
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => continue,
                Err(errno) => (0, Some(errno)),
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
            self.context.recorder.lag.record(now_ns - until_ns);
            self.with_client(index, |client, context| client.resume(context, now_ns));
        }
    }

    /// Lets clients whose scripts never wait run once each.
    fn give_turns(&mut self) {
        for index in std::mem::take(&mut self.context.waiting_for_turn) {
            let now_ns = self.tick();
            self.with_client(index, |client, context| client.resume(context, now_ns));
        }
    }

    /// Heeds a stop, and cuts off who has not come to an end in time after it.
    fn watch_for_the_end(&mut self) {
        let now_ns = self.last_ns;
        let is_new = self.cut_off_ns == u64::MAX && self.clients_open > 0;
        if is_new && self.assignment.control.is_stopping() {
            self.interrupted |= now_ns < self.context.ends_ns;
            self.context.ends_ns = self.context.ends_ns.min(now_ns);
            self.cut_off_ns =
                now_ns.saturating_add(nanoseconds(self.assignment.config.stop_timeout_s));
        }
        if now_ns >= self.cut_off_ns {
            self.interrupted = true;
            for client in &mut self.clients {
                client.cut_off(&mut self.context);
            }
            self.clients_open = 0;
        }
    }

    fn publish(&self) {
        self.assignment.control.publish(
            self.assignment.thread,
            &self.context.recorder.totals,
            self.clients_open,
        );
    }

    fn into_report(mut self) -> Report {
        let end_ns = self.now_ns();
        self.context.recorder.end(end_ns);
        self.publish();
        Report {
            recorder: self.context.recorder,
            end_ns,
            interrupted: self.interrupted,
            cpu: CpuTime::default(),
            bytes_sent: self.context.bytes_sent,
            bytes_received: self.bytes_received,
            server_version: self.server_version,
        }
    }
}
