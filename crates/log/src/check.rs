//! What a log holds, and what of it can be replayed, without a replay file being made.

use std::path::PathBuf;

use serde::Deserialize;

use crate::classifier::Classifier;
use crate::counts::{Check, Counts};
use crate::error::LogError;
use crate::reader::Progress;
use crate::reading::Reading;
use crate::replayable::parameters_of;
use crate::statement::{Further, SessionFacts, Sink, Statement};

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
