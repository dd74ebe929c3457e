//! One thread of a replay: hands each recorded statement to its session when it is due, and serves the connections.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Registry, Token, Waker};
use plinth_connect::Opened;
use plinth_log::{RecordedStatement, Statements, most_at_once};
use plinth_thread::CpuTime;

use crate::assignment::Assignment;
use crate::cancelling::cancel_all;
use crate::clock::Clock;
use crate::connecting::Connected;
use crate::errors::{ErrorKind, Failure, Place};
use crate::link::{DialError, Dialing};
use crate::readiness::Alarm;
use crate::recorder::{Ended, Outcome, Recorder, Scope};
use crate::replay::ahead::Ahead;
use crate::replay::answer::{follows_another, is_refused_write};
use crate::replay::connection::{Connection, Told};
use crate::replay::statement::{Sent, Waiting, write_prepare, write_statement};
use crate::replay::{Replay, ReplayCounts};
use crate::report::Report;
use crate::seconds::nanoseconds;
use crate::started::Started;

/// Bytes read at once; a reply may be longer.
const READ_BYTES: usize = 64 * 1024;
/// How often one connection reads before the others have their turn.
const READS_AT_ONCE: usize = 16;
/// The recording begins this long after the load, so that sessions that were open before it are connected.
const LEAD_NS: u64 = 1_000_000_000;
/// How many connections a thread opens at once, as many as at the beginning of other loads.
const DIALS_AT_ONCE: usize = 32;
/// How long after a failure a connection of a pool is opened again.
const REDIAL_PAUSE_NS: u64 = 1_000_000_000;
/// How much a closed loop reads ahead.
const READ_AHEAD_BYTES: usize = 64 << 20;
/// A shorter pause between two statements of a session is none: the times of a log have milliseconds.
const RESOLUTION_US: u64 = 1_000;
/// How long before a statement is due, at the recording's speed, it may be sent if it follows another one without a pause.
const MOST_EARLY_NS: f64 = 2e6;
/// How many statements are handed out before the sockets are looked at.
const HANDED_AT_ONCE: usize = 256;

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

/// A statement that has been read and is not due yet.
struct Next {
    due_ns: u64,
    session: u32,
    sent: Sent,
    /// Its session sent it as soon as the one before had ended.
    follows: bool,
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

