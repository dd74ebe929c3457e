//! The configuration of writing pages: content and files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use plinth_config::ConfigError;
use serde::Deserialize;

use crate::config::Generator;
use crate::pages::numeric::MOST_PRECISION;
use crate::piece::Piece;
use crate::table::Table;

/// Pages of empty tables of a server that does not run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageConfig {
    /// The source of the rows.
    pub generator: Generator,
    /// Threads that write.
    pub threads: usize,
    /// Whether the cluster has data checksums.
    pub checksums: bool,
    /// The relations to fill, each completely.
    pub relations: Vec<Relation>,
}

/// A table or a partition, empty, and its files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relation {
    /// The table that its rows are of, by its number among those of the generator.
    pub table: usize,
    /// Its first row; the table's first is 0.
    pub first_row: u64,
    /// The number of rows. With none, the files are not changed.
    pub rows: u64,
    /// Its name, for messages.
    pub name: String,
    /// Its columns, in their order.
    pub columns: Vec<PageColumn>,
    /// The first file of its heap.
    pub heap: PathBuf,
    /// Percent of a page that rows may take.
    pub fillfactor: usize,
    /// Its key.
    pub index: Option<IndexFile>,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageColumn {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ColumnType,
    /// The maximum number of characters of `bpchar` and `varchar`.
    #[serde(default)]
    pub length: Option<usize>,
    /// The digits of `numeric`.
    #[serde(default)]
    pub precision: Option<usize>,
    /// The decimal places of `numeric`, which are among its digits.
    #[serde(default)]
    pub scale: Option<usize>,
}

/// A type, by its name in `pg_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// smallint
    Int2,
    /// integer
    Int4,
    /// bigint
    Int8,
    /// text
    Text,
    /// character varying
    Varchar,
    /// character
    Bpchar,
    /// timestamp without time zone
    Timestamp,
    /// numeric
    Numeric,
}

/// A B-tree of one column, without entries, and its file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexFile {
    /// Its first file.
    pub path: PathBuf,
    /// The column, whose values ascend evenly; the first is 0.
    pub column: usize,
    /// Percent of a leaf that entries may take.
    pub fillfactor: usize,
}

const MOST_THREADS: usize = 256;
/// PostgreSQL's own limit.
const MOST_COLUMNS: usize = 1_600;
/// PostgreSQL's own limit (`MaxAttrSize`).
const LONGEST_TEXT: usize = 10_485_760;
const LEAST_FILLFACTOR: usize = 10;

impl PageConfig {
    /// Checks everything that can be known without looking at rows and files.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        self.generator.validate()?;
        if !(1..=MOST_THREADS).contains(&self.threads) {
            let message = format!("got {}, allowed are 1 to {MOST_THREADS}", self.threads);
            return Err(ConfigError::new("threads", message));
        }
        let tables = self.generator.tables();
        for relation in &self.relations {
            relation.validate(&tables)?;
        }
        let mut seen = HashSet::new();
        for path in self.relations.iter().flat_map(Relation::paths) {
            if !seen.insert(path) {
                let message = format!("got {} more than once", path.display());
                return Err(ConfigError::new("relations", message));
            }
        }
        Ok(())
    }
}

impl Relation {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let index = self.index.as_ref().map(|index| index.path.as_path());
        std::iter::once(self.heap.as_path()).chain(index)
    }

    fn validate(&self, tables: &[Box<dyn Table>]) -> Result<(), ConfigError> {
        let wrong =
            |key, message: String| Err(ConfigError::new(key, format!("{}: {message}", self.name)));
        if let Some(message) = self.missing_rows(tables) {
            return wrong("relations", message);
        }
        if !(1..=MOST_COLUMNS).contains(&self.columns.len()) {
            let message = format!(
                "got {}, allowed are 1 to {MOST_COLUMNS}",
                self.columns.len()
            );
            return wrong("relations.columns", message);
        }
        for (number, column) in self.columns.iter().enumerate() {
            if let Some(message) = column.problem() {
                return wrong("relations.columns", format!("column {number}: {message}"));
            }
        }
        if let Some(path) = self.paths().find(|path| !path.is_absolute()) {
            let message = format!("got {}, an absolute path is needed", path.display());
            return wrong("relations.heap, relations.index.path", message);
        }
        if !is_fillfactor(self.fillfactor) {
            return wrong("relations.fillfactor", not_a_fillfactor(self.fillfactor));
        }
        match &self.index {
            Some(index) if !is_fillfactor(index.fillfactor) => wrong(
                "relations.index.fillfactor",
                not_a_fillfactor(index.fillfactor),
            ),
            Some(index)
                if !self
                    .columns
                    .get(index.column)
                    .is_some_and(PageColumn::is_integer) =>
            {
                let message = format!(
                    "got {}, the number of an integer column is needed",
                    index.column
                );
                wrong("relations.index.column", message)
            }
            _ => Ok(()),
        }
    }

    fn missing_rows(&self, tables: &[Box<dyn Table>]) -> Option<String> {
        let piece = Piece {
            table: self.table,
            into: None,
            first_row: self.first_row,
            rows: self.rows,
        };
        (self.rows > 0).then(|| piece.problem(tables)).flatten()
    }
}

fn is_fillfactor(percent: usize) -> bool {
    (LEAST_FILLFACTOR..=100).contains(&percent)
}

fn not_a_fillfactor(percent: usize) -> String {
    format!("got {percent}, allowed are {LEAST_FILLFACTOR} to 100")
}

impl PageColumn {
    fn is_integer(&self) -> bool {
        use ColumnType::{Int2, Int4, Int8};
        matches!(self.kind, Int2 | Int4 | Int8)
    }

    fn problem(self) -> Option<String> {
        let has_length = matches!(self.kind, ColumnType::Bpchar | ColumnType::Varchar);
        let is_numeric = self.kind == ColumnType::Numeric;
        match (self.length, self.precision, self.scale) {
            (Some(length), ..) if has_length && !(1..=LONGEST_TEXT).contains(&length) => Some(
                format!("length: got {length}, allowed are 1 to {LONGEST_TEXT}"),
            ),
            (Some(_), ..) if !has_length => {
                Some("length: only bpchar and varchar have one".to_owned())
            }
            (None, ..) if self.kind == ColumnType::Bpchar => {
                Some("length: bpchar needs one".to_owned())
            }
            (_, Some(precision), Some(scale)) if is_numeric => {
                let is_allowed = (1..=MOST_PRECISION).contains(&precision) && scale <= precision;
                (!is_allowed).then(|| {
                    format!(
                        "got numeric({precision},{scale}), allowed are 1 to {MOST_PRECISION} digits, decimal places among them"
                    )
                })
            }
            _ if is_numeric => Some("precision and scale: numeric needs both".to_owned()),
            (_, None, None) => None,
            _ => Some("precision and scale: only numeric has them".to_owned()),
        }
    }
}
