//! Waiting for sockets and for the clock: mio over sockets that are only file descriptors here, and a timer
//! among them. A timer, because epoll's own timeout has milliseconds where `\sleep` has microseconds, and
//! would have to be armed on every wait.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

pub(crate) const READ: Interest = Interest::READABLE;
pub(crate) const READ_WRITE: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// Watches a descriptor, whether or not it was watched before; its events carry `token`.
pub(crate) fn watch(
    registry: &Registry,
    descriptor: BorrowedFd<'_>,
    token: usize,
    interest: Interest,
) -> io::Result<()> {
    let number = descriptor.as_raw_fd();
    match registry.register(&mut SourceFd(&number), Token(token), interest) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            change(registry, descriptor, token, interest)
        }
        outcome => outcome,
    }
}

pub(crate) fn change(
    registry: &Registry,
    descriptor: BorrowedFd<'_>,
    token: usize,
    interest: Interest,
) -> io::Result<()> {
    registry.reregister(
        &mut SourceFd(&descriptor.as_raw_fd()),
        Token(token),
        interest,
    )
}

/// Wakes the thread at a time of the run.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: OwnedFd,
    set_for_ns: u64,
}

impl Alarm {
    pub(crate) fn new(registry: &Registry, token: usize) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        watch(registry, timer.as_fd(), token, READ)?;
        Ok(Self {
            timer,
            set_for_ns: u64::MAX,
        })
    }

    /// Wakes at `at_ns` instead of when it was set for before; a time already past wakes at once.
    #[inline]
    pub(crate) fn set(&mut self, at_ns: u64, now_ns: u64) -> io::Result<()> {
        if at_ns == self.set_for_ns && at_ns > now_ns {
            return Ok(());
        }
        // Zero would switch the timer off.
        let wait = Duration::from_nanos(at_ns.saturating_sub(now_ns).max(1));
        let value = Timespec {
            tv_sec: wait.as_secs() as i64,
            tv_nsec: wait.subsec_nanos().into(),
        };
        let never = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let setting = Itimerspec {
            it_interval: never,
            it_value: value,
        };
        rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting)?;
        self.set_for_ns = at_ns;
        Ok(())
    }
}
