//! One session of a log: its open statement, and the durations that belong to it.

use crate::entry::{Entry, Place, Severity};
use crate::message::{Executed, Timed};
use crate::statement::{Form, Further, SessionFacts, Sink, Statement};

/// Longer names are cut. PostgreSQL's have at most 63 bytes.
const MAX_NAME_BYTES: usize = 256;

#[derive(Default)]
pub(crate) struct Session {
    pub(crate) facts: SessionFacts,
    pub(crate) is_authorized: bool,
    open: Option<Open>,
    /// Durations of parsing and binding, which precede their execution.
    before: Before,
    /// Its statement was handed over early to save memory, so that the next duration belongs to none.
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

/// The steps before an execution. A duration that is logged without its step may belong to a statement that log_statement leaves
/// out: at most the last two can be those of parsing and binding.
#[derive(Default)]
struct Before {
    /// When each began, and how long it took.
    steps: Vec<(i64, u64)>,
    /// How many of them are logged without the name of the step.
    unnamed: u64,
    /// DETAIL of the binding. If the execution fails, it is the only record of the parameters.
    detail: Vec<u8>,
    /// Whether its end is proven.
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

    /// Takes the steps for the execution that follows. Returns when the first began, and their total duration.
    fn take(&mut self) -> Option<(i64, u64)> {
        let steps = std::mem::take(self).steps;
        let duration_us = steps
            .iter()
            .fold(0_u64, |sum, step| sum.saturating_add(step.1));
        steps.first().map(|first| (first.0, duration_us))
    }

    /// Counts and forgets durations that belong to no logged statement.
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

    /// Takes a statement that log_statement logs when it begins.
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

    /// Takes a duration, which is logged when something ends.
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

    /// Takes a statement whose text is logged with its duration.
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

    /// Takes an error of the open statement, or of one that was not logged because it did not end.
    pub(crate) fn failed(&mut self, entry: &Entry<'_>, place: Place, sink: &mut impl Sink) {
        // An ERROR without its statement (log_min_error_statement), or with a part of it, belongs to the open statement. A FATAL
        // does not: it also ends idle sessions.
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
                    open.detail = bound; // the entry's own DETAIL explains the error
                    open.end_is_known &= bound_end_is_known;
                }
                self.flush(None, sink);
            }
        }
    }

    /// Returns when a statement logged at `start_us` began, and how long its parsing and binding took.
    fn take_before(&mut self, form: Form, start_us: i64, sink: &mut impl Sink) -> (i64, u64) {
        match form {
            Form::Extended | Form::Prepared => self.before.take().unwrap_or((start_us, 0)),
            Form::Simple => {
                self.before.drop_all(sink); // the simple protocol has no such steps
                (start_us, 0)
            }
        }
    }

    /// Hands over the open statement, if there is one.
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

    /// Hands over the open statement before its end was seen. Its duration stays unknown.
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
