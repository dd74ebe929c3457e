//! What goes over the connections of a replay: statements are sent, and answers are read.

use std::io;
use std::time::Instant;

use mio::Events;

use crate::replay::connection::Told;
use crate::replay::player::Player;
use crate::replay::statement::{Sent, Waiting, write_prepare};

/// How often one connection reads before the others have their turn.
const READS_AT_ONCE: usize = 16;

impl Player<'_> {
    /// Sends the statement that its session has waiting.
    pub(super) fn send_next(&mut self, place: usize) {
        let Some(session) = self.connections[place].session else {
            return;
        };
        if let Some(waiting) = self.sessions[session as usize].queue.pop_front() {
            self.queued_bytes -= waiting.messages.len() + size_of::<Waiting>();
            self.send(place, waiting.sent, &waiting.messages);
        }
    }

    pub(super) fn send(&mut self, place: usize, mut sent: Sent, messages: &[u8]) {
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

    pub(super) fn serve(&mut self, events: &Events) {
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
    pub(super) fn read(&mut self, place: usize, to_the_end: bool, batch_began_ns: u64) {
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
    pub(super) fn take(&mut self, place: usize, bytes: usize) -> bool {
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
    pub(super) fn ready(&mut self, place: usize) {
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
}
