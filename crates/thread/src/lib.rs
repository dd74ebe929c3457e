//! What every thread of the engines does about itself: leave signals to the program, and know what it costs.

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
}
