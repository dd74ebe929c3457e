//! A star of nodes, each joined to every other by a link in each direction.

use core::net::Ipv4Addr;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::link::{Fate, Link};
use super::settings::LinkSettings;

/// More than this is in flight only when a rate or a delay is wrong for what is sent; it bounds the memory.
const MAX_IN_FLIGHT_BYTES: usize = 256 << 20;
const MIN_HEADER_BYTES: usize = 20;

/// A packet that has arrived.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The index of the node that it is for.
    pub to: usize,
    /// When it was due.
    pub due_ns: u64,
    /// The packet.
    pub packet: Vec<u8>,
}

/// A packet on its way. Ordered by its time, then by its sequence.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InFlight {
    due_ns: u64,
    sequence: u64,
    from: usize,
    to: usize,
    packet: Vec<u8>,
}

/// Nodes with their addresses, the links between them, and the packets on these.
#[derive(Debug)]
pub struct Star {
    addresses: Vec<Ipv4Addr>,
    links: Vec<Link>,
    in_flight: BinaryHeap<Reverse<InFlight>>,
    in_flight_bytes: usize,
    next_sequence: u64,
    unroutable: u64,
}

impl Star {
    /// Nodes of these addresses; `settings` says what the link from one to another is like.
    pub fn new(
        addresses: Vec<Ipv4Addr>,
        seed: u64,
        settings: impl Fn(usize, usize) -> LinkSettings,
    ) -> Self {
        let nodes = addresses.len();
        let link =
            |index: usize| Link::new(settings(index / nodes, index % nodes), seed, index as u64);
        Self {
            links: (0..nodes * nodes).map(link).collect(),
            addresses,
            in_flight: BinaryHeap::new(),
            in_flight_bytes: 0,
            next_sequence: 0,
            unroutable: 0,
        }
    }

    /// The link from one node to another.
    #[must_use]
    pub fn link(&self, from: usize, to: usize) -> &Link {
        &self.links[from * self.addresses.len() + to]
    }

    /// The same, to be changed.
    pub fn link_mut(&mut self, from: usize, to: usize) -> &mut Link {
        &mut self.links[from * self.addresses.len() + to]
    }

    /// Packets that were for no other node: not of IPv4, or to an address that nobody has.
    #[must_use]
    pub fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// The node `from` sends a packet at `now_ns`, which never decreases.
    pub fn send(&mut self, now_ns: u64, from: usize, packet: &[u8]) {
        let to = destination(packet)
            .and_then(|address| self.addresses.iter().position(|&one| one == address))
            .filter(|&to| to != from);
        let Some(to) = to else {
            self.unroutable += 1;
            return;
        };
        let has_room = self.in_flight_bytes + packet.len() <= MAX_IN_FLIGHT_BYTES;
        let link = self.link_mut(from, to);
        let Fate::Due(due_ns) = link.send(now_ns, packet.len() as u64) else {
            return;
        };
        if !has_room {
            link.counters.overflowed += 1;
            return;
        }
        self.in_flight_bytes += packet.len();
        self.in_flight.push(Reverse(InFlight {
            due_ns,
            sequence: self.next_sequence,
            from,
            to,
            packet: packet.to_vec(),
        }));
        self.next_sequence += 1;
    }

    /// When the next packet arrives.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        self.in_flight.peek().map(|Reverse(next)| next.due_ns)
    }

    /// The next packet that has arrived by `now_ns`, in the order of arrival.
    pub fn receive(&mut self, now_ns: u64) -> Option<Arrival> {
        while self.next_due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            let Reverse(InFlight {
                due_ns,
                from,
                to,
                packet,
                ..
            }) = self.in_flight.pop()?;
            self.in_flight_bytes -= packet.len();
            let link = self.link_mut(from, to);
            if link.settings().partitioned {
                link.counters.partitioned += 1;
                continue;
            }
            link.counters.delivered += 1;
            link.counters.delivered_bytes += packet.len() as u64;
            return Some(Arrival { to, due_ns, packet });
        }
        None
    }
}

/// The destination of a packet of IPv4 (RFC 791).
fn destination(packet: &[u8]) -> Option<Ipv4Addr> {
    if packet.len() < MIN_HEADER_BYTES || packet[0] >> 4 != 4 {
        return None;
    }
    let octets: [u8; 4] = packet[16..20].try_into().ok()?;
    Some(octets.into())
}
