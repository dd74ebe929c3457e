//! One session of a log: which of its statements is open, and which durations belong to it.

use crate::entry::{Entry, Place, Severity};
use crate::message::{Executed, Timed};
use crate::statement::{Form, Further, SessionFacts, Sink, Statement};

/// Names are cut to this; PostgreSQL's have at most 63 bytes.
const MAX_NAME_BYTES: usize = 256;

#[derive(Default)]
pub(crate) struct Session {
    pub(crate) facts: SessionFacts,
    pub(crate) is_authorized: bool,
    open: Option<Open>,
    /// Durations of parsing and binding before their execution.
    before: Before,
    /// Its statement was handed over before its end was seen, to save memory.
    is_handed_over: bool,
}

struct Open {
    start_us: i64,
    before_us: u64,
    form: Form,
    text: Vec<u8>,
    detail: Vec<u8>,
    has_failed: bool,
    sqlstate: Option<[u8; 5]>,
    place: Place,
    end_is_known: bool,
}

/// What came before an execution. Where durations are logged without what they are of, they may be of statements that
/// log_statement leaves out: at most the last two can be those of parsing and binding.
#[derive(Default)]
struct Before {
    /// When they began, and how long they took.
    steps: Vec<(i64, u64)>,
    /// How many of them are without what they are of.
    unnamed: u64,
    /// With the parameters, of the binding: all that is known of them if the execution fails.
    detail: Vec<u8>,
    /// Whether it is proven where that ends.
    detail_end_is_known: bool,
}

impl Before {
    fn push(
        &mut self,
        start_us: i64,
        duration_us: u64,
        is_named: bool,
        entry: &Entry<'_>,
        sink: &mut impl Sink,
    ) {
        if self.steps.len() == 2 {
            self.steps.remove(0);
            if self.unnamed > 0 {
                self.unnamed -= 1;
                sink.further(Further::LoneDuration);
            }
        }
        self.steps.push((start_us, duration_us));
        self.unnamed += u64::from(!is_named);
        self.detail = entry.detail.to_vec();
        self.detail_end_is_known = entry.end_is_known;
    }

    /// Takes them for the execution that follows: when the first began, and how long they took in all.
    fn take(&mut self) -> Option<(i64, u64)> {
        let steps = std::mem::take(self).steps;
        let duration_us = steps
            .iter()
            .fold(0_u64, |sum, step| sum.saturating_add(step.1));
        steps.first().map(|first| (first.0, duration_us))
    }

    /// They are of no statement that is logged.
    fn drop_all(&mut self, sink: &mut impl Sink) {
        for _ in 0..std::mem::take(self).unnamed {
            sink.further(Further::LoneDuration);
        }
    }
}

impl Session {
    pub(crate) fn name(&mut self, user: &[u8], database: &[u8], application: &[u8]) {
        let facts = &mut self.facts;
        for (known, said) in [
            (&mut facts.user, user),
            (&mut facts.database, database),
            (&mut facts.application, application),
        ] {
            if known.is_empty() && !said.is_empty() {
                *known = said[..said.len().min(MAX_NAME_BYTES)].to_vec();
            }
        }
    }

    /// A statement that log_statement logs when it begins.
    pub(crate) fn begin(
        &mut self,
        form: Form,
        text: &[u8],
        entry: &Entry<'_>,
        place: Place,
        sink: &mut impl Sink,
    ) {
        self.flush(None, sink);
        self.is_handed_over = false;
        let (start_us, before_us) = self.take_before(form, entry.time_us, sink);
        self.open = Some(Open {
            start_us,
            before_us,
            form,
            text: text.to_vec(),
            detail: entry.detail.to_vec(),
            has_failed: false,
            sqlstate: None,
            place,
            end_is_known: entry.end_is_known,
        });
    }

    /// A duration, which is logged at the end.
    pub(crate) fn took(
        &mut self,
        duration_us: u64,
        timed: &Timed<'_>,
        entry: &Entry<'_>,
        place: Place,
        sink: &mut impl Sink,
    ) {
        let start_us = entry
            .time_us
            .saturating_sub(i64::try_from(duration_us).unwrap_or(i64::MAX));
        match timed {
            Timed::Before if self.open.is_some() => self.flush(Some(duration_us), sink),
            Timed::Before if self.is_handed_over => self.is_handed_over = false,
            Timed::Before | Timed::Parse | Timed::Bind => {
                let is_named = *timed != Timed::Before;
                self.before
                    .push(start_us, duration_us, is_named, entry, sink);
            }
            Timed::Statement(text) => self.whole(
                Form::Simple,
                text,
                start_us,
                duration_us,
                entry,
                place,
                sink,
            ),
            Timed::Execute(Executed { is_fetch: true, .. }) => sink.further(Further::Fetch),
            Timed::Execute(executed) => {
                self.whole(
                    Form::of(executed),
                    executed.text,
                    start_us,
                    duration_us,
                    entry,
                    place,
                    sink,
                );
            }
            Timed::FastpathCall => sink.further(Further::FastpathCall(place)),
            Timed::Plan => {}
        }
    }

