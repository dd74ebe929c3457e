//! A table whose rows can be computed from their numbers.

use std::fmt::Debug;
use std::ops::Range;

/// A table and its rows.
pub(crate) trait Table: Debug + Send + Sync {
    /// Its name, as written in SQL.
    fn name(&self) -> &str;

    /// The number of rows to load.
    fn rows(&self) -> u64;

    /// Whether all rows, once stored, are equally wide, and null in the same columns.
    fn has_even_rows(&self) -> bool {
        true
    }

    /// Appends rows in COPY's text format; the first is row 0. The rows do not depend on
    /// the thread, or on the pieces that they are written in.
    fn write_rows(&self, rows: Range<u64>, out: &mut Vec<u8>);
}
