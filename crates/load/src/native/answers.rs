//! The rows that the statements of a batch gave.

use std::ops::Range;

use plinth_script::lossless;
use plinth_wire::{RowError, fields};
use thiserror::Error;

/// Rows that a transaction cannot continue with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum AnswerError {
    #[error("statement {statement} of its batch gave {rows} rows; one is needed")]
    NotOneRow { statement: usize, rows: usize },
    #[error("column {column} of a row is {found}; an integer is needed")]
    NotInteger { column: usize, found: String },
    #[error(transparent)]
    Row(#[from] RowError),
}

/// The rows that the statements of a batch gave. What it has needed once, it keeps for the next batch.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// Bodies of `DataRow`, one behind the other.
    bytes: Vec<u8>,
    rows: Vec<Range<usize>>,
    /// Of each statement: the number of rows that had come at its end.
    ends: Vec<usize>,
}

impl Answers {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
        self.ends.clear();
    }

    /// A `DataRow`.
    pub(crate) fn add_row(&mut self, body: &[u8]) {
        let first = self.bytes.len();
        self.bytes.extend_from_slice(body);
        self.rows.push(first..self.bytes.len());
    }

    /// A statement has ended well.
    pub(crate) fn end_statement(&mut self) {
        self.ends.push(self.rows.len());
    }

    /// The rows of a statement, which are none when it did not run; statements of a batch count from 0.
    pub(crate) fn rows(&self, statement: usize) -> impl ExactSizeIterator<Item = Row<'_>> {
        let end = self.ends.get(statement).copied().unwrap_or_default();
        let first = statement
            .checked_sub(1)
            .and_then(|before| self.ends.get(before));
        let rows = &self.rows[first.copied().unwrap_or_default().min(end)..end];
        rows.iter().map(|row| Row(&self.bytes[row.clone()]))
    }

    /// The only row of a statement.
    pub(crate) fn row(&self, statement: usize) -> Result<Row<'_>, AnswerError> {
        let mut rows = self.rows(statement);
        let count = rows.len();
        let row = rows.next().filter(|_| count == 1);
        row.ok_or(AnswerError::NotOneRow {
            statement,
            rows: count,
        })
    }
}

/// A row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a>(&'a [u8]);

impl Row<'_> {
    /// An integer; columns count from 0.
    pub(crate) fn integer(self, column: usize) -> Result<i64, AnswerError> {
        let field = fields(self.0).nth(column).ok_or(RowError)??;
        let text = field.map(lossless::from_bytes);
        let number = text.as_ref().and_then(|text| text.parse().ok());
        number.ok_or_else(|| AnswerError::NotInteger {
            column,
            found: text.map_or_else(|| "null".to_owned(), |text| format!("{text:?}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(fields: &[Option<&str>]) -> Vec<u8> {
        let mut body = (fields.len() as u16).to_be_bytes().to_vec();
        for field in fields {
            let length = field.map_or(-1, |text| text.len() as i32);
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(field.unwrap_or_default().as_bytes());
        }
        body
    }

    #[test]
    fn rows_belong_to_the_statement_that_gave_them() {
        let mut answers = Answers::default();
        answers.end_statement();
        answers.add_row(&row(&[Some("-7"), None, Some("x")]));
        answers.end_statement();
        answers.add_row(&row(&[Some("8")]));
        answers.add_row(&row(&[Some("9")]));
        answers.end_statement();
        assert_eq!(answers.rows(0).len(), 0);
        assert_eq!(answers.row(1).unwrap().integer(0), Ok(-7));
        let numbers: Vec<_> = answers.rows(2).map(|row| row.integer(0)).collect();
        assert_eq!(numbers, [Ok(8), Ok(9)]);
        for (statement, rows) in [(0, 0), (2, 2), (3, 0)] {
            let error = AnswerError::NotOneRow { statement, rows };
            assert_eq!(answers.row(statement).unwrap_err(), error);
        }
        answers.clear();
        assert_eq!(answers.rows(1).len(), 0);
    }

    #[test]
    fn what_is_no_integer_is_named() {
        let mut answers = Answers::default();
        answers.add_row(&row(&[None, Some("1.5")]));
        answers.end_statement();
        let of = |column| {
            answers
                .row(0)
                .unwrap()
                .integer(column)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(of(0), "column 0 of a row is null; an integer is needed");
        assert_eq!(of(1), "column 1 of a row is \"1.5\"; an integer is needed");
        assert_eq!(
            answers.row(0).unwrap().integer(2),
            Err(AnswerError::Row(RowError))
        );
    }
}
