//! Rows as a heap has them: PostgreSQL's `htup_details.h`, and `heap_form_tuple` in `heaptuple.c`.
//!
//! All rows of a relation are equally wide and have the same nulls, so that all that differs from row to row lies at
//! known places: the first row becomes a template, and the others are patched into copies of it.

use crate::pages::config::{ColumnType, PageColumn};
use crate::pages::failure::FieldError;
use crate::pages::page::{max_align, put_item_pointer, put_u16};
use crate::pages::text::{Fields, Value};

/// `SizeofHeapTupleHeader`.
const HEADER_BYTES: usize = 23;
const CTID_AT: usize = 12;
const INFOMASK2_AT: usize = 18;
const INFOMASK_AT: usize = 20;
const HOFF_AT: usize = 22;
pub(crate) const NULLS_AT: usize = HEADER_BYTES;
pub(crate) const HAS_NULL: u16 = 0x0001;
const HAS_VAR_WIDTH: u16 = 0x0002;
/// `HEAP_XMIN_FROZEN`: the inserting transaction is older than every snapshot.
const XMIN_FROZEN: u16 = 0x0300;
const XMAX_INVALID: u16 = 0x0800;
/// `FrozenTransactionId`, which no server asks the commit log about.
const FROZEN_XID: u32 = 2;
/// `TOAST_TUPLE_THRESHOLD`: what is wider is compressed or stored elsewhere.
pub(crate) const WIDEST: usize = 2032;
/// The largest size of data with a header of one byte (`VARATT_CAN_MAKE_SHORT`).
const LONGEST_SHORT: usize = 126;
const LONG_HEADER_BYTES: usize = 4;

/// The form that all rows of a relation have.
#[derive(Debug)]
pub(crate) struct TupleShape {
    /// A row, padded to its alignment, with zeroes or blanks where values go.
    template: Vec<u8>,
    width: usize,
    fields: Vec<Field>,
}

/// A column's values, and where in the row they are.
#[derive(Debug, Clone, Copy)]
struct Field {
    column: PageColumn,
    at: usize,
    /// The size of the data without headers; 0 for NULL.
    bytes: usize,
    is_null: bool,
}

/// The size of the header of a row, aligned.
pub(crate) fn header_bytes(columns: usize, has_null: bool) -> usize {
    max_align(HEADER_BYTES + if has_null { columns.div_ceil(8) } else { 0 })
}

/// Writes the header of a row, but for the bitmap of nulls and the item pointer. `infomask` says whether there are nulls and
/// columns of variable width.
pub(crate) fn put_header(tuple: &mut [u8], columns: usize, infomask: u16) {
    tuple[..4].copy_from_slice(&FROZEN_XID.to_le_bytes());
    put_u16(tuple, INFOMASK2_AT, columns as u16);
    put_u16(tuple, INFOMASK_AT, infomask | XMIN_FROZEN | XMAX_INVALID);
    tuple[HOFF_AT] = header_bytes(columns, infomask & HAS_NULL != 0) as u8;
}

/// Writes the item pointer of a row's own place.
pub(crate) fn put_ctid(tuple: &mut [u8], block: u32, number: u16) {
    put_item_pointer(tuple, CTID_AT, block, number);
}

/// Why a row of so many bytes cannot be stored.
pub(crate) fn too_wide(bytes: usize) -> String {
    format!(
        "a row has {bytes} bytes, allowed are up to {WIDEST}: PostgreSQL compresses wider ones or stores them out of line"
    )
}

impl TupleShape {
    /// The form of a row in COPY's text format.
    ///
    /// # Errors
    /// The message: the column, and why its value is not supported.
    pub(crate) fn of(columns: &[PageColumn], row: &[u8]) -> Result<Self, String> {
        let mut fields = Fields::new(row);
        let mut values = Vec::new();
        for (number, column) in columns.iter().enumerate() {
            let field = fields
                .next(number + 1 == columns.len())
                .and_then(|field| Ok((field.is_null(), stored_bytes(*column, field)?)));
            values.push(field.map_err(|error| in_column(number, &error))?);
        }
        Self::build(columns, &values)
    }

