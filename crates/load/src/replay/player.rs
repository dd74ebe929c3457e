//! One thread of a replay: hands each recorded statement to its session when it is due, and serves the connections.

mod connections;
mod due;
mod exchange;
mod outcomes;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Registry, Token, Waker};
use plinth_connect::Opened;
use plinth_log::{Statements, most_at_once};
use plinth_thread::CpuTime;

use crate::assignment::Assignment;
use crate::cancelling::cancel_all;
use crate::clock::Clock;
use crate::connecting::Connected;
use crate::errors::Place;
use crate::readiness::Alarm;
use crate::recorder::{Outcome, Recorder, Scope};
use crate::recording::{LEAD_NS, Replay};
use crate::replay::ahead::Ahead;
use crate::replay::connection::Connection;
use crate::replay::statement::{Next, Waiting};
use crate::report::{ReplayCounts, Report};
use crate::seconds::nanoseconds;
use crate::started::Started;

/// Bytes read at once; a reply may be longer.
const READ_BYTES: usize = 64 * 1024;
/// How long before a statement is due, at the recording's speed, it may be sent if it follows another one without a pause.
const MOST_EARLY_NS: f64 = 2e6;

const WAKER: Token = Token(usize::MAX);
const ALARM: usize = usize::MAX - 1;

impl Assignment<'_> {
    /// Replays this thread's sessions, from `started` on. `None`: the run was stopped before that.
    pub(crate) fn replay(
        &self,
        replay: &Replay,
        connected: Connected,
        started: Started,
    ) -> io::Result<Option<Report>> {
        let mut player = Player::new(self, replay, connected, started)?;
        if !started.wait(|| self.control.is_stopping()) {
            return Ok(None);
        }
        player.play()?;
        player.into_report().map(Some)
    }
}

/// What happens at a set time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A session is opened.
    Open(u32),
    /// Its connection is closed.
    Close(u32),
    /// A connection of a pool is tried again.
    Redial(usize),
}

/// A session of this thread.
#[derive(Debug, Default)]
struct Session {
    connection: Option<usize>,
    queue: VecDeque<Waiting>,
    /// Statements that have neither ended nor been given up.
    left: u64,
    /// It is among those that wait for a connection.
    waits: bool,
    /// When its last statement that was read had ended in the recording.
    recorded_end_us: Option<u64>,
    /// Number of its last statement that was held until it is due.
    held: Option<u64>,
}

struct Player<'a> {
    assignment: &'a Assignment<'a>,
    replay: &'a Replay,
    clock: Clock,
    last_ns: u64,
    recorder: Recorder,
    poll: Poll,
    registry: Registry,
    alarm: Alarm,
    buffer: Vec<u8>,
    /// Where messages are put together.
    out: Vec<u8>,

    statements: Statements,
    next: Option<Next>,
    /// The messages of `next`.
    next_messages: Vec<u8>,
    is_all_read: bool,
    /// What has been read and is not due yet, but for `next`.
    ahead: Ahead,
    /// How far ahead an open loop reads.
    early_ns: u64,
    /// By number of the recording; those of other threads stay empty.
    sessions: Vec<Session>,
    connections: Vec<Connection>,
    /// Places of connections that are closed.
    vacant: Vec<usize>,
    /// Connections of a pool that nobody uses.
    free: Vec<usize>,
    /// Spare connections from before the beginning.
    spare: Vec<Opened>,
    /// Sessions that wait for a connection, in turn.
    waiting: VecDeque<u32>,
    /// Connections that are being opened, and those that will be.
    dialing: Vec<usize>,
    to_dial: VecDeque<usize>,
    timers: BinaryHeap<Reverse<(u64, Timer)>>,
    /// Connections that left something unread for the others' sake, and whether they are read to their end.
    unread: Vec<(usize, bool)>,
    /// Bytes of messages that wait.
    queued_bytes: usize,
    /// Statements that wait or are under way.
    pending: u64,
    /// Those that are under way.
    busy: u64,
    open: usize,
    /// How many may be open at once in a closed loop without a pool: as many as when it was recorded.
    most_open: usize,

    counts: ReplayCounts,
    own_statements: u64,
    handed: u64,
    ends_ns: u64,
    cut_off_ns: u64,
    interrupted: bool,
    bytes_sent: u64,
    bytes_received: u64,
    server_transactions: u64,
    server_version: Option<String>,
    first_start_ns: Option<u64>,
    cpu_before: Option<CpuTime>,
}

