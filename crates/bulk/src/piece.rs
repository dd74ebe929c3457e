//! A part of a table's rows, loaded in one transaction.

use std::ops::Range;

use serde::Deserialize;

use crate::table::Table;

/// Rows of one table that come in one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// The table, by its number among those of the generator.
    pub table: usize,
    /// The partition that the rows go into, as SQL has its name; by default the table.
    #[serde(default)]
    pub into: Option<String>,
    /// The first row; the table's first is 0.
    pub first_row: u64,
    /// The number of rows, at least one.
    pub rows: u64,
}

impl Piece {
    /// All rows of `tables`, in pieces of at most `most` rows.
    pub(crate) fn all(tables: &[Box<dyn Table>], most: u64) -> Vec<Self> {
        let mut pieces = Vec::new();
        for (number, table) in tables.iter().enumerate() {
            let mut first_row = 0;
            while first_row < table.rows() {
                let rows = most.min(table.rows() - first_row);
                pieces.push(Self {
                    table: number,
                    into: None,
                    first_row,
                    rows,
                });
                first_row += rows;
            }
        }
        pieces
    }

    /// The reason why the piece is invalid; `None` if it is valid.
    pub(crate) fn problem(&self, tables: &[Box<dyn Table>]) -> Option<String> {
        let Some(table) = tables.get(self.table) else {
            let last = tables.len() - 1;
            return Some(format!(
                "table: got {}, allowed are 0 to {last}",
                self.table
            ));
        };
        let end = self.first_row.checked_add(self.rows);
        if self.rows == 0 || end.is_none_or(|end| end > table.rows()) {
            return Some(format!(
                "got {} rows from row {} of {}, which has {}",
                self.rows,
                self.first_row,
                table.name(),
                table.rows()
            ));
        }
        None
    }

    /// The table or partition that the rows go into.
    pub(crate) fn target<'a>(&'a self, tables: &'a [Box<dyn Table>]) -> &'a str {
        match &self.into {
            Some(name) => name,
            None => tables[self.table].name(),
        }
    }

    pub(crate) fn range(&self) -> Range<u64> {
        self.first_row..self.first_row + self.rows
    }
}
