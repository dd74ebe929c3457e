//! The configuration of a load: the rows, the server, the number of streams.

use std::collections::HashSet;
use std::time::Duration;

use plinth_config::ConfigError;
use plinth_connect::Target;
use serde::Deserialize;

use crate::columns::ColumnsGenerator;
use crate::piece::Piece;
use crate::table::Table;
use crate::tpcb::TpcbGenerator;
use crate::tpcc::TpccGenerator;

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
    /// COPY FREEZE, which a server takes only in the transaction that truncated the table: so each piece, all that its
    /// table gets, first empties it. Not into tables with partitions, but into the partitions themselves.
    #[serde(default)]
    pub freeze: bool,
    /// What is sent, each piece in a transaction of its own. By default all rows.
    #[serde(default)]
    pub pieces: Option<Vec<Piece>>,
    /// A table (table_number int, first_row bigint, row_count bigint) that gets a row in the transaction of each piece, so
    /// that it records which pieces are complete. There is none by default.
    #[serde(default)]
    pub progress_table: Option<String>,
    /// Statements that give no rows, for each session to begin with.
    #[serde(default)]
    pub prepare: Vec<String>,
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
    /// The tables of the TPC-C-derived workload.
    Tpcc(TpccGenerator),
    /// One table of generated columns.
    Columns(ColumnsGenerator),
}

fn ten_seconds() -> f64 {
    10.0
}

impl Generator {
    /// The tables that are filled, in this order; by it, pieces number them.
    pub(crate) fn tables(&self) -> Vec<Box<dyn Table>> {
        match self {
            Self::Tpcb(tpcb) => tpcb.tables(),
            Self::Tpcc(tpcc) => tpcc.tables(),
            Self::Columns(columns) => vec![Box::new(columns.clone())],
        }
    }

    /// The statement that empties the tables: all at once, so that foreign keys between them do not matter.
    pub(crate) fn truncate(&self) -> String {
        match self {
            Self::Tpcb(_) => TpcbGenerator::TRUNCATE.to_owned(),
            Self::Tpcc(_) => TpccGenerator::TRUNCATE.to_owned(),
            Self::Columns(columns) => format!("TRUNCATE {}", columns.name()),
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Tpcb(tpcb) => tpcb.validate(),
            Self::Tpcc(tpcc) => tpcc.validate(),
            Self::Columns(columns) => columns.validate(),
        }
    }
}

const MOST_STREAMS: usize = 256;
const ROWS_PER_PIECE: u64 = 100_000;
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
        if self.replace && self.progress_table.is_some() {
            let message =
                "only null is allowed with replace: one transaction records no progress".to_owned();
            return wrong("progress_table", message);
        }
        let tables = self.generator.tables();
        let pieces = self.pieces.as_deref().unwrap_or_default();
        if let Some(message) = pieces.iter().find_map(|piece| piece.problem(&tables)) {
            return wrong("pieces", message);
        }
        if self.freeze && !self.replace {
            let mut seen = HashSet::new();
            let all = self.pieces();
            let names = all.iter().map(|piece| piece.target(&tables));
            if let Some(name) = names.into_iter().find(|name| !seen.insert(*name)) {
                let message = format!(
                    "got true with several pieces of {name}: each would empty it of those before"
                );
                return wrong("freeze", message);
            }
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

    /// What is sent: whole tables where they are frozen or come in one transaction anyway.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let most = if self.replace || self.freeze {
            u64::MAX
        } else {
            ROWS_PER_PIECE
        };
        let tables = self.generator.tables();
        self.pieces
            .clone()
            .unwrap_or_else(|| Piece::all(&tables, most))
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
                r#""streams": 4, "freeze": true, "pieces": [{"table": 2, "first_row": 0, "rows": 9},
                    {"table": 2, "first_row": 9, "rows": 1}]"#,
                "freeze",
            ),
            (
                r#""streams": 4"#,
                r#""streams": 4, "pieces": [{"table": 3, "first_row": 0, "rows": 1}]"#,
                "pieces",
            ),
            (
                r#""streams": 4"#,
                r#""streams": 4, "pieces": [{"table": 0, "first_row": 1, "rows": 10}]"#,
                "pieces",
            ),
            (
                r#""streams": 4"#,
                r#""streams": 4, "pieces": [{"table": 0, "first_row": 1, "rows": 0}]"#,
                "pieces",
            ),
            (
                r#""streams": 4"#,
                r#""streams": 1, "replace": true, "progress_table": "l""#,
                "progress_table",
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
    fn pieces_are_all_rows_unless_they_are_given() {
        let config: Config = serde_json::from_str(GOOD).unwrap();
        let pieces = config.pieces();
        assert_eq!((pieces[0].table, pieces[0].rows), (0, 10));
        assert_eq!(
            pieces.iter().map(|piece| piece.rows).sum::<u64>(),
            1_000_110
        );
        assert_eq!(pieces.len(), 12);
        let whole = GOOD.replace(r#""streams": 4"#, r#""streams": 4, "freeze": true"#);
        let config: Config = serde_json::from_str(&whole).unwrap();
        assert_eq!(config.validate(), Ok(()));
        assert_eq!(config.pieces().len(), 3);
        let none = GOOD.replace(r#""streams": 4"#, r#""streams": 4, "pieces": []"#);
        let config: Config = serde_json::from_str(&none).unwrap();
        assert_eq!(config.validate(), Ok(()));
        assert_eq!(config.pieces(), []);
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
            (r#""tpcb""#, r#""tpch""#, "unknown variant `tpch`"),
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
