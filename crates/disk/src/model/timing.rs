//! Computes when each request ends, from the physics and the order in which requests arrive.

use std::collections::VecDeque;

use serde::Serialize;

use super::bucket::TokenBucket;
use super::extent::Extent;
use super::head::{Head, Rotating};
use super::pacing::Pacer;
use super::physics::Physics;
use super::rng::DiskRng;
use super::write_cache::WriteCache;

/// A request to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Read.
    Read,
    /// Write; through the cache to the medium if requested (`O_DSYNC`, FUA).
    Write {
        /// Whether the data must be on the medium when it ends.
        through: bool,
    },
    /// Discard an extent, or fill it with zeros.
    Discard,
    /// Write everything in the cache to the medium.
    Flush,
}

const TIMING_STREAM: u64 = 1;

/// The credits of a volume that are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Credits {
    /// Requests beyond the baseline.
    pub requests: u64,
    /// Bytes beyond the baseline.
    pub bytes: u64,
}

/// The state of the disk's mechanics and electronics.
#[derive(Debug, Clone)]
pub struct Timing {
    physics: Physics,
    size_bytes: u64,
    rng: DiskRng,
    /// When each channel becomes free; a disk with a head has one.
    free_ns: Vec<u64>,
    head: Head,
    /// When the requests that are queued for the head end.
    waiting_ns: VecDeque<u64>,
    cache: WriteCache,
    reads: Pacer,
    writes: Pacer,
    read_bytes: Pacer,
    written_bytes: Pacer,
    volume: Volume,
    flushed_ns: u64,
}

/// What limits reads and writes together.
#[derive(Debug, Clone)]
struct Volume {
    requests: TokenBucket,
    bytes: TokenBucket,
    burst_requests: Pacer,
    burst_bytes: Pacer,
}

impl Volume {
    fn filled(now_ns: u64, physics: &Physics) -> Self {
        let level = physics.credit_level;
        Self {
            requests: TokenBucket::filled(now_ns, level, physics.iops, physics.iops_credits),
            bytes: TokenBucket::filled(now_ns, level, physics.bytes_per_s, physics.bytes_credits),
            burst_requests: Pacer::default(),
            burst_bytes: Pacer::default(),
        }
    }

    /// When a request that arrives at `now_ns` may begin.
    fn pass(&mut self, now_ns: u64, length: u64, physics: &Physics) -> u64 {
        let requests = physics.requests_of(length);
        [
            self.requests
                .pass(now_ns, requests, physics.iops, physics.iops_credits),
            self.bytes
                .pass(now_ns, length, physics.bytes_per_s, physics.bytes_credits),
            self.burst_requests
                .pass(now_ns, requests, physics.burst_iops),
            self.burst_bytes
                .pass(now_ns, length, physics.burst_bytes_per_s),
        ]
        .into_iter()
        .fold(now_ns, u64::max)
    }
}

impl Timing {
    /// An idle disk.
    pub fn new(physics: Physics, size_bytes: u64, seed: u64) -> Self {
        let free_ns = vec![0; physics.channels as usize];
        let volume = Volume::filled(0, &physics);
        Self {
            physics,
            size_bytes,
            rng: DiskRng::new(seed, TIMING_STREAM),
            free_ns,
            head: Head::default(),
            waiting_ns: VecDeque::new(),
            cache: WriteCache::default(),
            reads: Pacer::default(),
            writes: Pacer::default(),
            read_bytes: Pacer::default(),
            written_bytes: Pacer::default(),
            volume,
            flushed_ns: 0,
        }
    }

    /// Makes the credits what they are in the beginning.
    pub fn reset_credits(&mut self, now_ns: u64) {
        self.volume = Volume::filled(now_ns, &self.physics);
    }

    /// The credits that are left at `now_ns`.
    pub fn credits(&self, now_ns: u64) -> Credits {
        let Physics {
            iops,
            iops_credits,
            bytes_per_s,
            bytes_credits,
            ..
        } = self.physics;
        Credits {
            requests: self.volume.requests.units(now_ns, iops, iops_credits),
            bytes: self.volume.bytes.units(now_ns, bytes_per_s, bytes_credits),
        }
    }

    /// The current physics.
    pub fn physics(&self) -> &Physics {
        &self.physics
    }

    /// Changes the physics. Requests that were admitted before keep their end.
    pub fn set_physics(&mut self, physics: Physics) {
        self.free_ns.resize(physics.channels as usize, 0);
        self.physics = physics;
    }

    /// When a request that arrives at `now_ns` ends. `now_ns` never decreases.
    pub fn admit(&mut self, now_ns: u64, operation: Operation, extent: Extent) -> u64 {
        self.cache.advance(now_ns, self.head_busy_until_ns());
        match operation {
            Operation::Read => self.read(now_ns, extent),
            Operation::Write { through } => self.write(now_ns, extent, through),
            Operation::Discard => now_ns + self.latency_ns(self.physics.write_latency_ns),
            Operation::Flush => self.flush(now_ns),
        }
    }

    fn read(&mut self, now_ns: u64, extent: Extent) -> u64 {
        let mut start_ns = self.reads.pass(now_ns, 1, self.physics.read_iops);
        start_ns = start_ns.max(self.volume.pass(now_ns, extent.length, &self.physics));
        let latency_ns = self.request_ns(self.physics.read_latency_ns);
        if self.has_head() {
            return self.move_head(now_ns, start_ns, latency_ns, extent, true);
        }
        let rate = self.physics.read_bytes_per_s;
        start_ns = start_ns.max(self.read_bytes.pass(now_ns, extent.length, rate));
        self.occupy_channel(start_ns, latency_ns)
    }

