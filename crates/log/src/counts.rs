//! Counts what a log contains: sessions, statements by class, and how many of them can be replayed.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::path::PathBuf;

use serde::Serialize;

use crate::classifier::Classified;
use crate::entry::Place;
use crate::files::Compression;
use crate::reader::Content;
use crate::reading::{Log, shown};
use crate::replayable::Reason;
use crate::spans::most_at_once;
use crate::statement::{Form, Further, SessionFacts, Statement};

/// How many classes of statements are kept apart, so that a hostile log cannot exhaust the memory.
const MAX_CLASSES: usize = 50_000;
/// How many sessions are remembered to count how many were open at once.
const MAX_SPANS: usize = 4_000_000;

/// What was found.
#[derive(Debug, Serialize)]
pub struct Check {
    files: Vec<CheckedFile>,
    sessions: Sessions,
    statements: Statements,
    not_replayable: Vec<NotReplayable>,
    classes: Vec<Class>,
    /// How many classes are not listed, and the statements in them.
    further_classes: u64,
    further_statements: u64,
    databases: Vec<Counted>,
    users: Vec<Counted>,
    applications: Vec<Counted>,
    unread: Vec<UnreadLines>,
    /// Whether all times are in whole seconds.
    is_to_the_second: bool,
    /// Two zones, at least one of them unknown, between which the times may jump.
    unknown_zones: Option<(String, String)>,
    /// How often the time of an entry is before that of the one before it by more than a second.
    steps_back: u64,
}

#[derive(Debug, Serialize)]
struct CheckedFile {
    path: PathBuf,
    format: &'static str,
    compression: Compression,
    size_bytes: u64,
    #[serde(flatten)]
    content: Content,
}

#[derive(Debug, Default, Serialize)]
struct Sessions {
    count: u64,
    /// How many have their connection, and how many their end, in the log.
    with_beginning: u64,
    with_end: u64,
    /// The most that were open at once, from first to last entry. None if there are too many sessions to tell.
    most_at_once: Option<u64>,
}

#[derive(Debug, Default, Serialize)]
struct Statements {
    count: u64,
    simple: u64,
    extended: u64,
    with_duration: u64,
    failed: u64,
    replayable: u64,
    /// Fetches of more rows from portals, which are replayed with their statement.
    fetches: u64,
    replication_commands: u64,
    /// Durations whose statements are not logged.
    lone_durations: u64,
    /// Errors outside of statements, such as a lost connection.
    other_errors: u64,
    duration_us: u64,
}

#[derive(Debug, Serialize)]
struct NotReplayable {
    reason: Reason,
    count: u64,
    #[serde(flatten)]
    example: Example,
}

/// Lines that are not entries, by reason. The reason is None for lines that are too long.
#[derive(Debug, Serialize)]
struct UnreadLines {
    reason: Option<String>,
    count: u64,
    #[serde(flatten)]
    example: Example,
}

/// The first of its kind.
#[derive(Clone, Debug, Serialize)]
struct Example {
    path: PathBuf,
    line: u64,
    text: String,
}

#[derive(Clone, Debug, Serialize)]
struct Class {
    text: String,
    count: u64,
    failed: u64,
    with_duration: u64,
    duration_us: u64,
    longest_us: u64,
    not_replayable: u64,
}

#[derive(Debug, Serialize)]
struct Counted {
    name: String,
    sessions: u64,
    statements: u64,
}

/// Counts what a log holds.
#[derive(Default)]
pub(crate) struct Counts {
    sessions: Sessions,
    /// First and last time of each session.
    spans: Vec<(i64, i64)>,
    statements: Statements,
    not_replayable: HashMap<Reason, (u64, Place, String)>,
    classes: HashMap<u64, Class>,
    further_statements: u64,
    databases: HashMap<Vec<u8>, (u64, u64)>,
    users: HashMap<Vec<u8>, (u64, u64)>,
    applications: HashMap<Vec<u8>, (u64, u64)>,
}

impl Counts {
    pub(crate) fn statement(
        &mut self,
        statement: &Statement<'_>,
        class: &Classified,
        refused: Option<Reason>,
    ) {
        let all = &mut self.statements;
        all.count += 1;
        match statement.form {
            Form::Simple => all.simple += 1,
            Form::Extended | Form::Prepared => all.extended += 1,
        }
        all.with_duration += u64::from(statement.duration_us.is_some());
        all.failed += u64::from(statement.has_failed);
        let duration_us = statement.duration_us.unwrap_or(0);
        all.duration_us = all.duration_us.saturating_add(duration_us);
        match refused {
            None => self.statements.replayable += 1,
            Some(reason) => {
                let (count, ..) = self
                    .not_replayable
                    .entry(reason)
                    .or_insert_with(|| (0, statement.place, shown(statement.text)));
                *count += 1;
            }
        }
        let has_room = self.classes.len() < MAX_CLASSES;
        let counted = match self.classes.entry(class.hash) {
            Slot::Occupied(slot) => slot.into_mut(),
            Slot::Vacant(slot) if has_room => slot.insert(Class {
                text: shown(&class.normalised.text),
                count: 0,
                failed: 0,
                with_duration: 0,
                duration_us: 0,
                longest_us: 0,
                not_replayable: 0,
            }),
            Slot::Vacant(_) => {
                self.further_statements += 1;
                return;
            }
        };
        counted.count += 1;
        counted.failed += u64::from(statement.has_failed);
        counted.with_duration += u64::from(statement.duration_us.is_some());
        counted.duration_us = counted.duration_us.saturating_add(duration_us);
        counted.longest_us = counted.longest_us.max(duration_us);
        counted.not_replayable += u64::from(refused.is_some());
    }

