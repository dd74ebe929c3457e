//! The thread that moves packets: from the devices into the model, and to the devices when they are due.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use plinth_thread::monotonic_ns;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use serde::Serialize;

use crate::model::Star;

/// Packets read from a device before others have their turn.
const READ_BATCH: usize = 32;
/// Before a packet is due, the time that waiting in the kernel may be late by: it is waited for by looking at the clock.
const SPIN_NS: u64 = Duration::from_micros(30).as_nanos() as u64;
const MAX_PACKET_BYTES: usize = 65_536;

/// The network, and how late its packets are.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) star: Star,
    lateness_ns: Histogram<u64>,
    /// Packets that a device did not take: its namespace is gone, its device down, or its queue full.
    pub(crate) refused: u64,
    pub(crate) runs_at_once: bool,
}

/// How late packets were handed to their receivers, after they were due.
#[derive(Debug, Serialize)]
pub(crate) struct Lateness {
    packets: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

impl State {
    pub(crate) fn new(star: Star) -> Self {
        Self {
            star,
            lateness_ns: Histogram::new_with_bounds(1, 60_000_000_000, 3)
                .unwrap_or_else(|error| unreachable!("these are bounds: {error}")),
            refused: 0,
            runs_at_once: false,
        }
    }

    pub(crate) fn lateness(&self) -> Lateness {
        let late = &self.lateness_ns;
        Lateness {
            packets: late.len(),
            p50_ns: late.value_at_quantile(0.5),
            p99_ns: late.value_at_quantile(0.99),
            max_ns: late.max(),
        }
    }
}

/// What the thread and those who steer it share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    stop: OwnedFd,
}

impl Shared {
    pub(crate) fn new(star: Star) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            state: Mutex::new(State::new(star)),
            stop: eventfd(0, EventfdFlags::CLOEXEC)?,
        }))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) -> io::Result<()> {
        rustix::io::write(&self.stop, &1_u64.to_ne_bytes())?;
        Ok(())
    }
}

/// Moves packets between the devices, one of each node, until `shared` is stopped.
pub(crate) fn forward(shared: &Shared, devices: &[OwnedFd]) -> io::Result<()> {
    // Without the right to, it waits for its turn like every thread; a status says which.
    shared.state().runs_at_once = plinth_thread::run_at_once().is_ok();
    let mut buffer = vec![0; MAX_PACKET_BYTES];
    let mut next_due_ns = None;
    loop {
        let mut waited: Vec<PollFd<'_>> = devices
            .iter()
            .map(|device| PollFd::new(device, PollFlags::IN))
            .chain([PollFd::new(&shared.stop, PollFlags::IN)])
            .collect();
        match poll(&mut waited, until(next_due_ns).as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let (stop, sending) = waited
            .split_last()
            .unwrap_or_else(|| unreachable!("there is one"));
        if !stop.revents().is_empty() {
            return Ok(());
        }
        let mut state = shared.state();
        for (from, device) in sending.iter().enumerate() {
            if device.revents().contains(PollFlags::IN) {
                read(&mut state, from, &devices[from], &mut buffer)?;
            }
        }
        deliver(&mut state, devices);
        next_due_ns = state.star.next_due_ns();
    }
}

/// How long to wait for something to read; None is for ever.
fn until(due_ns: Option<u64>) -> Option<Timespec> {
    let wait_ns = due_ns?
        .saturating_sub(monotonic_ns())
        .saturating_sub(SPIN_NS);
    Some(Timespec {
        tv_sec: (wait_ns / 1_000_000_000) as i64,
        tv_nsec: (wait_ns % 1_000_000_000) as i64,
    })
}

fn read(state: &mut State, from: usize, device: &OwnedFd, buffer: &mut [u8]) -> io::Result<()> {
    for _ in 0..READ_BATCH {
        match rustix::io::read(device.as_fd(), &mut *buffer) {
            Ok(bytes) => state.star.send(monotonic_ns(), from, &buffer[..bytes]),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(()),
            // The device was taken down or its namespace is gone: nothing comes from there.
            Err(rustix::io::Errno::BADFD | rustix::io::Errno::IO) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn deliver(state: &mut State, devices: &[OwnedFd]) {
    while let Some(arrival) = state.star.receive(monotonic_ns()) {
        let late_ns = monotonic_ns().saturating_sub(arrival.due_ns);
        // For any reason, a packet that is not taken is lost, as on a real network.
        match rustix::io::write(&devices[arrival.to], &arrival.packet) {
            Ok(_) => state.lateness_ns.saturating_record(late_ns),
            Err(_) => state.refused += 1,
        }
    }
}
