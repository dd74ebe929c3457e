//! The disk at work: each request passes through the model, and its data to or from the backing file.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::backing::{Backing, Written};
use crate::counters::Counters;
use crate::error::DiskError;
use crate::model::{
    Cut, CutMode, CutReport, EioFault, Extent, FaultOperation, FaultState, Faults, Lie, Old,
    Operation, Overrides, Physics, Sequence, Timing, Volatile,
};

/// Writes on their way to a medium that acknowledges none before it is there are volatile too, up to this much.
const IN_FLIGHT_BYTES: u64 = 64 << 20;

const NO_EXTENT: Extent = Extent {
    offset: 0,
    length: 0,
};

/// The disk's power and its state.
#[derive(Debug)]
pub(crate) struct Disk {
    backing: Backing,
    seed: u64,
    began: Instant,
    state: Mutex<State>,
    /// Even while there is power, odd while there is none; each change is one more.
    power: AtomicU64,
    pub(crate) counters: Counters,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) timing: Timing,
    pub(crate) volatile: Volatile,
    pub(crate) faults: Faults,
    pub(crate) lie: Option<Lie>,
    /// Writes that a flush should have made durable, but a lie has delayed.
    late: VecDeque<Sequence>,
    written: Written,
}

/// A request whose end is due at `done_ns`.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) done_ns: u64,
    power: u64,
    effect: Effect,
}

/// What happens when a request ends.
#[derive(Debug)]
enum Effect {
    Nothing,
    Failure,
    Durable(Sequence),
    Flush(Sequence),
}

/// Why a request is refused at once.
#[derive(Debug)]
pub(crate) enum RequestError {
    NoPower,
    Backing(io::Error),
}

