//! The disk at work: each request passes through the model, and its data to or from the backing file.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::Serialize;

use crate::backing::{Backing, CopiedBy, Written};
use crate::counters::Counters;
use crate::error::DiskError;
use crate::instance::Instance;
use crate::model::{
    Cut, CutMode, CutReport, EioFault, Event, Extent, FaultOperation, FaultState, Faults, Lie, Old,
    Omission, Operation, Overrides, Physics, Sequence, Settings, Timing, Volatile,
};
use crate::recording::{Header, NewFiles, Recorder, RecordingStatus};

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
    instance: Option<Instance>,
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
    pub(crate) recorder: Option<Recorder>,
}

/// A request whose end is due at `done_ns`.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) done_ns: u64,
    power: u64,
    effect: Effect,
}

/// The effect of a request when it completes.
#[derive(Debug)]
enum Effect {
    Nothing,
    Failure,
    Durable(Sequence),
    Flush(Sequence),
}

/// The way a recording got its base, and the time that requests waited for it.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Base {
    copied_by: CopiedBy,
    data_bytes: u64,
    waited_ns: u64,
}

/// The reason why a request is rejected at once.
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
            recorder: None,
        };
        Ok(Self {
            backing,
            seed,
            instance: None,
            began: Instant::now(),
            state: Mutex::new(state),
            power: AtomicU64::new(0),
            counters: Counters::default(),
        })
    }

    /// The disk as a volume of an instance.
    pub(crate) fn of_instance(self, instance: Option<Instance>) -> Self {
        Self { instance, ..self }
    }

    /// When a read or write ends that the disk alone would end at `done_ns`. Asked under the lock of the state.
    fn throttled(&self, done_ns: u64, length: u64) -> Result<u64, RequestError> {
        match &self.instance {
            None => Ok(done_ns),
            Some(instance) => instance
                .delay_ns(length)
                .map(|delay_ns| done_ns + delay_ns)
                .map_err(|error| self.failed(error)),
        }
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
            let done_ns = self.throttled(done_ns, extent.length)?;
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
        let done_ns = self.throttled(done_ns, extent.length)?;
        if struck {
            self.counters.eio_write.add(1);
            state.note_failure(FaultOperation::Write, extent);
            return Ok(self.pending(done_ns, Effect::Failure));
        }
        let old = if state.written.any_in(extent) {
            self.backing.save(&[extent])
        } else {
            Ok(vec![Old::Zeros(extent)])
        };
        let old = old.map_err(|error| self.failed(error))?;
        let old_bytes = old.iter().map(Old::bytes).sum();
        let sequence = state.volatile.next();
        state.apply(&Event::Write { extent, old_bytes }, bytes, old);
        state.written.add(extent);
        self.backing
            .write(offset, bytes)
            .map_err(|error| self.failed_after(&state, error))?;
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
            state.note_failure(FaultOperation::Write, extent);
            return Ok(self.pending(done_ns, Effect::Failure));
        }
        let data = self
            .backing
            .data_in(extent)
            .map_err(|error| self.failed(error))?;
        let data_bytes: u64 = data.iter().map(|extent| extent.length).sum();
        let effect = if data_bytes > state.volatile.capacity_bytes() {
            // A discard larger than the cache takes effect at once, and so does everything before it.
            state.apply(&Event::DiscardAtOnce { extent }, &[], Vec::new());
            Effect::Nothing
        } else {
            let old = self
                .backing
                .save(&data)
                .map_err(|error| self.failed(error))?;
            let old_bytes = old.iter().map(Old::bytes).sum();
            let sequence = state.volatile.next();
            state.apply(&Event::Discard { extent, old_bytes }, &[], old);
            if state.timing.physics().is_volatile() {
                Effect::Nothing
            } else {
                Effect::Durable(sequence)
            }
        };
        self.backing
            .zero(extent)
            .map_err(|error| self.failed_after(&state, error))?;
        self.counters.bytes_discarded.add(extent.length);
        Ok(self.pending(done_ns, effect))
    }

    pub(crate) fn flush(&self) -> Result<Pending, RequestError> {
        let mut state = self.powered_state()?;
        self.counters.flushes.add(1);
        if state.faults.strike(FaultOperation::Flush, NO_EXTENT) {
            self.counters.eio_flush.add(1);
            state.note_failure(FaultOperation::Flush, NO_EXTENT);
            let done_ns = state
                .timing
                .admit(self.now_ns(), Operation::Flush, NO_EXTENT);
            return Ok(self.pending(done_ns, Effect::Failure));
        }
        let end = state.volatile.next();
        state.apply(&Event::FlushReceived { end }, &[], Vec::new());
        if state.lie.is_some() {
            self.counters.flushes_falsified.add(1);
        }
        match state.lie {
            Some(Lie::IgnoreFlush {}) => Ok(self.pending(self.now_ns(), Effect::Flush(0))),
            Some(Lie::LateFlush { flushes }) => {
                state.late.push_back(end);
                let due = state.late.len() as u64 > flushes;
                let covered = if due { state.late.pop_front() } else { None };
                Ok(self.pending(self.now_ns(), Effect::Flush(covered.unwrap_or(0))))
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
        let event = match pending.effect {
            Effect::Durable(sequence) => Event::Durable { sequence },
            Effect::Flush(end) => {
                let omission = match state.lie {
                    Some(Lie::DropFraction { fraction }) => Some(Omission {
                        seed: self.seed,
                        fraction,
                    }),
                    _ => None,
                };
                Event::Flush { end, omission }
            }
            Effect::Nothing | Effect::Failure => return true,
        };
        state.apply(&event, &[], Vec::new());
        true
    }

    pub(crate) fn set_physics(&self, overrides: &Overrides) -> Result<Physics, DiskError> {
        let mut state = self.state();
        let physics = overrides.apply(state.timing.physics())?;
        if state.lie.is_some() && !physics.is_volatile() {
            return Err(crate::model::FaultError::NothingVolatile.into());
        }
        state.timing.set_physics(physics.clone());
        let settings = state.settings();
        state.apply(&Event::Settings(settings), &[], Vec::new());
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
        self.state().flush_all()
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
        let Some((restores, report)) = state.apply(&Event::Cut(cut), &[], Vec::new()) else {
            return Ok(None); // a cut always has a report
        };
        state.late.clear();
        for old in &restores {
            if let Err(error) = self.backing.restore(old) {
                state.fail_recording(&error);
                return Err(error);
            }
        }
        Ok(Some(report))
    }

    /// Restores the power. Returns false when it was on already.
    pub(crate) fn power_on(&self) -> bool {
        let mut state = self.state();
        if self.has_power() {
            return false;
        }
        self.power.fetch_add(1, Ordering::AcqRel);
        state.apply(&Event::PowerOn, &[], Vec::new());
        true
    }

    /// Begins to record what happens, in `folder`. Everything becomes durable, and requests wait while the backing file is
    /// copied.
    pub(crate) fn start_recording(&self, folder: &Path) -> Result<Base, DiskError> {
        let mut state = self.state();
        if let Some(recorder) = &state.recorder {
            return Err(DiskError::RecordedAlready(recorder.status().folder));
        }
        if !self.has_power() {
            return Err(DiskError::NoPower);
        }
        let files = NewFiles::create(folder)?;
        let began = Instant::now();
        state.flush_all();
        let (copied_by, data_bytes) = match self.backing.copy_to(&files.base) {
            Ok(copied) => copied,
            Err(error) => {
                files.remove();
                return Err(DiskError::io("copy the disk to", folder)(error));
            }
        };
        let header = Header {
            size_bytes: self.size_bytes(),
            first: state.volatile.next(),
            settings: state.settings(),
            began_ns: plinth_thread::monotonic_ns(),
        };
        state.recorder = Some(Recorder::start(files, &header).map_err(DiskError::Serve)?);
        Ok(Base {
            copied_by,
            data_bytes,
            waited_ns: began.elapsed().as_nanos() as u64,
        })
    }

    /// Stops recording, and returns the state in which the recording is.
    pub(crate) fn stop_recording(&self) -> Result<RecordingStatus, DiskError> {
        let recorder = self.state().recorder.take();
        Ok(recorder.ok_or(DiskError::NotRecorded)?.stop())
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

    /// A change failed that the recording has already: the recording is of no use from then on.
    fn failed_after(&self, state: &State, error: io::Error) -> RequestError {
        state.fail_recording(&error);
        self.failed(error)
    }

    fn failed(&self, error: io::Error) -> RequestError {
        self.counters.backing_errors.add(1);
        RequestError::Backing(error)
    }
}

impl State {
    /// Does, and records, what the event does to what is durable. `bytes` are those of a write, `old` the content before it.
    fn apply(
        &mut self,
        event: &Event,
        bytes: &[u8],
        old: Vec<Old>,
    ) -> Option<(Vec<Old>, CutReport)> {
        if let Some(recorder) = &mut self.recorder {
            recorder.push(event, bytes);
        }
        self.volatile.apply(event, old)
    }

    fn flush_all(&mut self) -> u64 {
        let dirty_bytes = self.volatile.dirty_bytes();
        let end = self.volatile.next();
        let omission = None;
        self.apply(&Event::Flush { end, omission }, &[], Vec::new());
        dirty_bytes
    }

    fn settings(&self) -> Settings {
        let physics = self.timing.physics();
        Settings {
            capacity_bytes: volatile_capacity(physics),
            atomic_write_bytes: physics.atomic_write_bytes,
        }
    }

    fn note_failure(&mut self, operation: FaultOperation, extent: Extent) {
        self.apply(&Event::Failed { operation, extent }, &[], Vec::new());
    }

    fn fail_recording(&self, error: &io::Error) {
        if let Some(recorder) = &self.recorder {
            recorder.fail(format!("a write to the backing file failed: {error}"));
        }
    }
}

fn volatile_capacity(physics: &Physics) -> u64 {
    if physics.is_volatile() {
        physics.cache_bytes
    } else {
        IN_FLIGHT_BYTES
    }
}