impl<'a> Player<'a> {
    fn new(
        assignment: &'a Assignment<'a>,
        replay: &'a Replay,
        connected: Connected,
        started: Started,
    ) -> io::Result<Self> {
        let control = assignment.control;
        let poll = Poll::new()?;
        control.set_waker(assignment.thread, Waker::new(poll.registry(), WAKER)?);
        let alarm = Alarm::new(poll.registry(), ALARM)?;
        let scope = Scope {
            scripts: replay.kinds(),
            statements: 0,
            is_open_loop: replay.is_open_loop(),
            latency_limit_ns: u64::MAX,
        };
        let mut recorder = Recorder::new(
            assignment.thread,
            control.timeline(),
            control.series(),
            scope,
        );
        recorder.keep_recorded();
        for (failure, count) in connected.failures {
            recorder.errors.add(Place::default(), failure, count, 0);
        }
        let mut player = Self {
            assignment,
            replay,
            clock: Clock::of(started.at),
            last_ns: 0,
            recorder,
            registry: poll.registry().try_clone()?,
            poll,
            alarm,
            buffer: vec![0; READ_BYTES],
            out: Vec::new(),
            statements: replay.file.statements().map_err(io::Error::other)?,
            next: None,
            next_messages: Vec::new(),
            is_all_read: false,
            ahead: Ahead::default(),
            early_ns: replay
                .speed
                .map_or(0, |speed| (MOST_EARLY_NS / speed) as u64),
            sessions: Vec::new(),
            connections: Vec::new(),
            vacant: Vec::new(),
            free: Vec::new(),
            spare: connected
                .opened
                .into_iter()
                .map(|(_, opened)| opened)
                .collect(),
            waiting: VecDeque::new(),
            dialing: Vec::new(),
            to_dial: VecDeque::new(),
            timers: BinaryHeap::new(),
            unread: Vec::new(),
            queued_bytes: 0,
            pending: 0,
            busy: 0,
            open: 0,
            most_open: 0,
            counts: ReplayCounts::default(),
            own_statements: 0,
            handed: 0,
            ends_ns: assignment.ends_ns(control.timeline()),
            cut_off_ns: u64::MAX,
            interrupted: false,
            bytes_sent: 0,
            bytes_received: 0,
            server_transactions: 0,
            server_version: connected.server_version,
            first_start_ns: None,
            cpu_before: None,
        };
        player.plan_sessions();
        player.note_cpu()?;
        Ok(player)
    }

    fn plan_sessions(&mut self) {
        let replay = self.replay;
        let recorded = &replay.file.sessions;
        let (threads, number) = (
            self.assignment.config.threads(),
            self.assignment.thread_of_load,
        );
        self.sessions.resize_with(recorded.len(), Session::default);
        let own = || (number..recorded.len()).step_by(threads);
        let spans = own().map(|session| (recorded[session].first_us, recorded[session].last_us));
        self.most_open = most_at_once(spans) as usize;
        let mut timers = Vec::new();
        for session in own() {
            let one = &recorded[session];
            self.own_statements += one.statements;
            self.sessions[session].left = one.statements;
            if replay.is_open_loop() && !replay.pooled {
                let first_ns = self.replay.due_ns(one.first_us);
                // One whose beginning is not in the log was there before its first statement.
                let at_ns = if one.has_beginning {
                    first_ns
                } else {
                    first_ns.saturating_sub(LEAD_NS)
                };
                timers.push(Reverse((at_ns, Timer::Open(session as u32))));
            }
        }
        self.timers = timers.into();
        if self.replay.pooled {
            for opened in std::mem::take(&mut self.spare) {
                let place = self.vacant_place();
                if self.give(place, opened) {
                    self.free.push(place);
                }
            }
        }
    }

    #[inline]
    fn tick(&mut self) -> u64 {
        self.last_ns = self.clock.now_ns();
        self.recorder.advance(self.last_ns);
        self.last_ns
    }

    #[inline(never)] // what instructions per transaction are counted in
    fn play(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut row_ends_ns = 0;
        self.tick();
        loop {
            self.fire_timers();
            self.hand_out()?;
            self.dial_more();
            self.watch_for_the_end();
            self.publish();
            if self.recorder.second_ends_ns() != row_ends_ns {
                row_ends_ns = self.recorder.second_ends_ns();
                self.ends_ns = self
                    .ends_ns
                    .min(self.assignment.ends_ns(self.recorder.timeline()));
                self.note_cpu()?;
            }
            if self.is_over() {
                return Ok(());
            }
            let next_ns = self.next_ns();
            let is_busy = !self.unread.is_empty() || next_ns <= self.last_ns || self.can_dial();
            if !is_busy {
                self.alarm.set(next_ns, self.last_ns)?;
            }
            let wait = if is_busy { Some(Duration::ZERO) } else { None };
            match self.poll.poll(&mut events, wait) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            self.serve(&events);
        }
    }

    /// Whether there is nothing left to do.
    fn is_over(&self) -> bool {
        let has_ended =
            self.is_all_read && self.next.is_none() && self.ahead.is_empty() && self.pending == 0;
        has_ended && (self.is_past_the_end() || !self.has_closings())
    }

    fn is_past_the_end(&self) -> bool {
        self.last_ns >= self.ends_ns
    }

    /// Whether connections of the recording are still to be closed.
    fn has_closings(&self) -> bool {
        self.timers
            .iter()
            .any(|Reverse((_, timer))| matches!(timer, Timer::Close(_)))
    }

