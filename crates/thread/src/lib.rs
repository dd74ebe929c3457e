//! Threads of the engines: their lifecycle, their CPU time, blocked signals and their scheduling policy.

pub mod lifecycle;

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::SigSet;
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use rustix::thread::LinkNameSpaceType;

/// CPU time that a thread has used, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In the program.
    pub user_ns: u64,
    /// In the kernel on its behalf.
    pub system_ns: u64,
}

impl CpuTime {
    /// The CPU time that the calling thread has used since it began.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn of_this_thread() -> io::Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
        Ok(Self {
            user_ns: usage.user_time().num_nanoseconds() as u64,
            system_ns: usage.system_time().num_nanoseconds() as u64,
        })
    }
}

impl std::ops::Sub for CpuTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns - earlier.user_ns,
            system_ns: self.system_ns - earlier.system_ns,
        }
    }
}

impl std::ops::AddAssign for CpuTime {
    fn add_assign(&mut self, other: Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
    }
}

/// The clock of `std::time::Instant` as a number, which is cheaper to read and to subtract.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)
        .unwrap_or_else(|errno| unreachable!("Linux has this clock: {errno}"));
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// The interval at which a wait checks whether to continue.
pub const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits at most `timeout` until `wait_ended`, which waits for at most the interval that it is given, returns true. Returns
/// whether it did. `keep_waiting` is asked after each interval; the wait ends when it returns false.
pub fn poll_until(
    timeout: Duration,
    mut keep_waiting: impl FnMut() -> bool,
    mut wait_ended: impl FnMut(Duration) -> bool,
) -> bool {
    let began = Instant::now();
    loop {
        let left = timeout.saturating_sub(began.elapsed());
        if wait_ended(left.min(POLL_INTERVAL)) {
            return true;
        }
        if left.is_zero() || !keep_waiting() {
            return false;
        }
    }
}

/// Runs the work of a thread with signals blocked. An error becomes its message, and so does a panic.
///
/// # Errors
/// An error of `work`, or that it panicked.
pub fn run_guarded<T>(work: impl FnOnce() -> io::Result<T>) -> Result<T, String> {
    let guarded = AssertUnwindSafe(|| block_signals().and_then(|()| work()));
    match panic::catch_unwind(guarded) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("a thread panicked".to_owned()),
    }
}

/// Blocks all signals in the calling thread, so that they are delivered to the program's own threads, which handle them.
///
/// # Errors
/// The error of the operating system.
pub fn block_signals() -> io::Result<()> {
    SigSet::all().thread_block().map_err(io::Error::from)
}

/// Starts a thread whose timers are exact, with signals left to the program's own threads.
///
/// # Errors
/// The error of the operating system.
pub fn spawn_exact(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(move || {
        // Neither call can fail on Linux. If one did, signals would still be handled, and sleeps be 50 us longer.
        let _ = block_signals();
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        run();
    })
}

/// Moves the calling thread into a network namespace (network_namespaces(7)), given by its file, such as /run/netns/NAME. Sockets
/// that it opens from then on are in it; those that it has already stay where they are.
///
/// # Errors
/// The error of the operating system, such as of a user without the right to.
pub fn enter_network_namespace(path: &Path) -> io::Result<()> {
    let namespace = File::open(path)?;
    rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    Ok(())
}

/// Gives the calling thread the scheduling policy `SCHED_FIFO` (sched(7)) with the lowest of its priorities: it runs as soon
/// as it can, before every thread of the usual policies. For threads that only wait and do little.
///
/// # Errors
/// The error of the operating system, such as of a user without the right to.
pub fn run_at_once() -> io::Result<()> {
    let lowest = libc::sched_param { sched_priority: 1 };
    #[allow(
        unsafe_code,
        reason = "no safe binding; a plain call about this thread, with a live struct"
    )]
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Gives the calling thread the scheduling policy `SCHED_BATCH` (sched(7)): when it wakes up, it does not preempt the
/// running thread. A load engine that shares processors with the server then finds several replies at once instead of
/// switching back and forth for each, which costs both less CPU time and is steadier. A thread that has a policy other
/// than `SCHED_OTHER` keeps it.
///
/// # Errors
/// The error of the operating system. The thread works without the policy too, at a higher cost.
pub fn do_not_preempt() -> io::Result<()> {
    let unchanged = libc::sched_param { sched_priority: 0 };
    #[allow(
        unsafe_code,
        reason = "no safe binding; two plain calls about this thread, by value or with a live struct"
    )]
    let result = unsafe {
        match libc::sched_getscheduler(0) {
            libc::SCHED_OTHER => {
                libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const unchanged)
            }
            other => other.min(0),
        }
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_that_of_the_calling_thread() {
        let before = CpuTime::of_this_thread().unwrap();
        let other = std::thread::spawn(|| {
            let mut n = 0_u64;
            while CpuTime::of_this_thread().unwrap().user_ns < 20_000_000 {
                n = std::hint::black_box(n + 1);
            }
            CpuTime::of_this_thread().unwrap()
        });
        let theirs = other.join().unwrap();
        let ours = CpuTime::of_this_thread().unwrap().user_ns - before.user_ns;
        assert!(
            theirs.user_ns >= 20_000_000 && ours < theirs.user_ns,
            "{ours} and {theirs:?}"
        );
    }

    #[test]
    fn a_wait_ends_with_its_event_its_timeout_or_when_told_to() {
        let mut calls = 0;
        let mut third = |_| {
            calls += 1;
            calls == 3
        };
        assert!(poll_until(Duration::MAX, || true, &mut third));
        assert!(!poll_until(Duration::ZERO, || true, |_| false));
        assert!(!poll_until(Duration::MAX, || false, |_| false));
        poll_until(Duration::MAX, || true, |interval| interval <= POLL_INTERVAL);
    }

    #[test]
    fn errors_and_panics_of_threads_become_messages() {
        assert_eq!(run_guarded(|| Ok(7)), Ok(7));
        let failed = run_guarded(|| Err::<(), _>(io::Error::other("no disk")));
        assert_eq!(failed, Err("no disk".to_owned()));
        let thread = std::thread::spawn(|| run_guarded(|| -> io::Result<()> { panic!("oh") }));
        assert_eq!(thread.join().unwrap(), Err("a thread panicked".to_owned()));
    }

    #[test]
    fn the_policy_becomes_batch_and_stays() {
        let is_batch = || {
            // proc_pid_stat(5): policy is field 41; the fields after the name in brackets begin with 3.
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let (_, fields) = stat.rsplit_once(") ").unwrap();
            fields.split(' ').nth(41 - 3) == Some("3")
        };
        assert!(!is_batch());
        do_not_preempt().unwrap();
        assert!(is_batch());
        do_not_preempt().unwrap();
        assert!(is_batch());
    }
}
