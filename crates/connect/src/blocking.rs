//! Opens a session in one call, which waits.

use std::sync::Arc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::dialer::Dialer;
use crate::error::ConnectError;
use crate::opening::{Opened, Opening, Progress};

impl Dialer {
    /// Opens a session, and waits for it.
    ///
    /// # Errors
    /// The reason why there is no session.
    pub fn open(self: &Arc<Self>) -> Result<Opened, ConnectError> {
        let mut opening = Opening::new(self);
        loop {
            if let Progress::Opened(opened) = opening.advance()? {
                return Ok(*opened);
            }
            wait(&opening);
        }
    }
}

/// Waits until `opening` can advance.
fn wait(opening: &Opening) {
    let left = opening
        .wake_at()
        .map(|at| at.saturating_duration_since(Instant::now()));
    let timeout = left.and_then(|left| Timespec::try_from(left).ok());
    let waited = match opening.socket() {
        Some(socket) => {
            let mut flags = PollFlags::IN;
            flags.set(PollFlags::OUT, opening.waits_to_send());
            poll(&mut [PollFd::new(&socket, flags)], timeout.as_ref())
        }
        None => poll(&mut [], timeout.as_ref()),
    };
    // Interrupted or not, the opening itself finds out what there is to do.
    debug_assert!(!matches!(waited, Err(errno) if errno != Errno::INTR));
}
