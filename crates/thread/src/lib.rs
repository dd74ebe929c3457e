//! What the engines' threads do about themselves: leave signals to the program, interrupt nobody, know what they cost.

use std::io;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::SigSet;
use nix::sys::time::TimeValLike;

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

impl std::ops::AddAssign for CpuTime {
    fn add_assign(&mut self, other: Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
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