    fn build(columns: &[PageColumn], values: &[(bool, usize)]) -> Result<Self, String> {
        let has_null = values.iter().any(|(is_null, _)| *is_null);
        let mut template = vec![0; header_bytes(columns.len(), has_null)];
        let mut infomask = 0;
        let mut fields = Vec::new();
        for (number, (column, &(is_null, bytes))) in columns.iter().zip(values).enumerate() {
            if is_null {
                infomask |= HAS_NULL;
            } else {
                if has_null {
                    template[NULLS_AT + number / 8] |= 1 << (number % 8);
                }
                infomask |= place(*column, bytes, &mut template);
            }
            fields.push(Field {
                column: *column,
                at: template.len() - bytes,
                bytes,
                is_null,
            });
        }
        let width = template.len();
        if width > WIDEST {
            return Err(too_wide(width));
        }
        put_header(&mut template, columns.len(), infomask);
        template.resize(max_align(width), 0);
        Ok(Self {
            template,
            width,
            fields,
        })
    }

    /// Bytes of a row, as its line pointer has them.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Bytes that it takes of a page.
    pub(crate) fn aligned(&self) -> usize {
        self.template.len()
    }

    /// Makes the next row of `rows` a tuple in `slot`, which is as large as [`Self::aligned`], with the item pointer
    /// of its own place.
    ///
    /// # Errors
    /// The message, if it has another form, or a value that its column cannot hold.
    pub(crate) fn fill(
        &self,
        rows: &mut Fields<'_>,
        slot: &mut [u8],
        block: u32,
        number: u16,
    ) -> Result<(), String> {
        slot.copy_from_slice(&self.template);
        put_ctid(slot, block, number);
        let last = self.fields.len() - 1;
        for (column, field) in self.fields.iter().enumerate() {
            let is_last = column == last;
            let patched = match field.next_integer(rows, is_last) {
                Some(integer) => field.put_integer(integer, slot),
                None => rows
                    .next(is_last)
                    .and_then(|value| field.patch(value, slot)),
            };
            patched.map_err(|error| in_column(column, &error))?;
        }
        Ok(())
    }

    /// The integer in a column of a tuple that [`Self::fill`] made.
    pub(crate) fn integer(&self, tuple: &[u8], column: usize) -> i64 {
        let Field { at, bytes, .. } = self.fields[column];
        let negative = bytes > 0 && tuple[at + bytes - 1] & 0x80 != 0;
        let mut wide = [if negative { 0xFF } else { 0 }; 8];
        wide[..bytes].copy_from_slice(&tuple[at..at + bytes]);
        i64::from_le_bytes(wide)
    }

    /// Whether a column is null in all rows.
    pub(crate) fn is_null(&self, column: usize) -> bool {
        self.fields[column].is_null
    }
}

pub(crate) fn in_column(number: usize, error: &FieldError) -> String {
    format!("column {number}: {error}")
}

/// The size of the first row's value in bytes; none for NULL.
fn stored_bytes(column: PageColumn, value: Value<'_>) -> Result<usize, FieldError> {
    if value.is_null() {
        return Ok(0);
    }
    Ok(match column.kind {
        ColumnType::Int2 => 2,
        ColumnType::Int4 => 4,
        ColumnType::Int8 | ColumnType::Timestamp => 8,
        ColumnType::Bpchar => column.length.unwrap_or_default(),
        ColumnType::Numeric => return Err(FieldError::Uneven),
        ColumnType::Text => value.text_bytes()?,
        ColumnType::Varchar => match value.text_bytes()? {
            bytes if column.length.is_some_and(|most| bytes > most) => {
                return Err(FieldError::Range("the varchar"));
            }
            bytes => bytes,
        },
    })
}

