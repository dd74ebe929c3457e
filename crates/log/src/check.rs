//! What a log holds: sessions, statements by class, and what of them can be replayed.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::assemble::{Assembler, Form, Further, Place, SessionFacts, Sink, Statement};
use crate::classifier::{Classified, Classifier};
use crate::entry::Entry;
use crate::error::LogError;
use crate::files::Compression;
use crate::reader::{self, Content, Entries, Progress, Source, Unread};
use crate::replay_file::most_at_once;
use crate::replayable::{Reason, parameters_of};
use crate::timestamp::Zones;

/// How many classes of statements are told from one another; a log that is made to have more costs no memory.
const MAX_CLASSES: usize = 50_000;
/// How many texts are known by heart: an application sends the same ones over and over.
/// How many sessions are remembered for the most at one time.
const MAX_SPANS: usize = 4_000_000;
/// How many reasons for which records are no entries are told from one another.
const MAX_UNREAD_REASONS: usize = 100;
/// How much of a text is shown.
const MAX_SHOWN_BYTES: usize = 2_000;

/// What to check.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckConfig {
    /// The files, in any order.
    files: Vec<PathBuf>,
    /// log_line_prefix of plain logs; None to try the usual ones.
    log_line_prefix: Option<String>,
    /// How many classes to list, those with the most time first.
    classes: usize,
}

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
    /// Whether no time has a fraction of a second.
    is_to_the_second: bool,
    /// Two zones, one of which is not known, between which the times may jump.
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
    /// Whose connection, and whose end, are in the log.
    with_beginning: u64,
    with_end: u64,
    /// The most at one time, from first to last entry; None if there are too many to tell.
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
    /// More rows of portals, which are replayed with their statement.
    fetches: u64,
    replication_commands: u64,
    /// Durations of statements that are not logged.
    lone_durations: u64,
    /// Errors of sessions outside of statements, such as a connection that was lost.
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

/// Lines that are no entries, by their reason; None of lines that are too long.
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

/// Reads a log and counts what it holds. `keep_going` is told how far the reading is, and asked whether to go on.
pub fn check(
    config: &CheckConfig,
    keep_going: &mut dyn FnMut(Progress) -> bool,
) -> Result<Check, LogError> {
    let counting = Counting::default();
    let prefix = config.log_line_prefix.as_deref();
    let reading = Reading::of(&config.files, prefix, counting, keep_going)?;
    let (log, counting) = reading.finish();
    Ok(counting.counts.result(config.classes, log))
}

/// Counts statements.
#[derive(Default)]
struct Counting {
    classifier: Classifier,
    counts: Counts,
}

impl Sink for Counting {
    fn statement(&mut self, statement: &Statement<'_>) {
        let class = self.classifier.classify(statement.text);
        let refused = parameters_of(statement, &class.normalised).err();
        self.counts.statement(statement, &class, refused);
    }

    fn session(&mut self, session: &SessionFacts) {
        self.counts.session(session);
    }

    fn further(&mut self, further: Further) {
        self.counts.further(further);
    }
}

/// The reading of a log, whose statements and sessions go to a sink.
pub(crate) struct Reading<S> {
    assembler: Assembler,
    sink: S,
    log: Log,
}

/// What a log's files hold, but for statements and sessions.
pub(crate) struct Log {
    sources: Vec<Source>,
    contents: Vec<Content>,
    zones: Zones,
    last_us: i64,
    steps_back: u64,
    has_fraction: bool,
    unread: Vec<(Option<String>, u64, Place, String)>,
}