    /// When there is something to do even without an event.
    fn next_ns(&self) -> u64 {
        let timer_ns = self.timers.peek().map_or(u64::MAX, |timer| timer.0.0);
        let due_ns = match &self.next {
            Some(next) if self.replay.is_open_loop() => next.due_ns.saturating_sub(self.early_ns),
            None if self.is_all_read => u64::MAX,
            _ if self.replay.is_open_loop() || self.reads_ahead() => 0,
            // More is read once something of what is queued has been sent.
            _ => u64::MAX,
        };
        let dial_ns = self
            .dialing
            .iter()
            .filter_map(|&place| self.connections[place].dialing.as_ref()?.wake_at())
            .min()
            .map_or(u64::MAX, |at| {
                let wait = at.saturating_duration_since(Instant::now());
                self.last_ns.saturating_add(wait.as_nanos() as u64)
            });
        let end_ns = if self.is_past_the_end() {
            u64::MAX
        } else {
            self.ends_ns
        };
        let held_ns = self.ahead.due_ns().unwrap_or(u64::MAX);
        [timer_ns, due_ns, held_ns, dial_ns, end_ns, self.cut_off_ns]
            .into_iter()
            .min()
            .unwrap_or(u64::MAX)
            .min(self.recorder.second_ends_ns())
    }

    fn fire_timers(&mut self) {
        while let Some(&Reverse((at_ns, timer))) = self.timers.peek() {
            if at_ns > self.last_ns {
                return;
            }
            self.timers.pop();
            if self.is_past_the_end() {
                continue;
            }
            match timer {
                Timer::Open(session) => {
                    if self.sessions[session as usize].connection.is_none() {
                        self.open_for(session);
                    }
                }
                Timer::Close(session) => self.close_session(session),
                Timer::Redial(place) => self.dial(place),
            }
        }
    }

    /// Obeys a stop and the end of the run: what has not begun does not begin any more.
    fn watch_for_the_end(&mut self) {
        let now_ns = self.last_ns;
        if self.cut_off_ns == u64::MAX && self.assignment.control.is_stopping() {
            self.interrupted |= !self.is_over();
            self.ends_ns = self.ends_ns.min(now_ns);
            self.cut_off_ns =
                now_ns.saturating_add(nanoseconds(self.assignment.config.stop_timeout_s));
        }
        if self.is_past_the_end() {
            self.give_up_what_waits();
        }
        if now_ns >= self.cut_off_ns && self.pending > 0 {
            self.interrupted = true;
            let mut cancellers = Vec::new();
            for place in 0..self.connections.len() {
                let canceller = self.connections[place].canceller.take();
                if let (Some(current), _) = self.connections[place].close() {
                    cancellers.extend(canceller);
                    self.pending -= 1;
                    self.busy -= 1;
                    self.record(&current.sent, current.began_ns, Outcome::Open);
                }
            }
            cancel_all(&cancellers, &mut self.recorder, self.last_ns);
        }
    }

    /// Gives up what has not begun, and closes connections that are free: one in a transaction may hold what others wait for.
    fn give_up_what_waits(&mut self) {
        for connection in self.connections.iter_mut().filter(|one| one.is_idle()) {
            connection.close();
        }
        self.is_all_read = true;
        self.waiting.clear();
        self.to_dial.clear();
        let mut given_up = 0;
        if self.next.take().is_some() {
            self.next_messages.clear();
        }
        self.ahead.clear();
        if self.queued_bytes > 0 {
            for session in &mut self.sessions {
                given_up += session.queue.len() as u64;
                session.queue.clear();
            }
            self.queued_bytes = 0;
        }
        self.pending -= given_up;
        self.recorder.never_begun(given_up);
    }

    fn note_cpu(&mut self) -> io::Result<()> {
        if self.cpu_before.is_none() && self.recorder.is_measuring() {
            self.cpu_before = Some(CpuTime::of_this_thread()?);
        }
        Ok(())
    }

    fn publish(&self) {
        self.assignment
            .control
            .publish(self.assignment.thread, self.recorder.so_far(), self.open);
    }

    fn into_report(mut self) -> io::Result<Report> {
        let end_ns = self.tick();
        for connection in &mut self.connections {
            connection.close();
        }
        self.open = 0;
        self.counts.statements = self.own_statements;
        self.counts.not_reached = self.own_statements - self.handed;
        self.recorder.end(end_ns);
        self.publish();
        let cpu = CpuTime::of_this_thread()?;
        Ok(Report {
            recorder: self.recorder,
            end_ns,
            interrupted: self.interrupted,
            cpu: self
                .cpu_before
                .map_or_else(CpuTime::default, |before| cpu - before),
            bytes_sent: self.bytes_sent,
            server_transactions: self.server_transactions,
            bytes_received: self.bytes_received,
            clients_aborted: 0,
            server_version: self.server_version,
            first_start_ns: self.first_start_ns,
            replay: Some(self.counts),
        })
    }
}
