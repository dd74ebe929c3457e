//! One direction of a link: a queue that is emptied at a rate, and then a line with delay, jitter and loss.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::settings::{JitterDistribution, LinkSettings};

const SECOND_NS: u128 = 1_000_000_000;

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at this time.
    Due(u64),
    /// It is lost on the line.
    Lost,
    /// The queue has no room for it.
    Overflowed,
    /// The link is partitioned.
    Partitioned,
}

/// Packets, by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// That the sender gave to the link.
    pub sent: u64,
    /// That were handed to the receiver.
    pub delivered: u64,
    /// Bytes of those.
    pub delivered_bytes: u64,
    /// Lost by `loss`.
    pub lost: u64,
    /// Dropped for want of room in the queue.
    pub overflowed: u64,
    /// Dropped by a partition, in flight or at the sender.
    pub partitioned: u64,
}

/// One direction of a link.
#[derive(Debug, Clone)]
pub struct Link {
    settings: LinkSettings,
    rng: Xoshiro256PlusPlus,
    /// When the last packet of the queue has been sent.
    free_ns: u64,
    /// When the last packet arrives: the next one does not overtake it.
    last_due_ns: u64,
    pub(super) counters: Counters,
}

impl Link {
    /// A link; `stream` makes several links of the same seed independent.
    #[must_use]
    pub fn new(settings: LinkSettings, seed: u64, stream: u64) -> Self {
        let mixed = seed ^ (stream + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self {
            settings,
            rng: Xoshiro256PlusPlus::seed_from_u64(mixed),
            free_ns: 0,
            last_due_ns: 0,
            counters: Counters::default(),
        }
    }

    /// What it is like now.
    #[must_use]
    pub fn settings(&self) -> &LinkSettings {
        &self.settings
    }

    /// Changes what it is like for packets that are sent from now on. Those in flight keep their times, but a partition
    /// drops them.
    pub fn set(&mut self, settings: LinkSettings) {
        self.settings = settings;
    }

    /// What became of its packets until now.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// A packet of `bytes` is sent at `now_ns`, which never decreases.
    pub fn send(&mut self, now_ns: u64, bytes: u64) -> Fate {
        self.counters.sent += 1;
        if self.settings.partitioned {
            self.counters.partitioned += 1;
            return Fate::Partitioned;
        }
        let Some(sent_ns) = self.transmit(now_ns, bytes) else {
            self.counters.overflowed += 1;
            return Fate::Overflowed;
        };
        if self.settings.loss > 0.0 && self.rng.random::<f64>() < self.settings.loss {
            self.counters.lost += 1;
            return Fate::Lost;
        }
        self.last_due_ns = self.last_due_ns.max(sent_ns + self.draw_delay_ns());
        Fate::Due(self.last_due_ns)
    }

    /// When the last bit of a packet has been sent at the link's rate; None when the queue has no room for it.
    fn transmit(&mut self, now_ns: u64, bytes: u64) -> Option<u64> {
        let rate = u128::from(self.settings.rate_bits_per_s);
        if rate == 0 {
            return Some(now_ns);
        }
        let begins_ns = self.free_ns.max(now_ns);
        let waiting_bytes = u128::from(begins_ns - now_ns) * rate / (8 * SECOND_NS);
        if waiting_bytes + u128::from(bytes) > u128::from(self.settings.queue_bytes) {
            return None;
        }
        self.free_ns = begins_ns + (u128::from(bytes) * 8 * SECOND_NS).div_ceil(rate) as u64;
        Some(self.free_ns)
    }

    fn draw_delay_ns(&mut self) -> u64 {
        let LinkSettings {
            delay_ns,
            jitter_ns,
            ..
        } = self.settings;
        if jitter_ns == 0 {
            return delay_ns;
        }
        let deviation = match self.settings.jitter_distribution {
            JitterDistribution::Normal => StandardNormal.sample(&mut self.rng),
            JitterDistribution::Uniform => self.rng.random_range(-1.0..=1.0),
        };
        (delay_ns as f64 + jitter_ns as f64 * deviation).max(0.0) as u64
    }
}
