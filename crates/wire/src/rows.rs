//! Results, for the few statements whose results the client reads: the names of columns and the fields of rows.

use thiserror::Error;

/// Bytes that are not a `RowDescription` or `DataRow`, or only the beginning of a long one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "a result that ends in its middle, or is longer than {} bytes",
    crate::scan::KEPT_ROW_BYTES
)]
pub struct RowError;

/// Bytes after a column's name: table, column, type, its size, its modifier, format.
const COLUMN_FACTS_BYTES: usize = 4 + 2 + 4 + 2 + 4 + 2;

/// Names of the columns in the body of a `RowDescription`. An error ends the iterator.
pub fn column_names(body: &[u8]) -> impl Iterator<Item = Result<&[u8], RowError>> {
    counted(body, |rest| {
        let end = rest.iter().position(|&b| b == 0)?;
        let (name, behind) = rest.split_at(end);
        Some((name, behind.get(1 + COLUMN_FACTS_BYTES..)?))
    })
}

/// Fields in the body of a `DataRow`; `None` for null. An error ends the iterator.
pub fn fields(body: &[u8]) -> impl Iterator<Item = Result<Option<&[u8]>, RowError>> {
    counted(body, |rest| {
        let (length, rest) = rest.split_first_chunk()?;
        let length = i32::from_be_bytes(*length);
        if length == -1 {
            return Some((None, rest));
        }
        let (field, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        Some((Some(field), rest))
    })
}

/// Takes items off `body`, whose first two bytes are their number.
fn counted<'b, T: 'b>(
    body: &'b [u8],
    take: impl Fn(&'b [u8]) -> Option<(T, &'b [u8])>,
) -> impl Iterator<Item = Result<T, RowError>> {
    let (mut left, mut rest) = match body.split_first_chunk() {
        Some((count, rest)) => (usize::from(u16::from_be_bytes(*count)), Some(rest)),
        None => (1, None),
    };
    std::iter::from_fn(move || {
        left = left.checked_sub(1)?;
        let taken = rest.and_then(&take);
        rest = taken.as_ref().map(|(_, rest)| *rest);
        if rest.is_none() {
            left = 0;
        }
        Some(taken.map(|(item, _)| item).ok_or(RowError))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &[u8]) -> Vec<u8> {
        [name, &[0], &[7; COLUMN_FACTS_BYTES]].concat()
    }

    #[test]
    fn names_and_fields_are_taken_out() {
        let body = [&[0, 2], &column(b"a")[..], &column("größe".as_bytes())].concat();
        let names: Vec<_> = column_names(&body).collect();
        assert_eq!(names, [Ok(&b"a"[..]), Ok("größe".as_bytes())]);
        let body = b"\0\x03\0\0\0\x02hi\xff\xff\xff\xff\0\0\0\0";
        let found: Vec<_> = fields(body).collect();
        assert_eq!(found, [Ok(Some(&b"hi"[..])), Ok(None), Ok(Some(&b""[..]))]);
    }

    #[test]
    fn what_is_cut_is_an_error_and_the_end() {
        let row = b"\0\x02\0\0\0\x02hi\0\0\0\x01x";
        for cut in 0..row.len() {
            let found: Vec<_> = fields(&row[..cut]).collect();
            assert_eq!(found.last(), Some(&Err(RowError)), "{cut}");
            assert!(found.len() <= 2);
        }
        assert_eq!(
            fields(b"\0\x01\xff\xff\xff\xfe").collect::<Vec<_>>(),
            [Err(RowError)]
        );
        let columns = [&[0, 1], &column(b"abc")[..]].concat();
        for cut in 0..columns.len() {
            let found: Vec<_> = column_names(&columns[..cut]).collect();
            assert_eq!(found, [Err(RowError)], "{cut}");
        }
        assert_eq!(fields(b"\0\0").count() + column_names(b"\0\0").count(), 0);
    }
}