impl<S: Sink> Reading<S> {
    /// Reads all files.
    pub(crate) fn of(
        files: &[PathBuf],
        prefix: Option<&str>,
        sink: S,
        keep_going: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Self, LogError> {
        let sources = reader::sources(files, prefix)?;
        let mut zones = Zones::default();
        let mut reading = Self {
            assembler: Assembler::default(),
            sink,
            log: Log {
                sources: Vec::new(),
                contents: Vec::new(),
                zones: Zones::default(),
                last_us: i64::MIN,
                steps_back: 0,
                has_fraction: false,
                unread: Vec::new(),
            },
        };
        let mut before_bytes = 0;
        for (number, source) in sources.iter().enumerate() {
            let mut ask = |read_bytes| {
                keep_going(Progress {
                    content_bytes: before_bytes + read_bytes,
                    file: number + 1,
                    files: sources.len(),
                })
            };
            let content = reader::read(source, number, &mut zones, &mut reading, &mut ask)?;
            before_bytes += content.content_bytes;
            reading.log.contents.push(content);
        }
        reading.assembler.finish(&mut reading.sink);
        reading.log.sources = sources;
        reading.log.zones = zones;
        Ok(reading)
    }

    pub(crate) fn finish(self) -> (Log, S) {
        (self.log, self.sink)
    }
}

impl<S: Sink> Entries for Reading<S> {
    fn entry(&mut self, entry: &Entry<'_>, place: Place) {
        let log = &mut self.log;
        log.has_fraction |= entry.time_us % 1_000_000 != 0;
        log.steps_back += u64::from(entry.time_us.saturating_add(1_000_000) < log.last_us);
        log.last_us = entry.time_us;
        self.assembler.entry(entry, place, &mut self.sink);
    }

    fn unread(&mut self, unread: &Unread<'_>) {
        let all = &mut self.log.unread;
        let known = all.iter().position(|(reason, ..)| *reason == unread.reason);
        if let Some(known) = known {
            all[known].1 += 1;
        } else if all.len() < MAX_UNREAD_REASONS {
            let beginning = shown(unread.beginning);
            all.push((unread.reason.clone(), 1, unread.place, beginning));
        }
    }