impl Disk {
    pub(crate) fn new(backing: Backing, physics: Physics, seed: u64) -> io::Result<Self> {
        let state = State {
            volatile: Volatile::new(volatile_capacity(&physics)),
            timing: Timing::new(physics, backing.size_bytes(), seed),
            faults: Faults::default(),
            lie: None,
            late: VecDeque::new(),
            written: Written::of(&backing)?,
        };
        Ok(Self {
            backing,
            seed,
            began: Instant::now(),
            state: Mutex::new(state),
            power: AtomicU64::new(0),
            counters: Counters::default(),
        })
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.backing.size_bytes()
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Time since the disk was made, which is the model's time.
    pub(crate) fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    pub(crate) fn has_power(&self) -> bool {
        self.power.load(Ordering::Acquire).is_multiple_of(2)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // Each change under the lock is complete before anything can panic, so a poisoned lock protects consistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn read(&self, extent: Extent) -> Result<(Vec<u8>, Pending), RequestError> {
        let pending = {
            let mut state = self.powered_state()?;
            let struck = state.faults.strike(FaultOperation::Read, extent);
            let done_ns = state.timing.admit(self.now_ns(), Operation::Read, extent);
            self.pending(
                done_ns,
                if struck {
                    Effect::Failure
                } else {
                    Effect::Nothing
                },
            )
        };
        self.counters.reads.add(1);
        if matches!(pending.effect, Effect::Failure) {
            self.counters.eio_read.add(1);
            return Ok((Vec::new(), pending));
        }
        let bytes = self
            .backing
            .read(extent)
            .map_err(|error| self.failed(error))?;
        self.counters.bytes_read.add(extent.length);
        Ok((bytes, pending))
    }

    /// `through`: the write has to be on the medium when it ends (O_DSYNC).
    pub(crate) fn write(
        &self,
        offset: u64,
        bytes: &[u8],
        through: bool,
    ) -> Result<Pending, RequestError> {
        let extent = Extent {
            offset,
            length: bytes.len() as u64,
        };
        let mut state = self.powered_state()?;
        let operation = Operation::Write { through };
        self.counters.writes.add(1);
        if through {
            self.counters.writes_through.add(1);
        }
        let struck = state.faults.strike(FaultOperation::Write, extent);
        let done_ns = state.timing.admit(self.now_ns(), operation, extent);
        if struck {
            self.counters.eio_write.add(1);
            return Ok(self.pending(done_ns, Effect::Failure));
        }
        let old = if state.written.any_in(extent) {
            self.backing.save(&[extent])
        } else {
            Ok(vec![Old::Zeros(extent)])
        };
        let sequence =
            state
                .volatile
                .record(extent, false, old.map_err(|error| self.failed(error))?);
        state.written.add(extent);
        self.backing
            .write(offset, bytes)
            .map_err(|error| self.failed(error))?;
        self.counters.bytes_written.add(extent.length);
        let durable = through || !state.timing.physics().is_volatile();
        let effect = if durable {
            Effect::Durable(sequence)
        } else {
            Effect::Nothing
        };
        Ok(self.pending(done_ns, effect))
    }

    /// Makes `extent` read as zeros.
    pub(crate) fn discard(&self, extent: Extent) -> Result<Pending, RequestError> {
        let mut state = self.powered_state()?;
        self.counters.discards.add(1);
        let struck = state.faults.strike(FaultOperation::Write, extent);
        let done_ns = state
            .timing
            .admit(self.now_ns(), Operation::Discard, extent);
        if struck {
            self.counters.eio_write.add(1);
            return Ok(self.pending(done_ns, Effect::Failure));
        }
        let data = self
            .backing
            .data_in(extent)
            .map_err(|error| self.failed(error))?;
        let data_bytes: u64 = data.iter().map(|extent| extent.length).sum();
        let effect = if data_bytes > state.volatile.capacity_bytes() {
            // A discard larger than the cache takes effect at once, and so does everything before it.
            let end = state.volatile.next();
            state.volatile.flush(end, |_| false);
            Effect::Nothing
        } else {
            let old = self
                .backing
                .save(&data)
                .map_err(|error| self.failed(error))?;
            let sequence = state.volatile.record(extent, true, old);
            if state.timing.physics().is_volatile() {
                Effect::Nothing
            } else {
                Effect::Durable(sequence)
            }
        };
        self.backing
            .zero(extent)
            .map_err(|error| self.failed(error))?;
        self.counters.bytes_discarded.add(extent.length);
        Ok(self.pending(done_ns, effect))
    }

    pub(crate) fn flush(&self) -> Result<Pending, RequestError> {
        let mut state = self.powered_state()?;
        self.counters.flushes.add(1);
        if state.faults.strike(FaultOperation::Flush, NO_EXTENT) {
            self.counters.eio_flush.add(1);
            let done_ns = state
                .timing
                .admit(self.now_ns(), Operation::Flush, NO_EXTENT);
            return Ok(self.pending(done_ns, Effect::Failure));
        }
        let end = state.volatile.next();
        if state.lie.is_some() {
            self.counters.flushes_falsified.add(1);
        }
        match state.lie {
            Some(Lie::IgnoreFlush {}) => Ok(self.pending(self.now_ns(), Effect::Nothing)),
            Some(Lie::LateFlush { flushes }) => {
                state.late.push_back(end);
                let due = state.late.len() as u64 > flushes;
                let covered = if due { state.late.pop_front() } else { None };
                let effect = covered.map_or(Effect::Nothing, Effect::Flush);
                Ok(self.pending(self.now_ns(), effect))
            }
            Some(Lie::DropFraction { .. }) | None => {
                let done_ns = state
                    .timing
                    .admit(self.now_ns(), Operation::Flush, NO_EXTENT);
                Ok(self.pending(done_ns, Effect::Flush(end)))
            }
        }
    }

    /// Ends a request. Returns false when it has failed, or when the power was cut before.
    pub(crate) fn finish(&self, pending: &Pending) -> bool {
        let mut state = match pending.effect {
            Effect::Failure => return false,
            Effect::Nothing => return self.power.load(Ordering::Acquire) == pending.power,
            Effect::Durable(_) | Effect::Flush(_) => self.state(),
        };
        if self.power.load(Ordering::Acquire) != pending.power {
            return false;
        }
        match pending.effect {
            Effect::Durable(sequence) => state.volatile.make_durable(sequence),
            Effect::Flush(end) => {
                let lie = state.lie;
                let seed = self.seed;
                state.volatile.flush(end, |sequence| {
                    matches!(lie, Some(Lie::DropFraction { fraction }) if crate::model::left_out(seed, sequence, fraction))
                });
            }
            Effect::Nothing | Effect::Failure => {}
        }
        true
    }

    pub(crate) fn set_physics(&self, overrides: &Overrides) -> Result<Physics, DiskError> {
        let mut state = self.state();
        let physics = overrides.apply(state.timing.physics())?;
        if state.lie.is_some() && !physics.is_volatile() {
            return Err(crate::model::FaultError::NothingVolatile.into());
        }
        state.volatile.set_capacity(volatile_capacity(&physics));
        state.timing.set_physics(physics.clone());
        Ok(physics)
    }

    pub(crate) fn set_lie(&self, lie: Option<Lie>) -> Result<(), DiskError> {
        let mut state = self.state();
        if let Some(lie) = lie {
            lie.check()?;
            if !state.timing.physics().is_volatile() {
                return Err(crate::model::FaultError::NothingVolatile.into());
            }
        }
        state.lie = lie;
        state.late.clear();
        Ok(())
    }

    pub(crate) fn arm(&self, fault: EioFault) -> Result<(), DiskError> {
        Ok(self.state().faults.arm(fault)?)
    }

    pub(crate) fn disarm(&self) -> Vec<FaultState> {
        self.state().faults.clear()
    }

    /// Makes everything durable. Returns the number of bytes that were not.
    pub(crate) fn flush_now(&self) -> u64 {
        let mut state = self.state();
        let dirty_bytes = state.volatile.dirty_bytes();
        let end = state.volatile.next();
        state.volatile.flush(end, |_| false);
        dirty_bytes
    }

    /// Cuts the power; `None` when it is off already. Requests fail until [`Disk::power_on`].
    pub(crate) fn cut(&self, mode: CutMode, seed: u64) -> io::Result<Option<CutReport>> {
        let mut state = self.state();
        if !self.has_power() {
            return Ok(None);
        }
        self.power.fetch_add(1, Ordering::AcqRel);
        self.counters.power_cuts.add(1);
        let cut = Cut {
            mode,
            seed,
            atomic_write_bytes: state.timing.physics().atomic_write_bytes,
        };
        let (restores, report) = state.volatile.cut(cut);
        state.late.clear();
        for old in &restores {
            self.backing.restore(old)?;
        }
        Ok(Some(report))
    }

    /// Restores the power. Returns false when it was on already.
    pub(crate) fn power_on(&self) -> bool {
        let _state = self.state();
        if self.has_power() {
            return false;
        }
        self.power.fetch_add(1, Ordering::AcqRel);
        true
    }

    fn powered_state(&self) -> Result<MutexGuard<'_, State>, RequestError> {
        let state = self.state();
        if self.has_power() {
            return Ok(state);
        }
        self.counters.requests_refused.add(1);
        Err(RequestError::NoPower)
    }

    fn pending(&self, done_ns: u64, effect: Effect) -> Pending {
        Pending {
            done_ns,
            power: self.power.load(Ordering::Acquire),
            effect,
        }
    }

    fn failed(&self, error: io::Error) -> RequestError {
        self.counters.backing_errors.add(1);
        RequestError::Backing(error)
    }
}

fn volatile_capacity(physics: &Physics) -> u64 {
    if physics.is_volatile() {
        physics.cache_bytes
    } else {
        IN_FLIGHT_BYTES
    }
}
