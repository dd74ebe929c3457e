//! How a statement has ended: what the server did, and how that compares with the recording.

use crate::errors::{ErrorKind, Failure, Place};
use crate::recorder::{Ended, Outcome};
use crate::replay::answer::{follows_another, is_refused_write};
use crate::replay::player::Player;
use crate::replay::statement::Sent;

impl Player<'_> {
    /// Counts a statement that has ended, by what the server did, and by how that compares with the recording.
    pub(super) fn ended(
        &mut self,
        place: usize,
        sent: &Sent,
        began_ns: u64,
        failure: Option<Failure>,
    ) {
        self.pending -= 1;
        self.busy -= 1;
        let outcome = match failure {
            None => {
                self.counts.no_longer_failing += u64::from(sent.has_failed);
                Outcome::Done
            }
            Some(failure) => self.failed(place, sent, failure),
        };
        let connection = &mut self.connections[place];
        if !connection.has_failed {
            connection.shared_reason = None;
        }
        self.record(sent, began_ns, outcome);
    }

    /// Counts a failure. Returns its kind: that of the statement which made the transaction fail, if it is only for that.
    pub(super) fn failed(&mut self, place: usize, sent: &Sent, mut failure: Failure) -> Outcome {
        let connection = &mut self.connections[place];
        let code = failure.sqlstate.as_deref().unwrap_or("").as_bytes();
        let as_recorded = sent.has_failed
            && sent.sqlstate.map_or_else(
                || !failure.kind.is_of_connection(),
                |recorded| recorded == code,
            );
        let shared = connection
            .shared_reason
            .filter(|_| follows_another(&failure));
        if as_recorded {
            failure.kind = ErrorKind::AsRecorded;
        } else if self.replay.read_only && is_refused_write(&failure) {
            failure.kind = ErrorKind::RefusedWrite;
        } else if let Some(kind) = shared {
            failure.kind = kind;
        }
        let kind = failure.kind;
        match kind {
            ErrorKind::AsRecorded => self.counts.failed_as_recorded += 1,
            ErrorKind::RefusedWrite => self.counts.refused_writes += 1,
            _ => {}
        }
        let is_shared = matches!(kind, ErrorKind::AsRecorded | ErrorKind::RefusedWrite);
        if connection.shared_reason.is_none() && is_shared {
            connection.shared_reason = Some(kind);
        }
        let place = Place {
            script: Some(sent.label),
            ..Place::default()
        };
        self.recorder.error(place, failure, self.last_ns);
        Outcome::Failed(kind)
    }

    pub(super) fn record(&mut self, sent: &Sent, began_ns: u64, outcome: Outcome) {
        let ended = Ended {
            script: sent.label,
            outcome,
            rolls_back: false,
            tries: 1,
            intended_ns: sent.intended_ns.min(began_ns),
            began_ns,
            now_ns: self.last_ns,
        };
        self.recorder.ended(&ended);
        if let (Outcome::Done, Some(recorded_ns)) = (outcome, sent.recorded_ns) {
            self.recorder.recorded(sent.label, recorded_ns);
        }
    }
}
