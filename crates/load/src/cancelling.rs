//! Cancels statements that were cut off, so that the server stops executing them.

use std::io;
use std::time::{Duration, Instant};

use plinth_connect::Canceller;

use crate::errors::{ErrorKind, Failure, Place};
use crate::recorder::Recorder;

/// For all of them together: a server that does not answer must not hold up the end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Asks the server to cancel each; what cannot be asked in time is recorded as an error.
pub(crate) fn cancel_all(cancellers: &[Box<Canceller>], recorder: &mut Recorder, now_ns: u64) {
    let deadline = Instant::now() + CANCEL_TIMEOUT;
    for canceller in cancellers {
        let left = deadline.saturating_duration_since(Instant::now());
        let sent = if left.is_zero() {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            canceller.send(left)
        };
        if let Err(error) = sent {
            let message = format!("a statement cut off could not be cancelled: {error}");
            let failure = Failure {
                kind: ErrorKind::Cancel,
                sqlstate: None,
                message,
                in_full: None,
            };
            recorder.error(Place::default(), failure, now_ns);
        }
    }
}