/// Appends room for a value, aligned as `att_align_datum` and `fill_val` do. Returns the bits that it adds to the infomask.
fn place(column: PageColumn, bytes: usize, tuple: &mut Vec<u8>) -> u16 {
    match column.kind {
        ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8 | ColumnType::Timestamp => {
            tuple.resize(tuple.len().next_multiple_of(bytes) + bytes, 0);
            return 0;
        }
        _ if bytes <= LONGEST_SHORT => tuple.push(short_header(bytes)),
        _ => {
            tuple.resize(tuple.len().next_multiple_of(LONG_HEADER_BYTES), 0);
            let header = ((bytes + LONG_HEADER_BYTES) as u32) << 2; // `SET_VARSIZE`, which counts itself
            tuple.extend(header.to_le_bytes());
        }
    }
    tuple.resize(tuple.len() + bytes, b' '); // what bpchar is padded with
    HAS_VAR_WIDTH
}

/// `SET_VARSIZE_SHORT`, which counts itself.
fn short_header(bytes: usize) -> u8 {
    (bytes as u8 + 1) << 1 | 1
}

/// Appends a value that is not null, as it is stored. Returns the bits that it adds to the infomask.
pub(crate) fn append_value(
    column: PageColumn,
    value: Value<'_>,
    tuple: &mut Vec<u8>,
) -> Result<u16, FieldError> {
    if let (ColumnType::Numeric, Some(precision), Some(scale)) =
        (column.kind, column.precision, column.scale)
    {
        let at = tuple.len();
        tuple.push(0);
        value.numeric(precision, scale, tuple)?;
        tuple[at] = short_header(tuple.len() - at - 1);
        return Ok(HAS_VAR_WIDTH);
    }
    let bytes = stored_bytes(column, value)?;
    let bits = place(column, bytes, tuple);
    let field = Field {
        column,
        at: tuple.len() - bytes,
        bytes,
        is_null: false,
    };
    field.patch(value, tuple)?;
    Ok(bits)
}

impl Field {
    /// The next field, where this is a column of integers and it is one of few digits: nearly all that there is to read.
    #[inline]
    fn next_integer(&self, rows: &mut Fields<'_>, is_last: bool) -> Option<i64> {
        use ColumnType::{Int2, Int4, Int8};
        let is_integer = matches!(self.column.kind, Int2 | Int4 | Int8) && !self.is_null;
        if is_integer {
            rows.next_integer(is_last)
        } else {
            None
        }
    }

    #[inline]
    fn put_integer(&self, value: i64, tuple: &mut [u8]) -> Result<(), FieldError> {
        let slot = &mut tuple[self.at..self.at + self.bytes];
        match self.column.kind {
            ColumnType::Int2 => {
                let value = i16::try_from(value).map_err(|_| FieldError::Range("int2"))?;
                slot.copy_from_slice(&value.to_le_bytes());
            }
            ColumnType::Int4 => {
                let value = i32::try_from(value).map_err(|_| FieldError::Range("int4"))?;
                slot.copy_from_slice(&value.to_le_bytes());
            }
            _ => slot.copy_from_slice(&value.to_le_bytes()),
        }
        Ok(())
    }

