//! `\gset` and `\aset`: the results of a statement become variables of its client.

use plinth_script::{Keep, Symbols, Variables, is_name, lossless};
use plinth_wire::{RowError, column_names, fields};
use thiserror::Error;

/// A result that cannot become variables. The wording is pgbench's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum KeepError {
    #[error("expected one row, got {0}")]
    NotOneRow(u64),
    #[error("{command}: invalid variable name: \"{name}\"")]
    Name { command: &'static str, name: String },
    #[error(transparent)]
    Row(#[from] RowError),
}

/// What a statement under way has brought so far: its last result, or the one that comes in.
#[derive(Debug, Default)]
pub(crate) struct Results {
    /// The body of its `RowDescription`; empty when the result has no columns to speak of.
    columns: Vec<u8>,
    /// The body of its last `DataRow`.
    row: Vec<u8>,
    rows: u64,
    /// The result has ended: what comes next belongs to another.
    has_ended: bool,
    /// Where a variable's name is put together.
    name: Vec<u8>,
}

impl Results {
    /// A statement is sent.
    pub(crate) fn clear(&mut self) {
        self.columns.clear();
        self.row.clear();
        self.rows = 0;
        self.has_ended = false;
    }

    fn begin(&mut self) {
        if self.has_ended {
            self.clear();
        }
    }

    /// `RowDescription`
    pub(crate) fn columns(&mut self, body: &[u8]) {
        self.begin();
        self.columns.clear();
        self.columns.extend_from_slice(body);
    }

    /// `DataRow`
    pub(crate) fn row(&mut self, body: &[u8]) {
        self.rows += 1;
        self.row.clear();
        self.row.extend_from_slice(body);
    }

    /// `CommandComplete` or `EmptyQueryResponse`. With `\aset`, every result counts that has a row.
    pub(crate) fn end(
        &mut self,
        keep: &Keep,
        symbols: &Symbols,
        variables: &mut Variables,
    ) -> Result<(), KeepError> {
        self.begin();
        self.has_ended = true;
        if keep.all && self.rows > 0 {
            self.store(keep, symbols, variables)?;
        }
        Ok(())
    }

    /// All results have come. With `\gset`, the last one counts.
    pub(crate) fn end_all(
        &mut self,
        keep: &Keep,
        symbols: &Symbols,
        variables: &mut Variables,
    ) -> Result<(), KeepError> {
        if keep.all {
            return Ok(());
        }
        if self.rows != 1 {
            return Err(KeepError::NotOneRow(self.rows));
        }
        self.store(keep, symbols, variables)
    }

    /// The columns of the last row become variables; those that no script reads are only looked at.
    fn store(
        &mut self,
        keep: &Keep,
        symbols: &Symbols,
        variables: &mut Variables,
    ) -> Result<(), KeepError> {
        for (column, field) in column_names(&self.columns).zip(fields(&self.row)) {
            let (column, field) = (column?, field?);
            self.name.clear();
            self.name
                .extend_from_slice(&lossless::to_bytes(&keep.prefix));
            self.name.extend_from_slice(column);
            let name = lossless::from_bytes(&self.name);
            if !is_name(&name) {
                return Err(KeepError::Name {
                    command: keep.command(),
                    name: name.into_owned(),
                });
            }
            if let Some(slot) = symbols.find(&name) {
                variables.set_text(slot, field.unwrap_or_default());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use plinth_script::Value;

    use super::*;

    fn columns(names: &[&str]) -> Vec<u8> {
        let mut body = (names.len() as u16).to_be_bytes().to_vec();
        for name in names {
            body.extend_from_slice(name.as_bytes());
            body.extend_from_slice(&[0; 19]);
        }
        body
    }

    fn row(fields: &[Option<&str>]) -> Vec<u8> {
        let mut body = (fields.len() as u16).to_be_bytes().to_vec();
        for field in fields {
            let length = field.map_or(-1, |text| text.len() as i32);
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(field.unwrap_or_default().as_bytes());
        }
        body
    }

    /// A result: names of columns, and rows.
    type Given<'a> = (&'a [&'a str], &'a [&'a [Option<&'a str>]]);

    /// What `a` and `p_b` are after `results`, of which those without columns are of commands that return nothing.
    fn kept(keep: &Keep, results: &[Given<'_>]) -> Result<[Option<String>; 2], KeepError> {
        let mut symbols = Symbols::new();
        let slots = ["a", "p_b"].map(|name| symbols.slot(name));
        let mut variables = Variables::new(&symbols);
        let mut kept = Results::default();
        for (names, rows) in results {
            if !names.is_empty() {
                kept.columns(&columns(names));
            }
            rows.iter().for_each(|fields| kept.row(&row(fields)));
            kept.end(keep, &symbols, &mut variables)?;
        }
        kept.end_all(keep, &symbols, &mut variables)?;
        Ok(slots.map(|slot| {
            let mut text = Vec::new();
            variables
                .write_text(slot, &mut text)
                .then(|| String::from_utf8(text).unwrap())
        }))
    }

    fn keep(all: bool, prefix: &str) -> Keep {
        Keep {
            all,
            prefix: prefix.to_owned(),
        }
    }

    #[test]
    fn gset_takes_the_one_row_of_the_last_result() {
        let one: Given<'_> = (&["a", "other"], &[&[Some("1"), None]]);
        let two: Given<'_> = (&["a"], &[&[Some("2")], &[Some("3")]]);
        let none: Given<'_> = (&["a"], &[]);
        let command: Given<'_> = (&[], &[]);
        let unnamed: Given<'_> = (&["?column?"], &[&[Some("4")]]);
        let gset = keep(false, "");
        let a = |text: &str| Ok([Some(text.to_owned()), None]);
        assert_eq!(kept(&gset, &[one]), a("1"));
        assert_eq!(kept(&gset, &[two, unnamed, command, one]), a("1"));
        assert_eq!(kept(&gset, &[one, two]), Err(KeepError::NotOneRow(2)));
        for empty in [none, command] {
            assert_eq!(kept(&gset, &[one, empty]), Err(KeepError::NotOneRow(0)));
        }
        assert_eq!(kept(&gset, &[]), Err(KeepError::NotOneRow(0)));
        let error = kept(&gset, &[one, unnamed]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "gset: invalid variable name: \"?column?\""
        );
        assert_eq!(
            kept(&keep(false, "p_"), &[(&["b"], &[&[None]])]),
            Ok([None, Some(String::new())]),
            "null is an empty text"
        );
        assert_eq!(
            kept(&keep(false, "p"), &[(&["1"], &[&[None]])]),
            Ok([None, None])
        );
    }

    #[test]
    fn aset_takes_the_last_row_of_every_result_that_has_one() {
        let aset = keep(true, "");
        let results: [Given<'_>; 4] = [
            (&["a"], &[&[Some("1")], &[Some("2")]]),
            (&["a"], &[]),
            (&[], &[]),
            (&["p_b"], &[&[Some("3")]]),
        ];
        let wanted = [Some("2".to_owned()), Some("3".to_owned())];
        assert_eq!(kept(&aset, &results), Ok(wanted));
        assert_eq!(kept(&aset, &[]), Ok([None, None]));
        let unnamed: Given<'_> = (&["?column?"], &[&[Some("4")]]);
        assert!(kept(&aset, &[unnamed, results[0]]).is_err());
    }

    #[test]
    fn a_row_that_was_cut_is_an_error() {
        let mut symbols = Symbols::new();
        let a = symbols.slot("a");
        let mut variables = Variables::new(&symbols);
        variables.set(a, Value::Int(1));
        let mut results = Results::default();
        results.columns(&columns(&["a"]));
        results.row(&row(&[Some("long")])[..8]);
        let error = results.end(&keep(true, ""), &symbols, &mut variables);
        assert_eq!(error, Err(KeepError::Row(RowError)));
    }
}
