//! Makes a replay file from a log.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::classifier::Classifier;
use crate::counts::{Check, Counts};
use crate::error::LogError;
use crate::reader::Progress;
use crate::reading::Reading;
use crate::replay_file::{Writer, Written};
use crate::replayable::parameters_of;
use crate::statement::{Further, SessionFacts, Sink, Statement};
use crate::timestamp::{self, Zones};

/// What to prepare.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrepareConfig {
    /// The files of the log, in any order.
    files: Vec<PathBuf>,
    /// log_line_prefix of plain logs; None to try the usual ones.
    log_line_prefix: Option<String>,
    /// How many classes to list, those with the most time first.
    classes: usize,
    /// The replay file.
    output: PathBuf,
    /// Whether it may replace another file.
    overwrite: bool,
    /// Sessions of these users only; of all if there is none. The same for databases and applications.
    users: Vec<String>,
    databases: Vec<String>,
    applications: Vec<String>,
    /// Statements that began at this time of the log or later, and before the other: `2026-11-27 12:41:01 CET`.
    begin: Option<String>,
    end: Option<String>,
}

/// What was prepared.
#[derive(Debug, Serialize)]
pub struct Prepared {
    /// Of the statements and sessions that were chosen.
    check: Check,
    written: Written,
    /// Statements that were not chosen.
    left_out: u64,
}

/// Reads a log and writes what of it can be replayed, if there is anything. `keep_going` is told how far the reading is, and asked whether to go on.
pub fn prepare(
    config: &PrepareConfig,
    keep_going: &mut dyn FnMut(Progress) -> bool,
) -> Result<Prepared, LogError> {
    let output = &config.output;
    let folder = match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Readable by its owner alone, as it has what the log has.
    let file = tempfile::NamedTempFile::new_in(folder).map_err(LogError::write(output))?;
    let sink = Preparing {
        chosen: Chosen::of(config)?,
        classifier: Classifier::default(),
        counts: Counts::default(),
        writer: Writer::new(folder),
        chosen_of: HashMap::new(),
        left_out: 0,
        error: None,
    };
    let prefix = config.log_line_prefix.as_deref();
    let reading = Reading::of(&config.files, prefix, sink, keep_going);
    let (log, sink) = reading?.finish();
    if let Some(error) = sink.error {
        return Err(LogError::write(output)(error));
    }
    let written = sink
        .writer
        .finish(file.as_file())
        .map_err(LogError::write(output))?;
    if written.statements > 0 {
        let persisted = if config.overwrite {
            file.persist(output)
        } else {
            file.persist_noclobber(output)
        };
        persisted.map_err(|error| LogError::write(output)(error.error))?;
    }
    Ok(Prepared {
        check: sink.counts.result(config.classes, log),
        written,
        left_out: sink.left_out,
    })
}

/// Which statements are wanted.
struct Chosen {
    /// Names of users, databases and applications; of each any if there is none.
    names: [Vec<Vec<u8>>; 3],
    /// In microseconds since 1970, as those of statements.
    begin_us: i64,
    end_us: i64,
}

impl Chosen {
    fn of(config: &PrepareConfig) -> Result<Self, LogError> {
        let names = [&config.users, &config.databases, &config.applications].map(|names| {
            names
                .iter()
                .map(|name| name.as_bytes().to_vec())
                .collect::<Vec<_>>()
        });
        let time = |text: &Option<String>, default| {
            match text {
            None => Ok(default),
            Some(text) => timestamp::parse_time(text.as_bytes())
                .filter(|time| time.length == text.len() && !time.zone.is_empty())
                .map(|time| Zones::default().utc_us(&time))
                .ok_or_else(|| {
                    LogError::Unusable(format!(
                        "cannot read the time '{text}': as in the log, with its zone, such as 2026-11-27 12:41:01 CET"
                    ))
                }),
        }
        };
        Ok(Self {
            names,
            begin_us: time(&config.begin, i64::MIN)?,
            end_us: time(&config.end, i64::MAX)?,
        })
    }

    fn has_session(&self, session: &SessionFacts) -> bool {
        let [users, databases, applications] = &self.names;
        [
            (users, &session.user),
            (databases, &session.database),
            (applications, &session.application),
        ]
        .iter()
        .all(|(names, name)| names.is_empty() || names.contains(name))
    }

    fn has_time(&self, time_us: i64) -> bool {
        (self.begin_us..self.end_us).contains(&time_us)
    }
}

struct Preparing {
    chosen: Chosen,
    classifier: Classifier,
    counts: Counts,
    writer: Writer,
    /// How many statements are chosen of sessions that have not ended.
    chosen_of: HashMap<u32, u64>,
    left_out: u64,
    /// The first error of writing.
    error: Option<io::Error>,
}

impl Sink for Preparing {
    fn statement(&mut self, statement: &Statement<'_>) {
        if self.error.is_some() {
            return;
        }
        let chosen = &self.chosen;
        if !(chosen.has_session(statement.session) && chosen.has_time(statement.start_us)) {
            self.left_out += 1;
            return;
        }
        *self.chosen_of.entry(statement.session.number).or_default() += 1;
        let class = self.classifier.classify(statement.text);
        let replayable = parameters_of(statement, &class.normalised);
        let refused = replayable.as_ref().err().copied();
        self.counts.statement(statement, &class, refused);
        if let Ok(parameters) = replayable {
            let parameters = parameters.as_deref();
            let taken = self.writer.statement(statement, &class, parameters);
            self.error = taken.err();
        }
    }