    #[inline]
    fn patch(&self, value: Value<'_>, tuple: &mut [u8]) -> Result<(), FieldError> {
        if value.is_null() != self.is_null {
            return Err(FieldError::Nulls);
        }
        if self.is_null {
            return Ok(());
        }
        let slot = &mut tuple[self.at..self.at + self.bytes];
        match self.column.kind {
            ColumnType::Int2 | ColumnType::Int4 | ColumnType::Int8 => {
                self.put_integer(value.integer()?, tuple)?;
            }
            ColumnType::Timestamp => slot.copy_from_slice(&value.timestamp()?.to_le_bytes()),
            ColumnType::Bpchar => {
                value.text(slot).map_err(|error| match error {
                    FieldError::Width(_) => FieldError::Range("the bpchar"),
                    other => other,
                })?;
            }
            ColumnType::Numeric => return Err(FieldError::Uneven),
            ColumnType::Text | ColumnType::Varchar => {
                if value.text(slot)? != self.bytes {
                    return Err(FieldError::Width(self.bytes));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(types: &[(ColumnType, Option<usize>)]) -> Vec<PageColumn> {
        let column = |&(kind, length)| PageColumn {
            kind,
            length,
            precision: None,
            scale: None,
        };
        types.iter().map(column).collect()
    }

    fn made(types: &[(ColumnType, Option<usize>)], rows: &str) -> Result<Vec<u8>, String> {
        let shape = TupleShape::of(&columns(types), rows.as_bytes())?;
        let mut fields = Fields::new(rows.as_bytes());
        let mut tuple = vec![0xAA; shape.aligned()];
        while !fields.is_empty() {
            shape.fill(&mut fields, &mut tuple, 0x1_0002, 3)?;
        }
        tuple.truncate(shape.width());
        Ok(tuple)
    }

    const INT2: (ColumnType, Option<usize>) = (ColumnType::Int2, None);
    const INT8: (ColumnType, Option<usize>) = (ColumnType::Int8, None);
    const TEXT: (ColumnType, Option<usize>) = (ColumnType::Text, None);

    #[test]
    fn a_row_without_nulls_has_a_header_and_aligned_values() {
        let tuple = made(&[INT2, INT8], "-2\t258\n").unwrap();
        assert_eq!(
            tuple,
            [
                2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0, 2, 0, 0, 0x0B, 24, 0, 0xFE,
                0xFF, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0
            ]
        );
    }

    #[test]
    fn nulls_take_a_bit_and_texts_a_header() {
        let bpchar = (ColumnType::Bpchar, Some(3));
        let tuple = made(&[TEXT, INT2, bpchar], "ab\t\\N\tx\n").unwrap();
        assert_eq!(
            &tuple[18..],
            [3, 0, 3, 0x0B, 24, 0b101, 7, b'a', b'b', 9, b'x', b' ', b' ']
        );
        let long = format!("1\t{}\n", "z".repeat(127));
        let tuple = made(&[INT2, TEXT], &long).unwrap();
        assert_eq!(
            &tuple[24..33],
            [1, 0, 0, 0, 12, 2, 0, 0, b'z'],
            "(127 + 4) << 2, aligned to 4"
        );
        assert_eq!(tuple.len(), 32 + 127);
    }

    #[test]
    fn what_is_no_such_row_is_reported() {
        let varchar = (ColumnType::Varchar, Some(2));
        let bpchar = (ColumnType::Bpchar, Some(2));
        let timestamp = (ColumnType::Timestamp, None);
        let wide = format!("{}\n", "w".repeat(2030));
        let table: [(&[_], &str, &str); 14] = [
            (&[INT2], "32768\n", "column 0: does not fit in int2"),
            (&[INT8], "9223372036854775808\n", "column 0: not an integer"),
            (&[INT8], "\n", "column 0: not an integer"),
            (&[INT8], "1-2\n", "column 0: not an integer"),
            (&[INT8, INT8], "1\n", "column 0: the row ends before it"),
            (
                &[INT8],
                "1\t2\n",
                "column 0: the row ends before it, or continues behind it",
            ),
            (&[INT8], "1", "column 0: the row ends before it"),
            (&[varchar], "abc\n", "column 0: does not fit in the varchar"),
            (&[bpchar], "abc\n", "column 0: does not fit in the bpchar"),
            (
                &[TEXT],
                "ab\nabc\n",
                "column 0: a text of another size than the first row's 2 bytes",
            ),
            (
                &[INT2, TEXT],
                "1\t\\N\n1\tx\n",
                "column 1: null in some rows and not in others",
            ),
            (&[TEXT], "\u{e9}\n", "column 0: a character beyond ASCII"),
            (
                &[timestamp],
                "2000-01-32 00:00:00\n",
                "column 0: not a timestamp",
            ),
            (
                &[TEXT],
                &wide,
                "a row has 2058 bytes, allowed are up to 2032",
            ),
        ];
        for (types, rows, message) in table {
            let error = made(types, rows).unwrap_err();
            assert!(error.starts_with(message), "{rows:?}: {error}");
        }
    }
}
