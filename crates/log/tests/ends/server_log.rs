//! The log of a server in each format, and what is replayed of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use plinth_log::{ReplayFile, parameters, prepare};
use serde_json::{Value, json};

/// Statements with their parameters, as they were sent.
pub(crate) const SENT: [(&str, &[&str]); 9] = [
    ("SELECT 1", &[]),
    ("DELETE FROM orders\nWHERE id = 7", &[]),
    (
        "UPDATE t SET a = 'it''s\n\n\ttwo'\nWHERE b = $1",
        &["5\n'6"],
    ),
    (
        "INSERT INTO notes VALUES ('\n2026-11-27 12:00:09.000 UTC [9] app@shop LOG:  statement: DROP TABLE orders\n')",
        &[],
    ),
    ("SELECT a -- don't\n FROM t", &[]),
    (
        "INSERT INTO notes VALUES ('\n2026-11-27 12:00:09.000 UTC,\"app\",\"shop\",9,\"[local]\",6748a1f0.9,1,\"\",2026-11-27 12:00:00 UTC,3/7,0,LOG,00000,\"statement: DROP TABLE orders\",,,,,,,,,\"psql\",\"client backend\",,0\n')",
        &[],
    ),
    ("SELECT \"a\"\"\"\n,b FROM t", &[]),
    (
        "DELETE FROM items WHERE c = $1\n AND d = $2",
        &["x', $2 = 'y", "7"],
    ),
    ("SELECT 2", &[]),
];
/// Failed, and is logged by its error alone.
const FAILED: &str = "DELETE FROM failed\nWHERE id = 1";
pub(crate) const FORMATS: [&str; 3] = ["stderr", "csvlog", "jsonlog"];

struct Line {
    time: String,
    severity: &'static str,
    message: String,
    detail: String,
    statement: String,
}

/// What a server logs of them, with more at the end.
fn lines() -> Vec<Line> {
    let mut lines = Vec::new();
    let mut put = |severity, message: String, detail: String, statement: String| {
        let time = format!("2026-11-27 12:00:{:02}.123 UTC", lines.len());
        lines.push(Line {
            time,
            severity,
            message,
            detail,
            statement,
        });
    };
    for (text, values) in SENT {
        let values: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(at, value)| format!("${} = '{}'", at + 1, value.replace('\'', "''")))
            .collect();
        if values.is_empty() {
            let message = format!("duration: 1.234 ms  statement: {text}");
            put("LOG", message, String::new(), String::new());
        } else {
            let detail = format!("Parameters: {}", values.join(", "));
            let message = format!("execute <unnamed>: {text}");
            put("LOG", message, detail, String::new());
            put(
                "LOG",
                "duration: 0.5 ms".into(),
                String::new(),
                String::new(),
            );
        }
    }
    let error = "insert or update violates\na check".to_owned();
    put("ERROR", error, "Key (id)=(1).".into(), FAILED.into());
    let ended = "disconnection: session time: 0:00:01.000 user=app database=shop host=[local]";
    put("LOG", ended.into(), String::new(), String::new());
    lines
}

/// The log in a format, as the server writes it.
pub(crate) fn log(format: &str) -> String {
    lines()
        .iter()
        .enumerate()
        .map(|(number, line)| entry(format, number, line))
        .collect()
}

fn entry(format: &str, number: usize, line: &Line) -> String {
    let Line {
        time,
        severity,
        message,
        detail,
        statement,
    } = line;
    match format {
        "stderr" => [
            (*severity, message),
            ("DETAIL", detail),
            ("STATEMENT", statement),
        ]
        .iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(tag, text)| {
            format!(
                "{time} [7] app@shop {tag}:  {}\n",
                text.replace('\n', "\n\t")
            )
        })
        .collect(),
        "csvlog" => {
            let quoted = |text: &String| {
                if text.is_empty() {
                    return String::new();
                }
                format!("\"{}\"", text.replace('"', "\"\""))
            };
            format!(
                "{time},\"app\",\"shop\",7,\"[local]\",6748a1f0.7,{number},\"SELECT\",2026-11-27 12:00:00 UTC,3/7,0,{severity},00000,{},{},,,,,{},,,\"psql\",\"client backend\",,0\n",
                quoted(message),
                quoted(detail),
                quoted(statement),
            )
        }
        _ => {
            let mut text = format!(
                "{{\"timestamp\":\"{time}\",\"user\":\"app\",\"dbname\":\"shop\",\"pid\":7,\"session_id\":\"6748a1f0.7\",\"error_severity\":\"{severity}\",\"message\":{}",
                json!(message)
            );
            for (key, value) in [("detail", detail), ("statement", statement)] {
                if !value.is_empty() {
                    text += &format!(",\"{key}\":{}", json!(value));
                }
            }
            text + ",\"backend_type\":\"client backend\",\"query_id\":0}\n"
        }
    }
}

pub(crate) type Replayed = BTreeSet<(String, Vec<String>)>;

/// Everything that was sent.
pub(crate) fn sent() -> Replayed {
    let texts = SENT.iter().map(|(text, values)| {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        ((*text).to_owned(), values)
    });
    texts.chain([(FAILED.to_owned(), Vec::new())]).collect()
}

/// A folder for logs and the replay file made of them.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self(folder.unwrap())
    }

    /// Reads files as one log: the statements that are replayed, and what is said. None of what is no log at all.
    pub(crate) fn prepared(
        &self,
        files: &[&[u8]],
        prefix: Option<&str>,
    ) -> Option<(Replayed, Value)> {
        let output = self.0.path().join("replay");
        let paths: Vec<PathBuf> = (0..files.len())
            .map(|number| self.0.path().join(format!("{number}.log")))
            .collect();
        for (path, bytes) in paths.iter().zip(files) {
            fs::write(path, bytes).unwrap();
        }
        let config = json!({
            "files": paths, "log_line_prefix": prefix, "classes": 0, "output": output, "overwrite": true,
            "users": [], "databases": [], "applications": [], "begin": null, "end": null,
        });
        let config = serde_json::from_value(config).unwrap();
        let said = serde_json::to_value(prepare(&config, &mut |_| true).ok()?).unwrap();
        if said["written"]["statements"] == 0 {
            return Some((Replayed::new(), said));
        }
        Some((replayed(&output), said))
    }
}

fn replayed(path: &Path) -> Replayed {
    let file = ReplayFile::open(path).unwrap();
    let mut statements = file.statements().unwrap();
    let mut found = Replayed::new();
    while let Some(one) = statements.next(&file).unwrap() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let values = one
            .parameters
            .iter()
            .flat_map(|&(_, bytes)| parameters(bytes))
            .map(|value| text(value.unwrap_or_default()))
            .collect();
        found.insert((text(one.text), values));
    }
    found
}

pub(crate) fn count(said: &Value, reason: &str) -> u64 {
    let all = said["check"]["not_replayable"].as_array().unwrap();
    let found = all.iter().find(|one| one["reason"] == reason);
    found.map_or(0, |one| one["count"].as_u64().unwrap())
}

pub(crate) fn malformed(said: &Value) -> u64 {
    let files = said["check"]["files"].as_array().unwrap();
    files
        .iter()
        .map(|file| file["malformed"].as_u64().unwrap())
        .sum()
}

pub(crate) fn cr_lf(text: &str) -> String {
    text.replace('\n', "\r\n")
}