    fn due_ns(&self, recorded_us: u64) -> u64 {
        due_ns(self.replay, recorded_us)
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
                let first_ns = self.due_ns(one.first_us);
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

    /// Hands out the statements that are due.
    fn hand_out(&mut self) -> io::Result<()> {
        for _ in 0..HANDED_AT_ONCE {
            if let Some(held) = self.ahead.take_due(self.last_ns) {
                self.hand_to(held.session, held.first.sent, &held.first.messages);
                for follower in held.followers {
                    self.hand_to(held.session, follower.sent, &follower.messages);
                }
                continue;
            }
            if self.next.is_none() && !self.read_next()? {
                return Ok(());
            }
            let Some(next) = &self.next else {
                return Ok(());
            };
            let is_in_reach = if self.replay.is_open_loop() {
                next.due_ns <= self.last_ns.saturating_add(self.early_ns)
            } else {
                self.reads_ahead()
            };
            if !is_in_reach {
                return Ok(());
            }
            if let Some(next) = self.next.take() {
                let messages = std::mem::take(&mut self.next_messages);
                self.hand_or_hold(&next, &messages);
                self.next_messages = messages;
            }
        }
        Ok(())
    }

    /// Gives a statement to its session, or holds it until it is due. One that follows another without a pause goes where that is.
    fn hand_or_hold(&mut self, next: &Next, messages: &[u8]) {
        let own = &mut self.sessions[next.session as usize];
        let waiting = || Waiting {
            sent: next.sent,
            messages: messages.into(),
        };
        if next.follows
            && let Some(number) = own.held.filter(|&number| self.ahead.has(number))
        {
            return self.ahead.follow(number, waiting());
        }
        let is_early = self.replay.is_open_loop() && next.due_ns > self.last_ns;
        if is_early && !next.follows {
            own.held = Some(self.ahead.hold(next.due_ns, next.session, waiting()));
            return;
        }
        self.hand_to(next.session, next.sent, messages);
    }

    /// Whether a closed loop reads on. With a pool, all connections may be in transactions whose next statements are far ahead.
    fn reads_ahead(&self) -> bool {
        self.queued_bytes < READ_AHEAD_BYTES || self.busy == 0
    }

    /// Reads the next statement of this thread's sessions. Returns false at the end.
    fn read_next(&mut self) -> io::Result<bool> {
        while !self.is_all_read {
            let file = &self.replay.file;
            let threads = self.assignment.config.threads();
            let Some(statement) = self.statements.next(file).map_err(io::Error::other)? else {
                break;
            };
            if statement.session as usize % threads != self.assignment.thread_of_load {
                continue;
            }
            let own = &mut self.sessions[statement.session as usize];
            let end_us = own.recorded_end_us;
            let follows = end_us
                .is_some_and(|end_us| statement.start_us < end_us.saturating_add(RESOLUTION_US));
            let next = next_of(self.replay, &statement, follows);
            if next.due_ns >= self.ends_ns {
                break;
            }
            let took_us = statement.duration_us.unwrap_or(0);
            let ends_us = statement.start_us.saturating_add(took_us);
            own.recorded_end_us = Some(ends_us.max(end_us.unwrap_or(0)));
            let messages = &mut self.next_messages;
            messages.clear();
            write_statement(&statement, messages);
            self.next = Some(next);
            return Ok(true);
        }
        self.is_all_read = true;
        Ok(false)
    }

    /// Gives a statement to its session.
    fn hand_to(&mut self, session: u32, sent: Sent, messages: &[u8]) {
        self.handed += 1;
        self.pending += 1;
        let own = &mut self.sessions[session as usize];
        if own.queue.is_empty()
            && let Some(place) = own.connection
            && self.connections[place].is_idle()
        {
            return self.send(place, sent, messages);
        }
        self.queued_bytes += messages.len() + size_of::<Waiting>();
        own.queue.push_back(Waiting {
            sent,
            messages: messages.into(),
        });
        if own.connection.is_none() && !own.waits {
            self.connect_session(session);
        }
    }

    /// Gets a connection for a session that has something to send.
    fn connect_session(&mut self, session: u32) {
        if self.replay.pooled {
            match self.free.pop() {
                Some(place) => self.bind(place, session),
                None => self.wait_for_turn(session),
            }
        } else if self.replay.is_open_loop() || self.open < self.most_open.max(1) {
            self.open_for(session);
        } else {
            self.wait_for_turn(session);
        }
    }

    fn wait_for_turn(&mut self, session: u32) {
        self.sessions[session as usize].waits = true;
        self.waiting.push_back(session);
    }

    /// A connection of a pool serves a session until its transaction is over.
    fn bind(&mut self, place: usize, session: u32) {
        let own = &mut self.sessions[session as usize];
        own.waits = false;
        own.connection = Some(place);
        self.connections[place].session = Some(session);
        self.send_next(place);
    }

    /// Opens a connection for a session.
    fn open_for(&mut self, session: u32) {
        let place = self.vacant_place();
        self.connections[place].session = Some(session);
        let own = &mut self.sessions[session as usize];
        own.waits = false;
        own.connection = Some(place);
        match self.spare.pop() {
            Some(opened) => {
                if self.give(place, opened) {
                    self.send_next(place);
                }
            }
            None => self.dial(place),
        }
    }

    fn vacant_place(&mut self) -> usize {
        self.open += 1;
        self.vacant.pop().unwrap_or_else(|| {
            self.connections.push(Connection::default());
            self.connections.len() - 1
        })
    }

    /// Begins to open a connection, as soon as it has its turn.
    fn dial(&mut self, place: usize) {
        self.connections[place].dialing_since_ns = self.last_ns;
        self.to_dial.push_back(place);
    }

    /// Whether a connection waits for its turn, and has it.
    fn can_dial(&self) -> bool {
        self.dialing.len() < DIALS_AT_ONCE && !self.to_dial.is_empty()
    }

    /// Begins to open connections. Those that fail at once make room for others: not for all of them before the sockets and
    /// the clock are looked at.
    fn dial_more(&mut self) {
        for _ in 0..DIALS_AT_ONCE {
            if !self.can_dial() {
                return;
            }
            let Some(place) = self.to_dial.pop_front() else {
                return;
            };
            let dialing = Dialing::new(self.assignment.dialer, place);
            self.connections[place].dialing = Some(Box::new(dialing));
            self.dialing.push(place);
            self.go_on_dialing(place);
        }
    }

    fn go_on_dialing(&mut self, place: usize) {
        let Some(dialing) = &mut self.connections[place].dialing else {
            return;
        };
        let advanced = dialing.advance(&self.registry);
        let outcome = match advanced {
            Ok(None) => return,
            Ok(Some(opened)) => Ok(opened),
            Err(error) => Err(error),
        };
        self.dialing.retain(|one| *one != place);
        self.connections[place].dialing = None;
        match outcome {
            Ok(opened) => {
                let took_ns = self.last_ns - self.connections[place].dialing_since_ns;
                self.recorder.connected(took_ns);
                if self.give(place, opened) {
                    if self.connections[place].session.is_some() {
                        self.send_next(place);
                    } else {
                        self.release(place);
                    }
                }
            }
            Err(error) => self.not_connected(place, no_connection(error)),
        }
    }

    /// A place has got its connection. Returns false if it cannot be used.
    fn give(&mut self, place: usize, mut opened: Opened) -> bool {
        if self.server_version.is_none() {
            let version = opened.session.parameter("server_version");
            self.server_version = version.map(str::to_owned);
        }
        opened.session.parameters = Vec::new();
        let given = self.connections[place].opened(opened, place, &self.registry);
        self.counts.connections += 1;
        self.counts.connections_at_once = self.counts.connections_at_once.max(self.open as u64);
        match given {
            Ok(()) => true,
            Err(error) => {
                let failure = failure(ErrorKind::Connect, format!("cannot watch it: {error}"));
                self.not_connected(place, failure);
                false
            }
        }
    }

    /// There is no connection to be had: what waits for it has failed. One of a pool is tried again.
    fn not_connected(&mut self, place: usize, failure: Failure) {
        self.recorder
            .error(Place::default(), failure.clone(), self.last_ns);
        self.connections[place].close();
        let Some(session) = self.connections[place].session.take() else {
            let at_ns = self.last_ns + REDIAL_PAUSE_NS;
            self.timers.push(Reverse((at_ns, Timer::Redial(place))));
            return;
        };
        let own = &mut self.sessions[session as usize];
        own.connection = None;
        let given_up = std::mem::take(&mut own.queue);
        own.left -= given_up.len() as u64;
        for waiting in given_up {
            self.queued_bytes -= waiting.messages.len() + size_of::<Waiting>();
            self.pending -= 1;
            let began_ns = self.last_ns;
            self.record(&waiting.sent, began_ns, Outcome::Failed(failure.kind));
        }
        self.vacate(place);
    }

    /// Sends the statement that its session has waiting.
    fn send_next(&mut self, place: usize) {
        let Some(session) = self.connections[place].session else {
            return;
        };
        if let Some(waiting) = self.sessions[session as usize].queue.pop_front() {
            self.queued_bytes -= waiting.messages.len() + size_of::<Waiting>();
            self.send(place, waiting.sent, &waiting.messages);
        }
    }

    fn send(&mut self, place: usize, mut sent: Sent, messages: &[u8]) {
        let now_ns = self.last_ns;
        if self.is_past_the_end() {
            self.pending -= 1;
            self.recorder.never_begun(1);
            return;
        }
        if !self.replay.is_open_loop() {
            sent.intended_ns = now_ns;
        }
        self.first_start_ns.get_or_insert(now_ns);
        let connection = &mut self.connections[place];
        let parsing = sent.prepared.filter(|&text| !connection.has_prepared(text));
        let result = match (&mut connection.link, parsing) {
            (Some(link), None) => link.send(messages, &self.registry),
            (Some(link), Some(number)) => {
                self.out.clear();
                let text = &self.replay.file.texts[number as usize].text;
                write_prepare(number, text, &mut self.out);
                self.out.extend_from_slice(messages);
                link.send(&self.out, &self.registry)
            }
            (None, _) => Err(io::ErrorKind::NotConnected.into()),
        };
        connection.sent(sent, parsing, now_ns);
        self.busy += 1;
        match result {
            Ok(bytes) => self.bytes_sent += bytes as u64,
            Err(error) => self.lost(place, &format!("cannot send: {error}")),
        }
    }

    fn serve(&mut self, events: &Events) {
        let began_ns = self.tick();
        for (place, to_the_end) in std::mem::take(&mut self.unread) {
            self.read(place, to_the_end, began_ns);
        }
        for event in events {
            let place = event.token().0;
            if place >= self.connections.len() {
                continue; // the waker or the alarm
            }
            if self.connections[place].dialing.is_some() {
                self.tick();
                self.go_on_dialing(place);
                continue;
            }
            if event.is_writable()
                && let Some(link) = &mut self.connections[place].link
            {
                match link.flush(&self.registry) {
                    Ok(bytes) => self.bytes_sent += bytes as u64,
                    Err(error) => self.lost(place, &format!("cannot send: {error}")),
                }
            }
            let to_the_end = event.is_read_closed() || event.is_error();
            if event.is_readable() || to_the_end {
                self.read(place, to_the_end, began_ns);
            }
        }
        self.tick();
        let now = Instant::now();
        for place in self.dialing.clone() {
            let wake_at = self.connections[place]
                .dialing
                .as_ref()
                .and_then(|one| one.wake_at());
            if wake_at.is_some_and(|at| at <= now) {
                self.go_on_dialing(place);
            }
        }
    }

    /// Reads what there is. A read that fills less than the buffer has emptied the socket; but when the server has closed it,
    /// there will be no further event, and the end has to be read too.
    fn read(&mut self, place: usize, to_the_end: bool, batch_began_ns: u64) {
        for _ in 0..READS_AT_ONCE {
            let Some(link) = &mut self.connections[place].link else {
                return;
            };
            let received = link.receive(&mut self.buffer);
            let now_ns = self.tick();
            self.recorder.loop_lag.record(now_ns - batch_began_ns);
            match received {
                Ok(0) => return self.lost(place, "the server closed the connection unexpectedly"),
                Ok(bytes) => {
                    self.bytes_received += bytes as u64;
                    let is_emptied = bytes < self.buffer.len() && !to_the_end;
                    if !self.take(place, bytes) || is_emptied {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    return self.lost(place, &format!("the connection was lost: {error}"));
                }
            }
        }
        self.unread.push((place, to_the_end));
    }

    /// Takes what was read. Returns false if the connection is gone.
    fn take(&mut self, place: usize, bytes: usize) -> bool {
        let buffer = std::mem::take(&mut self.buffer);
        let mut rest = &buffer[..bytes];
        let opening = self.connections[place].openings;
        while self.connections[place].is_open() && self.connections[place].openings == opening {
            match self.connections[place].receive(&mut rest) {
                Ok(Told::Nothing) => break,
                Ok(Told::Ready) => self.ready(place),
                Err(message) => self.lost(place, &message),
            }
        }
        self.buffer = buffer;
        self.connections[place].is_open()
    }

    /// A statement has ended.
    fn ready(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        let in_block = connection.in_block;
        let Some(current) = connection.current.take() else {
            return self.lost(place, "ReadyForQuery, and no statement was sent");
        };
        self.server_transactions += u64::from(!in_block);
        self.ended(place, &current.sent, current.began_ns, current.failure);
        let Some(session) = self.connections[place].session else {
            return;
        };
        if self.is_past_the_end() {
            return; // it is closed with the others that are free
        }
        let own = &mut self.sessions[session as usize];
        own.left -= 1;
        let is_others_turn = self.replay.pooled && !in_block && !self.waiting.is_empty();
        if !own.queue.is_empty() && !is_others_turn {
            return self.send_next(place);
        }
        if own.left == 0 {
            self.session_ended(session);
        } else if self.replay.pooled && !in_block {
            own.connection = None;
            let has_more = !own.queue.is_empty();
            self.connections[place].session = None;
            if has_more {
                self.wait_for_turn(session); // behind those that wait already
            }
            self.release(place);
        }
    }

    /// A connection of a pool is free for the next session.
    fn release(&mut self, place: usize) {
        match self.waiting.pop_front() {
            Some(session) => self.bind(place, session),
            None => self.free.push(place),
        }
    }

    /// A session has done all its statements.
    fn session_ended(&mut self, session: u32) {
        let Some(place) = self.sessions[session as usize].connection else {
            return;
        };
        if self.replay.pooled {
            self.sessions[session as usize].connection = None;
            self.connections[place].session = None;
            if self.connections[place].in_block {
                // It ended within a transaction, which another session must not go on with.
                self.connections[place].close();
                self.dial(place);
            } else {
                self.release(place);
            }
            return;
        }
        let recorded = &self.replay.file.sessions[session as usize];
        let closes_ns = if recorded.has_end {
            self.due_ns(recorded.last_us)
        } else {
            0
        };
        if closes_ns > self.last_ns {
            self.timers
                .push(Reverse((closes_ns, Timer::Close(session))));
        } else {
            self.close_session(session);
        }
    }

    fn close_session(&mut self, session: u32) {
        if let Some(place) = self.sessions[session as usize].connection.take() {
            self.connections[place].close();
            self.connections[place].session = None;
            self.vacate(place);
        }
    }

    /// A place has no connection any more; another session may have one now.
    fn vacate(&mut self, place: usize) {
        self.open -= 1;
        self.vacant.push(place);
        if let Some(session) = self.waiting.pop_front() {
            self.open_for(session);
        }
    }

    /// The connection is gone, and what it was at has failed.
    fn lost(&mut self, place: usize, message: &str) {
        let (current, last_words) = self.connections[place].close();
        let lost =
            |failure: Option<Failure>| failure.unwrap_or_else(|| failure_of_connection(message));
        let session = self.connections[place].session;
        match current {
            Some(current) => {
                let failure = lost(current.failure.or(last_words));
                self.ended(place, &current.sent, current.began_ns, Some(failure));
                if let Some(session) = session {
                    self.sessions[session as usize].left -= 1;
                }
            }
            None => self
                .recorder
                .error(Place::default(), lost(last_words), self.last_ns),
        }
        if self.replay.pooled {
            if let Some(session) = self.connections[place].session.take() {
                self.sessions[session as usize].connection = None;
                if !self.sessions[session as usize].queue.is_empty() {
                    self.wait_for_turn(session);
                }
            }
            self.free.retain(|one| *one != place);
            let at_ns = self.last_ns + REDIAL_PAUSE_NS;
            self.timers.push(Reverse((at_ns, Timer::Redial(place))));
            return;
        }
        self.connections[place].session = None;
        let Some(session) = session else { return };
        self.sessions[session as usize].connection = None;
        self.vacate(place);
        // A connection that is lost is opened again for the next statement.
        if !self.sessions[session as usize].queue.is_empty() && !self.is_past_the_end() {
            self.connect_session(session);
        }
    }

    /// Counts a statement that has ended, by what the server did, and by how that compares with the recording.
    fn ended(&mut self, place: usize, sent: &Sent, began_ns: u64, failure: Option<Failure>) {
        self.pending -= 1;
        self.busy -= 1;
        let outcome = match failure {
            None => {
                self.counts.no_longer_failing += u64::from(sent.has_failed);
                Outcome::Done
            }
            Some(failure) => self.failed(place, sent, failure),
        };
        let connection = &mut self.connections[place];
        if !connection.has_failed {
            connection.shared_reason = None;
        }
        self.record(sent, began_ns, outcome);
    }

    /// Counts a failure. Returns its kind: that of the statement which made the transaction fail, if it is only for that.
    fn failed(&mut self, place: usize, sent: &Sent, mut failure: Failure) -> Outcome {
        let connection = &mut self.connections[place];
        let code = failure.sqlstate.as_deref().unwrap_or("").as_bytes();
        let as_recorded = sent.has_failed
            && sent.sqlstate.map_or_else(
                || !failure.kind.is_of_connection(),
                |recorded| recorded == code,
            );
        let shared = connection
            .shared_reason
            .filter(|_| follows_another(&failure));
        if as_recorded {
            failure.kind = ErrorKind::AsRecorded;
        } else if self.replay.read_only && is_refused_write(&failure) {
            failure.kind = ErrorKind::RefusedWrite;
        } else if let Some(kind) = shared {
            failure.kind = kind;
        }
        let kind = failure.kind;
        match kind {
            ErrorKind::AsRecorded => self.counts.failed_as_recorded += 1,
            ErrorKind::RefusedWrite => self.counts.refused_writes += 1,
            _ => {}
        }
        let is_shared = matches!(kind, ErrorKind::AsRecorded | ErrorKind::RefusedWrite);
        if connection.shared_reason.is_none() && is_shared {
            connection.shared_reason = Some(kind);
        }
        let place = Place {
            script: Some(sent.label),
            ..Place::default()
        };
        self.recorder.error(place, failure, self.last_ns);
        Outcome::Failed(kind)
    }

    fn record(&mut self, sent: &Sent, began_ns: u64, outcome: Outcome) {
        let ended = Ended {
            script: sent.label,
            outcome,
            rolls_back: false,
            tries: 1,
            intended_ns: sent.intended_ns.min(began_ns),
            began_ns,
            now_ns: self.last_ns,
        };
        self.recorder.ended(&ended);
        if let (Outcome::Done, Some(recorded_ns)) = (outcome, sent.recorded_ns) {
            self.recorder.recorded(sent.label, recorded_ns);
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

/// Returns when something of the recording happens.
fn due_ns(replay: &Replay, recorded_us: u64) -> u64 {
    replay.speed.map_or(0, |speed| {
        let after_ns = recorded_us as f64 * 1_000.0 / speed;
        LEAD_NS.saturating_add(after_ns as u64)
    })
}

fn next_of(replay: &Replay, statement: &RecordedStatement<'_>, follows: bool) -> Next {
    let due_ns = due_ns(replay, statement.start_us);
    let class = statement.class as usize;
    let (label, rollbacks) = (
        replay.label_of_class[class],
        replay.rollbacks_of_class[class],
    );
    Next {
        due_ns,
        session: statement.session,
        sent: Sent::of(statement, label, rollbacks, due_ns),
        follows,
    }
}

fn failure(kind: ErrorKind, message: String) -> Failure {
    Failure {
        kind,
        sqlstate: None,
        message,
        in_full: None,
    }
}

fn failure_of_connection(message: &str) -> Failure {
    failure(ErrorKind::ConnectionLost, message.to_owned())
}

fn no_connection(error: DialError) -> Failure {
    match error {
        DialError::Connect(error) => Failure {
            sqlstate: error.sqlstate().map(str::to_owned),
            ..failure(
                if error.is_timeout() {
                    ErrorKind::Timeout
                } else {
                    ErrorKind::Connect
                },
                error.to_string(),
            )
        },
        DialError::System(error) => failure(ErrorKind::Connect, error.to_string()),
    }
}
