//! Threads that serve the disk: signals are left to the program's own threads, and timers are exact.

use std::io;
use std::num::NonZeroU64;
use std::thread::{Builder, JoinHandle};

pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(move || {
        // Neither call can fail on Linux. If one did, signals would still be handled, and sleeps be 50 us longer.
        let _ = plinth_thread::block_signals();
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        run();
    })
}