    fn session(&mut self, session: &SessionFacts) {
        let Some(statements) = self.chosen_of.remove(&session.number) else {
            return;
        };
        self.counts.session(&SessionFacts {
            statements,
            ..session.clone()
        });
        let is_within = |time_us: &i64| self.chosen.has_time(*time_us);
        let opened_us = session.has_beginning.then_some(session.first_us);
        let closed_us = session.has_end.then_some(session.last_us);
        self.writer.session_span(
            session.number,
            opened_us.filter(is_within),
            closed_us.filter(is_within),
        );
    }

    fn further(&mut self, further: Further) {
        self.counts.further(further);
    }

    fn wants_more(&self) -> bool {
        self.error.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::Value;

    use super::*;
    use crate::replay_file::ReplayFile;

    const LOG: &str = "\
2026-11-27 10:00:00.000 UTC [7] a@d LOG:  connection received: host=[local]
2026-11-27 10:00:00.010 UTC [7] a@d LOG:  connection authorized: user=a database=d application_name=my app
2026-11-27 10:00:01.000 UTC [7] a@d LOG:  duration: 2.000 ms  statement: SELECT 1
2026-11-27 10:00:02.000 UTC [8] b@e LOG:  duration: 2.000 ms  statement: SELECT 2
2026-11-27 10:00:03.000 UTC [7] a@d LOG:  duration: 2.000 ms  execute x: SELECT $1
2026-11-27 10:00:03.000 UTC [7] a@d DETAIL:  parameters: $1 = 'it''s'
2026-11-27 10:00:04.000 UTC [7] a@d LOG:  duration: 2.000 ms  execute x: SELECT $1
2026-11-27 10:00:05.000 UTC [7] a@d LOG:  disconnection: session time: 0:00:05.000 user=a database=d host=[local]
";

    fn prepared(changes: Value) -> Result<(Value, Vec<String>), LogError> {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("postgresql.log");
        fs::write(&log, LOG).unwrap();
        let output = folder.path().join("replay");
        let mut config = serde_json::json!({
            "files": [log], "log_line_prefix": "%m [%p] %q%u@%d ", "classes": 10, "output": output, "overwrite": false,
            "users": [], "databases": [], "applications": [], "begin": null, "end": null,
        });
        for (key, value) in changes.as_object().unwrap() {
            config[key] = value.clone();
        }
        let config: PrepareConfig = serde_json::from_value(config).unwrap();
        let found = prepare(&config, &mut |_| true)?;
        let mut texts = Vec::new();
        if found.written.statements == 0 {
            assert!(!output.exists());
            return Ok((serde_json::to_value(found).unwrap(), texts));
        }
        let replay = ReplayFile::open(&output).unwrap();
        let mut statements = replay.statements().unwrap();
        while let Some(one) = statements.next(&replay).unwrap() {
            let text = String::from_utf8_lossy(one.text);
            texts.push(format!("{} {} {text}", one.start_us, one.session));
        }
        // Nothing else is left in the folder.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        Ok((serde_json::to_value(found).unwrap(), texts))
    }

    #[test]
    fn what_can_be_replayed_is_written_and_the_rest_is_counted() {
        let (found, texts) = prepared(serde_json::json!({})).unwrap();
        let expected = [
            "998000 0 SELECT 1",
            "1998000 1 SELECT 2",
            "2998000 0 SELECT $1",
        ];
        assert_eq!(texts, expected);
        assert_eq!(found["check"]["statements"]["count"], 4);
        assert_eq!(
            found["check"]["not_replayable"][0]["reason"],
            "parameters_absent"
        );
        assert_eq!(found["written"]["sessions"], 2);
        assert_eq!(found["written"]["sessions_at_once"], 2);
        assert_eq!(found["written"]["span_us"], 5_000_000);
    }

    #[test]
    fn sessions_and_times_can_be_chosen() {
        let cases = [
            (serde_json::json!({"users": ["b"]}), 1, 3),
            (serde_json::json!({"databases": ["d", "e"]}), 3, 0),
            (serde_json::json!({"applications": ["my"]}), 0, 4),
            (serde_json::json!({"applications": ["my app"]}), 2, 1),
            (
                serde_json::json!({"begin": "2026-11-27 11:00:01.5 CET"}),
                2,
                1,
            ),
            (serde_json::json!({"end": "2026-11-27 10:00:02 UTC"}), 2, 2),
        ];
        for (changes, statements, left_out) in cases {
            let (found, texts) = prepared(changes.clone()).unwrap();
            assert_eq!(texts.len(), statements, "{changes}");
            assert_eq!(found["left_out"], left_out, "{changes}");
        }
    }

    #[test]
    fn a_time_that_is_none_and_a_file_that_exists_are_refused() {
        for time in [
            "yesterday",
            "2026-11-27 10:00:00",
            "2026-11-27 10:00:00 UTC x",
        ] {
            let error = prepared(serde_json::json!({"begin": time})).unwrap_err();
            assert!(error.to_string().contains(time));
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = prepared(serde_json::json!({"output": file.path()})).unwrap_err();
        assert_eq!(error.errno(), Some(17), "{error}");
    }
}