    fn wants_more(&self) -> bool {
        self.sink.wants_more()
    }
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

/// The beginning of a text of any encoding.
fn shown(text: &[u8]) -> String {
    let cut = &text[..text.len().min(MAX_SHOWN_BYTES)];
    String::from_utf8_lossy(cut).into_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::Value;

    use super::*;

    fn checked(files: &[(&str, &str)], prefix: Option<&str>) -> Result<Value, LogError> {
        let folder = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for (name, text) in files {
            paths.push(folder.path().join(name));
            fs::write(folder.path().join(name), text).unwrap();
        }
        let config = CheckConfig {
            files: paths,
            log_line_prefix: prefix.map(str::to_owned),
            classes: 10,
        };
        check(&config, &mut |_| true).map(|found| serde_json::to_value(found).unwrap())
    }

    const PLAIN: &str = "\
2026-11-27 12:00:00.000 UTC [7] app@shop LOG:  statement: SELECT 1;
2026-11-27 12:00:00.100 UTC [7] app@shop LOG:  duration: 99.5 ms
2026-11-27 12:00:00.200 UTC [8] app@shop LOG:  execute <unnamed>: SELECT *
\tFROM t WHERE a = $1
2026-11-27 12:00:00.200 UTC [8] app@shop DETAIL:  parameters: $1 = '5'
2026-11-27 12:00:00.300 UTC [7] app@shop LOG:  statement: COPY t FROM STDIN
2026-11-27 12:00:00.400 UTC [7] app@shop LOG:  execute s1: SELECT $1
2026-11-27 12:00:00.500 UTC [1] LOG:  checkpoint starting: time
what is this
";

    #[test]
    fn a_plain_log_is_counted() {
        let found = checked(&[("a.log", PLAIN)], None).unwrap();
        assert_eq!(found["files"][0]["format"], "stderr");
        assert_eq!(found["files"][0]["entries"], 6);
        assert_eq!(found["files"][0]["malformed"], 1);
        assert_eq!(found["unread"][0]["line"], 9);
        assert_eq!(found["unread"][0]["text"], "what is this");
        assert_eq!(found["sessions"]["count"], 2);
        assert_eq!(found["sessions"]["most_at_once"], 2);
        let statements = &found["statements"];
        assert_eq!(
            (&statements["count"], &statements["replayable"]),
            (&4.into(), &2.into())
        );
        assert_eq!(
            (&statements["simple"], &statements["extended"]),
            (&2.into(), &2.into())
        );
        assert_eq!(
            (&statements["with_duration"], &statements["duration_us"]),
            (&1.into(), &99_500.into())
        );
        let reasons: Vec<&str> = found["not_replayable"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["reason"].as_str().unwrap())
            .collect();
        assert_eq!(reasons, ["parameters_absent", "copy_data"]);
        assert_eq!(found["not_replayable"][0]["line"], 7);
        assert_eq!(found["classes"][0]["text"], "select $1;");
        assert_eq!(found["databases"][0]["name"], "shop");
    }

    #[test]
    fn parameters_are_of_their_own_statement_only() {
        let text = "\
2026-11-27 12:00:00.000 UTC [7] app@shop LOG:  execute <unnamed>: SELECT $1
2026-11-27 12:00:00.000 UTC [8] app@shop DETAIL:  parameters: $1 = '5'
2026-11-27 12:00:00.100 UTC [7] app@shop LOG:  execute <unnamed>: SELECT $1
of an archive_command
2026-11-27 12:00:00.100 UTC [7] app@shop DETAIL:  parameters: $1 = '5'
2026-11-27 12:00:00.200 UTC [7] app@shop LOG:  execute <unnamed>: SELECT $1
2026-11-27 12:00:00.200 UTC [7] app@shop DETAIL:  parameters: $1 = '5'
2026-11-27 12:00:00.300 UTC [1] LOG:  checkpoint starting: time
";
        let found = checked(&[("a.log", text)], None).unwrap();
        let refused = |number: usize| {
            let one = &found["not_replayable"][number];
            (
                one["reason"].as_str().unwrap(),
                one["count"].as_u64().unwrap(),
                one["line"].as_u64().unwrap(),
            )
        };
        assert_eq!(
            refused(0),
            ("end_uncertain", 1, 3),
            "a line of another program follows"
        );
        assert_eq!(refused(1), ("parameters_absent", 1, 1));
        assert_eq!(found["statements"]["replayable"], 1);
    }

    #[test]
    fn files_are_read_in_the_order_of_their_times() {
        let later = PLAIN.replace("12:00", "13:00");
        let found = checked(&[("1.log", &later), ("2.log", PLAIN)], None).unwrap();
        assert!(
            found["files"][0]["path"]
                .as_str()
                .unwrap()
                .ends_with("2.log")
        );
        assert_eq!(found["steps_back"], 0);
    }

    #[test]
    fn a_log_of_another_prefix_is_refused_with_what_was_tried() {
        let text = "12:00:00 7 LOG:  statement: SELECT 1\n";
        let error = checked(&[("a.log", text)], None).unwrap_err().to_string();
        assert!(
            error.contains("the usual log_line_prefixes") && error.contains("%m [%p]"),
            "{error}"
        );
        let error = checked(&[("a.log", text)], Some("%m [%p] "))
            .unwrap_err()
            .to_string();
        assert!(error.contains("the log_line_prefix '%m [%p] '"), "{error}");
        let error = checked(&[("a.log", text)], Some("%u"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("it has no time"), "{error}");
    }

    #[test]
    fn an_empty_file_holds_nothing() {
        let found = checked(&[("a.log", "")], None).unwrap();
        assert_eq!(found["statements"]["count"], 0);
    }

    #[test]
    fn broken_quotes_cost_the_lines_that_have_them() {
        let line = |number: u32, message: &str| {
            format!(
                "2026-11-27 12:00:0{number}.000 UTC,\"app\",\"shop\",7,\"[local]\",6748a1f0.7,{number},\"\",2026-11-27 12:00:00 UTC,3/7,0,LOG,00000,{message},,,,,,,,,\"till\"\n"
            )
        };
        let text = [
            line(1, "\"statement: SELECT 1\""),
            line(2, "\"statement: SELECT"),
            line(3, "\"statement: SELECT 3\""),
            line(4, "\"statement: SELECT 4\""),
        ];
        let found = checked(&[("a.csv", &text.concat())], None).unwrap();
        assert_eq!(found["files"][0]["format"], "csvlog");
        assert_eq!(found["files"][0]["malformed"], 1);
        assert_eq!(found["statements"]["count"], 3);
    }

    #[test]
    fn the_caller_can_stop() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        fs::write(&path, PLAIN.repeat(2_000)).unwrap();
        let config = CheckConfig {
            files: vec![path],
            log_line_prefix: None,
            classes: 10,
        };
        assert!(matches!(
            check(&config, &mut |_| false),
            Err(LogError::Interrupted)
        ));
    }
}