    /// A statement whose text is logged with its duration.
    #[expect(
        clippy::too_many_arguments,
        reason = "they are the parts of one statement"
    )]
    fn whole(
        &mut self,
        form: Form,
        text: &[u8],
        start_us: i64,
        duration_us: u64,
        entry: &Entry<'_>,
        place: Place,
        sink: &mut impl Sink,
    ) {
        self.flush(None, sink);
        let (start_us, before_us) = self.take_before(form, start_us, sink);
        self.facts.first_us = self.facts.first_us.min(start_us);
        self.facts.statements += 1;
        sink.statement(&Statement {
            session: &self.facts,
            start_us,
            duration_us: Some(duration_us.saturating_add(before_us)),
            form,
            text,
            detail: &entry.detail,
            has_failed: false,
            sqlstate: None,
            place,
            end_is_known: entry.end_is_known,
        });
    }

    /// An error: of the statement that is open, or of one that was not logged since it did not end.
    pub(crate) fn failed(&mut self, entry: &Entry<'_>, place: Place, sink: &mut impl Sink) {
        // Without its statement (log_min_error_statement), or with a part of it, an ERROR is of the one that runs; a FATAL ends
        // idle sessions, too.
        let is_without = entry.statement.is_empty() || !entry.end_is_known;
        let is_of_running = is_without && entry.severity == Severity::Error;
        match &mut self.open {
            Some(open) if is_of_running || *open.text == *entry.statement => {
                (open.has_failed, open.sqlstate) = (true, entry.sqlstate);
                self.flush(None, sink);
            }
            _ if entry.statement.is_empty() => sink.further(Further::OtherError),
            _ => {
                let form = if self.before.steps.is_empty() {
                    Form::Simple
                } else {
                    Form::Extended
                };
                let bound = self.before.detail.clone();
                let bound_end_is_known = self.before.detail_end_is_known || bound.is_empty();
                self.begin(form, &entry.statement, entry, place, sink);
                if let Some(open) = &mut self.open {
                    (open.has_failed, open.sqlstate) = (true, entry.sqlstate);
                    open.detail = bound; // the entry's own is of the error
                    open.end_is_known &= bound_end_is_known;
                }
                self.flush(None, sink);
            }
        }
    }

    /// Returns when a statement began that is logged at `start_us`, and how long its parsing and binding took.
    fn take_before(&mut self, form: Form, start_us: i64, sink: &mut impl Sink) -> (i64, u64) {
        match form {
            Form::Extended | Form::Prepared => self.before.take().unwrap_or((start_us, 0)),
            Form::Simple => {
                self.before.drop_all(sink); // that protocol has no such steps
                (start_us, 0)
            }
        }
    }

    /// Hands the open statement over.
    pub(crate) fn flush(&mut self, duration_us: Option<u64>, sink: &mut impl Sink) {
        if let Some(open) = self.open.take() {
            self.facts.statements += 1;
            sink.statement(&Statement {
                session: &self.facts,
                start_us: open.start_us,
                duration_us: duration_us
                    .map(|duration_us| duration_us.saturating_add(open.before_us)),
                form: open.form,
                text: &open.text,
                detail: &open.detail,
                has_failed: open.has_failed,
                sqlstate: open.sqlstate,
                place: open.place,
                end_is_known: open.end_is_known,
            });
        }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        let open = self
            .open
            .as_ref()
            .map_or(0, |open| open.text.len() + open.detail.len());
        open + self.before.detail.len()
    }

    /// Hands the open statement over before its end was seen: its duration stays unknown.
    pub(crate) fn hand_over(&mut self, sink: &mut impl Sink) {
        self.is_handed_over |= self.open.is_some();
        self.flush(None, sink);
        self.before.drop_all(sink);
    }

    pub(crate) fn end(mut self, sink: &mut impl Sink) {
        self.flush(None, sink);
        self.before.drop_all(sink);
        sink.session(&self.facts);
    }
}