    fn write(&mut self, now_ns: u64, extent: Extent, through: bool) -> u64 {
        let mut start_ns = self.writes.pass(now_ns, 1, self.physics.write_iops);
        start_ns = start_ns.max(self.volume.pass(now_ns, extent.length, &self.physics));
        let latency_ns = self.request_ns(self.physics.write_latency_ns);
        if !self.has_head() {
            let rate = self.physics.write_bytes_per_s;
            start_ns = start_ns.max(self.written_bytes.pass(now_ns, extent.length, rate));
        }
        if self.physics.cache_bytes > 0 && !through {
            start_ns = start_ns.max(now_ns + self.room_after_ns(now_ns, extent.length));
            let work_ns = self.drain_ns(now_ns, extent);
            self.cache.put(extent.length, work_ns);
            return self.occupy_cache(start_ns, latency_ns);
        }
        if self.has_head() {
            return self.move_head(now_ns, start_ns, latency_ns, extent, false);
        }
        let mut medium_ns = latency_ns;
        if self.physics.cache_bytes > 0 {
            medium_ns += self.latency_ns(self.physics.flush_latency_ns);
        }
        self.occupy_channel(start_ns, medium_ns)
    }

    /// One flush at a time: the content of the cache is drained first.
    fn flush(&mut self, now_ns: u64) -> u64 {
        let latency_ns = self.latency_ns(self.physics.flush_latency_ns);
        let start_ns = now_ns.max(self.flushed_ns).max(self.head_busy_until_ns());
        let done_ns = start_ns + self.cache.until_empty_ns() + latency_ns;
        self.cache.clear();
        if self.has_head() && done_ns > start_ns + latency_ns {
            self.free_ns[0] = done_ns;
        }
        self.flushed_ns = done_ns;
        done_ns
    }

    fn has_head(&self) -> bool {
        self.physics.rpm > 0
    }

    fn head_busy_until_ns(&self) -> u64 {
        if self.has_head() { self.free_ns[0] } else { 0 }
    }

    fn latency_ns(&mut self, median_ns: u64) -> u64 {
        self.rng.lognormal(median_ns, self.physics.spread)
    }

    /// The latency of a read or a write, which has a tail where the physics say so.
    fn request_ns(&mut self, median_ns: u64) -> u64 {
        let Physics {
            spread,
            tail_share,
            tail_shape,
            ..
        } = self.physics;
        self.rng
            .with_tail(median_ns, spread, tail_share, tail_shape)
    }

    /// The channel that is free first serves the request.
    fn occupy_channel(&mut self, start_ns: u64, service_ns: u64) -> u64 {
        let Some(free_ns) = self.free_ns.iter_mut().min() else {
            return start_ns + service_ns;
        };
        *free_ns = start_ns.max(*free_ns) + service_ns;
        *free_ns
    }

    /// A write into the cache takes a channel, but not the head.
    fn occupy_cache(&mut self, start_ns: u64, latency_ns: u64) -> u64 {
        if self.has_head() {
            start_ns + latency_ns
        } else {
            self.occupy_channel(start_ns, latency_ns)
        }
    }

    /// The head serves the request, after the electronics, which work while the head serves others.
    fn move_head(
        &mut self,
        now_ns: u64,
        start_ns: u64,
        latency_ns: u64,
        extent: Extent,
        reading: bool,
    ) -> u64 {
        while self
            .waiting_ns
            .front()
            .is_some_and(|&done_ns| done_ns <= now_ns)
        {
            self.waiting_ns.pop_front();
        }
        let waiting = self.waiting_ns.len();
        let turn_ns = self.free_ns[0].max(start_ns + latency_ns);
        let disk = rotating(&self.physics, self.size_bytes);
        let done_ns = if reading {
            self.head
                .read(turn_ns, extent, waiting, &disk, &mut self.rng)
        } else {
            self.head
                .write(turn_ns, extent, waiting, &disk, &mut self.rng)
        };
        self.free_ns[0] = done_ns;
        self.waiting_ns.push_back(done_ns);
        done_ns
    }

    /// The time until the cache has space, once the head has completed its current request.
    fn room_after_ns(&self, now_ns: u64, bytes: u64) -> u64 {
        match self.cache.until_room_ns(bytes, self.physics.cache_bytes) {
            0 => 0,
            work_ns => self.head_busy_until_ns().saturating_sub(now_ns) + work_ns,
        }
    }

    /// The medium's work for a write that enters the cache now, after its present content.
    fn drain_ns(&mut self, now_ns: u64, extent: Extent) -> u64 {
        if !self.has_head() {
            let rate = u128::from(self.physics.drain_bytes_per_s);
            let nanoseconds = u128::from(extent.length) * 1_000_000_000;
            return nanoseconds.checked_div(rate).unwrap_or(0) as u64;
        }
        let turn_ns = now_ns.max(self.free_ns[0]) + self.cache.until_empty_ns();
        let waiting = self.cache.writes();
        let disk = rotating(&self.physics, self.size_bytes);
        let done_ns = self
            .head
            .write(turn_ns, extent, waiting, &disk, &mut self.rng);
        done_ns - turn_ns
    }
}

fn rotating(physics: &Physics, size_bytes: u64) -> Rotating<'_> {
    Rotating {
        physics,
        revolution_ns: physics.revolution_ns().unwrap_or(1),
        size_bytes,
    }
}
