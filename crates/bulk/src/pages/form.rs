//! A row of any width, as PostgreSQL's `heap_form_tuple` makes it.

use crate::pages::config::PageColumn;
use crate::pages::text::Fields;
use crate::pages::tuple::{
    HAS_NULL, NULLS_AT, WIDEST, append_value, header_bytes, in_column, put_ctid, put_header,
    too_wide,
};

/// A row that was read. Reused from row to row.
#[derive(Debug, Default)]
pub(crate) struct FormedRow {
    /// What comes after the header, whose size is a multiple of every alignment.
    data: Vec<u8>,
    /// A bit for each column, set where it is not null.
    nulls: Vec<u8>,
    columns: usize,
    infomask: u16,
}

impl FormedRow {
    /// Reads the next row of `rows`.
    ///
    /// # Errors
    /// The message: the column, and why its value is not supported.
    pub(crate) fn read(
        &mut self,
        columns: &[PageColumn],
        rows: &mut Fields<'_>,
    ) -> Result<(), String> {
        self.columns = columns.len();
        self.infomask = 0;
        self.data.clear();
        self.nulls.clear();
        self.nulls.resize(columns.len().div_ceil(8), 0);
        for (number, column) in columns.iter().enumerate() {
            let value = rows.next(number + 1 == columns.len());
            let added = value.and_then(|value| {
                if value.is_null() {
                    return Ok(HAS_NULL);
                }
                self.nulls[number / 8] |= 1 << (number % 8);
                append_value(*column, value, &mut self.data)
            });
            self.infomask |= added.map_err(|error| in_column(number, &error))?;
        }
        if self.width() > WIDEST {
            return Err(too_wide(self.width()));
        }
        Ok(())
    }

    fn header_bytes(&self) -> usize {
        header_bytes(self.columns, self.infomask & HAS_NULL != 0)
    }

    /// Bytes of the row, as its line pointer has them.
    pub(crate) fn width(&self) -> usize {
        self.header_bytes() + self.data.len()
    }

    /// Writes the row to the front of `slot`, which holds zeroes, with the item pointer of its own place.
    pub(crate) fn write(&self, slot: &mut [u8], block: u32, number: u16) {
        put_header(slot, self.columns, self.infomask);
        put_ctid(slot, block, number);
        if self.infomask & HAS_NULL != 0 {
            slot[NULLS_AT..NULLS_AT + self.nulls.len()].copy_from_slice(&self.nulls);
        }
        slot[self.header_bytes()..self.width()].copy_from_slice(&self.data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::config::ColumnType;
    use crate::pages::page::max_align;
    use crate::pages::tuple::TupleShape;

    fn column(kind: ColumnType, length: Option<usize>) -> PageColumn {
        PageColumn {
            kind,
            length,
            precision: (kind == ColumnType::Numeric).then_some(6),
            scale: (kind == ColumnType::Numeric).then_some(2),
        }
    }

    fn formed(columns: &[PageColumn], row: &str) -> Vec<u8> {
        let mut form = FormedRow::default();
        form.read(columns, &mut Fields::new(row.as_bytes()))
            .unwrap();
        let mut slot = vec![0; max_align(form.width())];
        form.write(&mut slot, 0x1_0002, 3);
        slot
    }

    /// The two ways to make a row have nothing but their helpers in common.
    #[test]
    fn a_row_is_the_one_that_the_template_of_even_rows_gives() {
        let columns = [
            column(ColumnType::Int2, None),
            column(ColumnType::Text, None),
            column(ColumnType::Int8, None),
            column(ColumnType::Varchar, Some(200)),
            column(ColumnType::Int4, None),
            column(ColumnType::Bpchar, Some(9)),
            column(ColumnType::Timestamp, None),
            column(ColumnType::Int2, None),
            column(ColumnType::Int4, None),
        ];
        let long = "z".repeat(127);
        for row in [
            format!("1\tab\t-5\t{long}\t7\tx\t2000-01-01 00:00:01\t3\t4\n"),
            format!("1\t\\N\t-5\t{long}\t7\t\\N\t\\N\t3\t\\N\n"),
            "-32768\t\t9223372036854775807\ta\\tb\\\\\t-1\t\tJ2451545 00:00:00.000001\t\\N\t0\n"
                .to_owned(),
        ] {
            let shape = TupleShape::of(&columns, row.as_bytes()).unwrap();
            let mut even = vec![0xAA; shape.aligned()];
            let mut fields = Fields::new(row.as_bytes());
            shape.fill(&mut fields, &mut even, 0x1_0002, 3).unwrap();
            assert_eq!(formed(&columns, &row), even, "{row:?}");
        }
    }

    #[test]
    fn a_numeric_has_a_header_of_one_byte_and_no_alignment() {
        let columns = [
            column(ColumnType::Int2, None),
            column(ColumnType::Numeric, None),
            column(ColumnType::Int2, None),
        ];
        let row = formed(&columns, "1\t12.50\t2\n");
        // Header of 6 bytes with itself; 2 decimal places, weight 0; 12 and 5000.
        assert_eq!(
            row[24..],
            [
                1,
                0,
                7 << 1 | 1,
                0,
                0x81,
                12,
                0,
                0x88,
                0x13,
                0,
                2,
                0,
                0,
                0,
                0,
                0
            ]
        );
    }

    #[test]
    fn what_is_no_such_row_is_reported() {
        let columns = [
            column(ColumnType::Int2, None),
            column(ColumnType::Numeric, None),
            column(ColumnType::Text, None),
        ];
        let wide = format!("1\t1\t{}\n", "w".repeat(2030));
        let table = [
            ("1\t1\n", "column 1: the row ends before it"),
            (
                "1\t1\tx\ty\n",
                "column 2: the row ends before it, or continues",
            ),
            ("1\t12345.00\tx\n", "column 1: does not fit in the numeric"),
            (
                "1\t1.234\tx\n",
                "column 1: not a decimal number of at most 2 decimal places",
            ),
            ("40000\t1\tx\n", "column 0: does not fit in int2"),
            (&wide, "a row has 2066 bytes, allowed are up to 2032"),
        ];
        for (row, message) in table {
            let mut form = FormedRow::default();
            let error = form
                .read(&columns, &mut Fields::new(row.as_bytes()))
                .unwrap_err();
            assert!(error.starts_with(message), "{row:?}: {error}");
        }
    }
}
