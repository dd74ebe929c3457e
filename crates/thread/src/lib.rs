//! What the engines' threads do about themselves: leave signals to the program, interrupt nobody, know what they cost.

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::SigSet;
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

/// CPU time that a thread has used, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In the program.
    pub user_ns: u64,
    /// In the kernel on its behalf.
    pub system_ns: u64,
}

impl CpuTime {
    /// What the calling thread has used since it began.
    ///
    /// # Errors
    /// What the system said.
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

/// How often a wait looks whether it should go on waiting.
pub const GLANCE: Duration = Duration::from_millis(50);

/// Waits at most `timeout` for an end that `wait_ended` waits for a while for; whether it has come. `keep_waiting` is asked
/// now and then.
pub fn wait_in_glances(
    timeout: Duration,
    mut keep_waiting: impl FnMut() -> bool,
    mut wait_ended: impl FnMut(Duration) -> bool,
) -> bool {
    let began = Instant::now();
    loop {
        let left = timeout.saturating_sub(began.elapsed());
        if wait_ended(left.min(GLANCE)) {
            return true;
        }
        if left.is_zero() || !keep_waiting() {
            return false;
        }
    }
}

/// The life of a thread that works for others: signals are not for it, and what ends it before its time, a panic too, is told
/// in words.
///
/// # Errors
/// An error of `work`, or that it panicked.
pub fn work_for_others<T>(work: impl FnOnce() -> io::Result<T>) -> Result<T, String> {
    let guarded = AssertUnwindSafe(|| block_signals().and_then(|()| work()));
    match panic::catch_unwind(guarded) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("a thread panicked".to_owned()),
    }
}

/// Keeps all signals from the calling thread: they are for the program's own threads, which know what to do with them.
///
/// # Errors
/// What the system said.
pub fn block_signals() -> io::Result<()> {
    SigSet::all().thread_block().map_err(io::Error::from)
}

/// Lets the calling thread, when it wakes up, wait for its turn instead of interrupting who runs (`SCHED_BATCH`,
/// sched(7)). A load engine that shares processors with the server then finds several replies at once where it would
/// have switched back and forth for each: less CPU time for both, and steadier. A thread that was given another
/// policy keeps it.
///
/// # Errors
/// What the system said; the thread then only costs more.
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
    fn work_costs_time_of_the_thread_that_does_it() {
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
    fn a_wait_ends_with_its_end_its_time_or_the_wish_to_wait() {
        let mut glances = 0;
        let mut third = |_| {
            glances += 1;
            glances == 3
        };
        assert!(wait_in_glances(Duration::MAX, || true, &mut third));
        assert!(!wait_in_glances(Duration::ZERO, || true, |_| false));
        assert!(!wait_in_glances(Duration::MAX, || false, |_| false));
        wait_in_glances(Duration::MAX, || true, |glance| glance <= GLANCE);
    }

    #[test]
    fn what_ends_a_thread_is_told() {
        assert_eq!(work_for_others(|| Ok(7)), Ok(7));
        let failed = work_for_others(|| Err::<(), _>(io::Error::other("no disk")));
        assert_eq!(failed, Err("no disk".to_owned()));
        let thread = std::thread::spawn(|| work_for_others(|| -> io::Result<()> { panic!("oh") }));
        assert_eq!(thread.join().unwrap(), Err("a thread panicked".to_owned()));
    }

    #[test]
    fn a_thread_becomes_a_patient_one_unless_it_is_something_else_already() {
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
