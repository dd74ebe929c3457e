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
    #[error("statement {statement} of its batch gave {rows} rows; none is needed")]
    NotNone { statement: usize, rows: usize },
    #[error("column {column} of a row is {found}; {wanted} is needed")]
    WrongField {
        column: usize,
        found: String,
        wanted: &'static str,
    },
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

    /// The row in the middle of those of a statement: of n, number n / 2, rounded up.
    pub(crate) fn middle_row(&self, statement: usize) -> Result<Row<'_>, AnswerError> {
        let mut rows = self.rows(statement);
        let middle = rows.len().saturating_sub(1) / 2;
        rows.nth(middle)
            .ok_or(AnswerError::NotOneRow { statement, rows: 0 })
    }

    /// Checks that a statement gave no row.
    pub(crate) fn no_row(&self, statement: usize) -> Result<(), AnswerError> {
        match self.rows(statement).len() {
            0 => Ok(()),
            rows => Err(AnswerError::NotNone { statement, rows }),
        }
    }
}

/// A row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a>(&'a [u8]);

impl<'a> Row<'a> {
    /// An integer; columns count from 0.
    pub(crate) fn integer(self, column: usize) -> Result<i64, AnswerError> {
        self.parsed(column, "an integer", number)
    }

    /// A `numeric` of two decimal places that is not negative, as a number of hundredths.
    pub(crate) fn cents(self, column: usize) -> Result<i64, AnswerError> {
        self.parsed(column, "an amount with two decimal places", |field| {
            let (whole, places) = field.split_at_checked(field.len().checked_sub(3)?)?;
            let places = places.strip_prefix(b".")?;
            number(whole)?
                .checked_mul(100)?
                .checked_add(number(places)?)
        })
    }

    /// A text.
    pub(crate) fn text(self, column: usize) -> Result<&'a [u8], AnswerError> {
        self.parsed(column, "a text", Some)
    }

    fn parsed<T>(
        self,
        column: usize,
        wanted: &'static str,
        parse: impl FnOnce(&'a [u8]) -> Option<T>,
    ) -> Result<T, AnswerError> {
        let field = fields(self.0).nth(column).ok_or(RowError)??;
        field
            .and_then(parse)
            .ok_or_else(|| AnswerError::WrongField {
                column,
                found: field.map_or_else(
                    || "null".to_owned(),
                    |field| format!("{:?}", lossless::from_bytes(field)),
                ),
                wanted,
            })
    }
}

fn number(text: &[u8]) -> Option<i64> {
    str::from_utf8(text).ok()?.parse().ok()
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
        assert_eq!(answers.middle_row(1).unwrap().integer(0), Ok(-7));
        assert_eq!(answers.middle_row(2).unwrap().integer(0), Ok(8));
        assert!(answers.middle_row(0).is_err());
        assert_eq!(answers.no_row(0), Ok(()));
        let error = AnswerError::NotNone {
            statement: 1,
            rows: 1,
        };
        assert_eq!(answers.no_row(1), Err(error));
        answers.clear();
        assert_eq!(answers.rows(1).len(), 0);
    }

    #[test]
    fn the_row_in_the_middle_is_number_half_rounded_up() {
        for (rows, middle) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)] {
            let mut answers = Answers::default();
            for number in 1..=rows {
                answers.add_row(&row(&[Some(&number.to_string())]));
            }
            answers.end_statement();
            assert_eq!(answers.middle_row(0).unwrap().integer(0), Ok(middle));
        }
    }

    #[test]
    fn amounts_are_read_exactly() {
        let mut answers = Answers::default();
        answers.add_row(&row(&[
            Some("9999.99"),
            Some("0.05"),
            Some("7"),
            Some("-.05"),
        ]));
        answers.end_statement();
        let of = |column| answers.row(0).unwrap().cents(column);
        assert_eq!((of(0), of(1)), (Ok(999_999), Ok(5)));
        assert!(of(2).is_err() && of(3).is_err());
        assert_eq!(answers.row(0).unwrap().text(2), Ok(&b"7"[..]));
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
