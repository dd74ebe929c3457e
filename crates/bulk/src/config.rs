//! What is to be loaded, where, and by how many streams.

use std::time::Duration;

use plinth_connect::Target;
use serde::Deserialize;
use thiserror::Error;

use crate::columns::ColumnsGenerator;
use crate::table::Table;
use crate::tpcb::TpcbGenerator;

/// A bulk load.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The server.
    pub connection: Target,
    /// Where the rows come from.
    pub generator: Generator,
    /// COPY streams at the same time: each is a session and a thread.
    pub streams: usize,
    /// Empty the tables and fill them in one transaction, of one stream: all rows are there, or the old ones.
    #[serde(default)]
    pub replace: bool,
    /// COPY FREEZE, which a server takes only in the transaction that created or truncated the table; not into tables
    /// with partitions.
    #[serde(default)]
    pub freeze: bool,
    /// How long one connection may take.
    #[serde(default = "ten_seconds")]
    pub connect_timeout_s: f64,
}

/// A dataset whose rows can be computed.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Generator {
    /// pgbench's tables.
    Tpcb(TpcbGenerator),
    /// One table of generated columns.
    Columns(ColumnsGenerator),
}

fn ten_seconds() -> f64 {
    10.0
}

/// A configuration that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key}: {message}")]
pub struct ConfigError {
    /// The key that is wrong.
    pub key: &'static str,
    /// What was found and what is allowed.
    pub message: String,
}

impl ConfigError {
    pub(crate) fn new(key: &'static str, message: String) -> Self {
        Self { key, message }
    }
}

impl Generator {
    /// The tables that are filled, in this order. The last is the large one, whose rows all streams share.
    pub(crate) fn tables(&self) -> Vec<Box<dyn Table>> {
        match self {
            Self::Tpcb(tpcb) => tpcb.tables(),
            Self::Columns(columns) => vec![Box::new(columns.clone())],
        }
    }

    /// The statement that empties the tables: all at once, so that foreign keys between them do not matter.
    pub(crate) fn truncate(&self) -> String {
        match self {
            Self::Tpcb(_) => TpcbGenerator::TRUNCATE.to_owned(),
            Self::Columns(columns) => format!("TRUNCATE {}", columns.name()),
        }
    }

    fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Tpcb(tpcb) => tpcb.validate(),
            Self::Columns(columns) => columns.validate(),
        }
    }
}

const MOST_STREAMS: usize = 256;
const LONGEST_TIMEOUT_S: f64 = 86_400.0;

impl Config {
    /// Checks everything that can be known without a server.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let wrong = |key, message| Err(ConfigError::new(key, message));
        self.generator.validate()?;
        if !(1..=MOST_STREAMS).contains(&self.streams) {
            let message = format!("got {}, allowed are 1 to {MOST_STREAMS}", self.streams);
            return wrong("streams", message);
        }
        if self.replace && self.streams != 1 {
            let message = format!(
                "got {}, only 1 is allowed with replace: one transaction is one session",
                self.streams
            );
            return wrong("streams", message);
        }
        if self.freeze && !self.replace {
            let message = "got true, only false is allowed without replace: the server takes COPY FREEZE only in the \
                           transaction that created or truncated the table";
            return wrong("freeze", message.to_owned());
        }
        if !(self.connect_timeout_s > 0.0 && self.connect_timeout_s <= LONGEST_TIMEOUT_S) {
            let message = format!(
                "got {}, allowed are seconds above 0 up to {LONGEST_TIMEOUT_S}",
                self.connect_timeout_s
            );
            return wrong("connect_timeout_s", message);
        }
        Ok(())
    }

    pub(crate) fn connect_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.connect_timeout_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"connection": {"host": "/tmp", "port": 5432, "user": "u", "database": "d"},
        "generator": {"kind": "tpcb", "scale": 10, "fillfactor": null}, "streams": 4}"#;

    #[test]
    fn a_good_one_is_taken() {
        let config: Config = serde_json::from_str(GOOD).unwrap();
        assert_eq!(config.validate(), Ok(()));
        assert_eq!((config.freeze, config.connect_timeout_s), (false, 10.0));
    }

    #[test]
    fn wrong_values_name_their_key() {
        let table = [
            (r#""scale": 10"#, r#""scale": 0"#, "generator.scale"),
            (r#""scale": 10"#, r#""scale": 1000001"#, "generator.scale"),
            (
                r#""fillfactor": null"#,
                r#""fillfactor": 90"#,
                "generator.fillfactor",
            ),
            (r#""streams": 4"#, r#""streams": 0"#, "streams"),
            (r#""streams": 4"#, r#""streams": 257"#, "streams"),
            (
                r#""streams": 4"#,
                r#""streams": 4, "freeze": true"#,
                "freeze",
            ),
            (
                r#""streams": 4"#,
                r#""streams": 4, "replace": true"#,
                "streams",
            ),
            (
                r#""streams": 4"#,
                r#""streams": 4, "connect_timeout_s": 0"#,
                "connect_timeout_s",
            ),
        ];
        for (from, to, key) in table {
            let config: Config = serde_json::from_str(&GOOD.replace(from, to)).unwrap();
            assert_eq!(config.validate().unwrap_err().key, key, "{to}");
        }
    }

    #[test]
    fn unknown_keys_and_kinds_are_refused() {
        let table = [
            (
                r#""streams": 4"#,
                r#""streams": 4, "stream": 5"#,
                "unknown field `stream`",
            ),
            (
                r#""scale": 10"#,
                r#""scale": 10, "rows": 1"#,
                "unknown field `rows`",
            ),
            (r#""tpcb""#, r#""tpcc""#, "unknown variant `tpcc`"),
            (
                r#""scale": 10"#,
                r#""scale": -1"#,
                "invalid value: integer `-1`",
            ),
            (
                r#""port": 5432"#,
                r#""port": 5432, "prot": 1"#,
                "unknown field `prot`",
            ),
        ];
        for (from, to, message) in table {
            let error = serde_json::from_str::<Config>(&GOOD.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}