    pub(crate) fn session(&mut self, session: &SessionFacts) {
        self.sessions.count += 1;
        self.sessions.with_beginning += u64::from(session.has_beginning);
        self.sessions.with_end += u64::from(session.has_end);
        if self.spans.len() < MAX_SPANS {
            self.spans.push((session.first_us, session.last_us));
        }
        for (counted, name) in [
            (&mut self.databases, &session.database),
            (&mut self.users, &session.user),
            (&mut self.applications, &session.application),
        ] {
            if counted.len() < MAX_CLASSES || counted.contains_key(name) {
                let (sessions, statements) = counted.entry(name.clone()).or_default();
                *sessions += 1;
                *statements += session.statements;
            }
        }
    }

    pub(crate) fn further(&mut self, further: Further) {
        let all = &mut self.statements;
        match further {
            Further::FastpathCall(place) => {
                let counted = self.not_replayable.entry(Reason::FastpathCall);
                counted.or_insert((0, place, String::new())).0 += 1;
            }
            Further::Fetch => all.fetches += 1,
            Further::ReplicationCommand => all.replication_commands += 1,
            Further::LoneDuration => all.lone_durations += 1,
            Further::OtherError => all.other_errors += 1,
        }
    }

    /// Puts together what a log holds; `listed` classes are listed.
    pub(crate) fn result(mut self, listed: usize, log: Log) -> Check {
        let sources = &log.sources;
        let example = |place: Place, text: String| Example {
            path: sources[place.file].path.clone(),
            line: place.line,
            text,
        };
        self.sessions.most_at_once =
            (self.spans.len() < MAX_SPANS).then(|| most_at_once(self.spans.iter().copied()));
        for (reason, count, place, text) in &log.unread {
            if reason.is_none() {
                self.not_replayable
                    .insert(Reason::TooLong, (*count, *place, text.clone()));
            }
        }
        let mut not_replayable: Vec<_> = self.not_replayable.into_iter().collect();
        not_replayable.sort_by_key(|(reason, (count, ..))| (std::cmp::Reverse(*count), *reason));
        let mut classes: Vec<Class> = self.classes.into_values().collect();
        classes.sort_by(|a, b| {
            (b.duration_us, b.count, &a.text).cmp(&(a.duration_us, a.count, &b.text))
        });
        let further = classes.split_off(classes.len().min(listed));
        Check {
            files: sources
                .iter()
                .zip(log.contents)
                .map(|(source, content)| CheckedFile {
                    path: source.path.clone(),
                    format: source.format.name(),
                    compression: source.compression,
                    size_bytes: source.size_bytes,
                    content,
                })
                .collect(),
            sessions: self.sessions,
            statements: self.statements,
            not_replayable: not_replayable
                .into_iter()
                .map(|(reason, (count, place, text))| NotReplayable {
                    reason,
                    count,
                    example: example(place, text),
                })
                .collect(),
            further_classes: further.len() as u64,
            further_statements: self.further_statements
                + further.iter().map(|class| class.count).sum::<u64>(),
            classes,
            databases: counted(self.databases),
            users: counted(self.users),
            applications: counted(self.applications),
            unread: log
                .unread
                .into_iter()
                .map(|(reason, count, place, text)| UnreadLines {
                    reason,
                    count,
                    example: example(place, text),
                })
                .collect(),
            is_to_the_second: !log.has_fraction,
            unknown_zones: log
                .zones
                .unknown_change
                .map(|(before, after)| (shown(&before), shown(&after))),
            steps_back: log.steps_back,
        }
    }
}

fn counted(counts: HashMap<Vec<u8>, (u64, u64)>) -> Vec<Counted> {
    let mut all: Vec<Counted> = counts
        .into_iter()
        .map(|(name, (sessions, statements))| Counted {
            name: shown(&name),
            sessions,
            statements,
        })
        .collect();
    all.sort_by(|a, b| (b.statements, &a.name).cmp(&(a.statements, &b.name)));
    all
}
