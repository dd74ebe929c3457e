//! COPY's text format, read: fields between tabs, a row a line (PostgreSQL's manual, COPY, "Text Format").

use crate::pages::failure::FieldError;
use crate::pages::numeric::append_numeric;

/// Julian day of 2000-01-01, from which PostgreSQL counts (`POSTGRES_EPOCH_JDATE`).
const EPOCH_JULIAN_DAY: i64 = 2_451_545;
const US_PER_DAY: i64 = 86_400_000_000;
/// The number of digits that always fit in 64 bits.
const SAFE_DIGITS: usize = 18;

/// Fields of rows, one after the other.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

/// A field, as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(rows: &'a [u8]) -> Self {
        Self { rest: rows }
    }

    /// The next field, and whether it is the last one of its row.
    #[inline]
    pub(crate) fn next(&mut self, is_last: bool) -> Result<Value<'a>, FieldError> {
        let end = if is_last { b'\n' } else { b'\t' };
        let found = self
            .rest
            .iter()
            .position(|byte| matches!(byte, b'\t' | b'\n'));
        let length = found.ok_or(FieldError::Shape)?;
        let (field, rest) = self.rest.split_at(length);
        if rest[0] != end {
            return Err(FieldError::Shape);
        }
        self.rest = &rest[1..];
        Ok(Value(field))
    }

    /// The next field if it is an integer of few digits, read in one pass; otherwise `None`, and the field is still the next.
    #[inline]
    pub(crate) fn next_integer(&mut self, is_last: bool) -> Option<i64> {
        let is_negative = self.rest.first() == Some(&b'-');
        let digits = &self.rest[usize::from(is_negative)..];
        let (mut value, mut count) = (0_i64, 0);
        for byte in &digits[..digits.len().min(SAFE_DIGITS + 1)] {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                let end = if is_last { b'\n' } else { b'\t' };
                if *byte != end || count == 0 {
                    return None;
                }
                self.rest = &digits[count + 1..];
                return Some(if is_negative { -value } else { value });
            }
            // One digit more than is safe may be added, for a value that is then not used.
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
            count += 1;
        }
        None
    }

    /// Whether all has been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

impl Value<'_> {
    pub(crate) fn is_null(self) -> bool {
        self.0 == b"\\N"
    }

    #[inline]
    pub(crate) fn integer(self) -> Result<i64, FieldError> {
        let (is_negative, digits) = match self.0 {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        if digits.is_empty() || digits.len() > SAFE_DIGITS {
            let text = std::str::from_utf8(self.0).map_err(|_| FieldError::Integer)?;
            return text.parse().map_err(|_| FieldError::Integer);
        }
        let value = number(digits).ok_or(FieldError::Integer)?;
        Ok(if is_negative { -value } else { value })
    }

    /// Microseconds since 2000-01-01, of a date or a Julian day, and a time of day.
    pub(crate) fn timestamp(self) -> Result<i64, FieldError> {
        self.instant().ok_or(FieldError::Timestamp)
    }

    fn instant(self) -> Option<i64> {
        let space = self.0.iter().position(|byte| *byte == b' ')?;
        let (day, time) = (&self.0[..space], &self.0[space + 1..]);
        let days = julian_day(day)? - EPOCH_JULIAN_DAY;
        days.checked_mul(US_PER_DAY)?
            .checked_add(time_of_day(time)?)
    }

    /// As a numeric of so many digits, of which `scale` are decimal places, has it, appended to `out`.
    pub(crate) fn numeric(
        self,
        precision: usize,
        scale: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FieldError> {
        append_numeric(self.0, precision, scale, out)
    }

    /// The length of the text in bytes.
    pub(crate) fn text_bytes(self) -> Result<usize, FieldError> {
        if self.is_plain() {
            return Ok(self.0.len());
        }
        let mut count = 0;
        self.each_byte(|_| {
            count += 1;
            Ok(())
        })?;
        Ok(count)
    }

    /// Whether it stands for itself.
    #[inline]
    fn is_plain(self) -> bool {
        !self.0.contains(&b'\\') && !self.0.contains(&b'\0') && self.0.is_ascii()
    }

    /// Writes it to the front of `slot`; how many bytes.
    #[inline]
    pub(crate) fn text(self, slot: &mut [u8]) -> Result<usize, FieldError> {
        let room = slot.len();
        if self.0.len() <= room && self.is_plain() {
            slot[..self.0.len()].copy_from_slice(self.0);
            return Ok(self.0.len());
        }
        let mut count = 0;
        self.each_byte(|byte| {
            *slot.get_mut(count).ok_or(FieldError::Width(room))? = byte;
            count += 1;
            Ok(())
        })?;
        Ok(count)
    }

    fn each_byte(
        self,
        mut take: impl FnMut(u8) -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        let mut bytes = self.0.iter();
        while let Some(&byte) = bytes.next() {
            let byte = match byte {
                b'\\' => escaped(bytes.next())?,
                b'\0' | 0x80.. => return Err(FieldError::Ascii),
                plain => plain,
            };
            take(byte)?;
        }
        Ok(())
    }
}

/// The Julian day of a date, as PostgreSQL's `date2j` computes it, or of a day that is written as one.
fn julian_day(text: &[u8]) -> Option<i64> {
    match text {
        [b'J', day @ ..] if (1..=SAFE_DIGITS).contains(&day.len()) => number(day),
        [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] => {
            let (year, month, day) = (
                number(&[*y1, *y2, *y3, *y4])?,
                number(&[*m1, *m2])?,
                number(&[*d1, *d2])?,
            );
            is_date(year, month, day).then(|| date2j(year, month, day))
        }
        _ => None,
    }
}

fn is_date(year: i64, month: i64, day: i64) -> bool {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    year > 0 && (1..=days).contains(&day)
}

fn date2j(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year + 4_800, month + 1)
    } else {
        (year + 4_799, month + 13)
    };
    let century = year / 100;
    year * 365 - 32_167 + year / 4 - century + century / 4 + 7_834 * month / 256 + day
}

/// Microseconds since midnight.
fn time_of_day(text: &[u8]) -> Option<i64> {
    let [h1, h2, b':', m1, m2, b':', s1, s2, fraction @ ..] = text else {
        return None;
    };
    let us = match fraction {
        [] => 0,
        [b'.', digits @ ..] if digits.len() == 6 => number(digits)?,
        _ => return None,
    };
    let (hours, minutes, seconds) = (
        number(&[*h1, *h2])?,
        number(&[*m1, *m2])?,
        number(&[*s1, *s2])?,
    );
    let is_time = hours <= 23 && minutes <= 59 && seconds <= 59;
    is_time.then_some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + us)
}

fn escaped(letter: Option<&u8>) -> Result<u8, FieldError> {
    Ok(match letter {
        Some(b'b') => 0x08,
        Some(b'f') => 0x0C,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'v') => 0x0B,
        Some(b'\\') => b'\\',
        _ => return Err(FieldError::Escape),
    })
}

/// The value of at most [`SAFE_DIGITS`] digits.
#[inline]
fn number(digits: &[u8]) -> Option<i64> {
    let mut value = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Escapes text as COPY TO does.
    fn escape(text: &str) -> String {
        let mut escaped = String::new();
        for character in text.chars() {
            let letter = match character {
                '\u{8}' => 'b',
                '\u{c}' => 'f',
                '\n' => 'n',
                '\r' => 'r',
                '\t' => 't',
                '\u{b}' => 'v',
                '\\' => '\\',
                plain => {
                    escaped.push(plain);
                    continue;
                }
            };
            escaped.extend(['\\', letter]);
        }
        escaped
    }

    fn read(value: Value<'_>) -> Result<Option<Vec<u8>>, FieldError> {
        if value.is_null() {
            return Ok(None);
        }
        let mut text = vec![0; value.text_bytes()?];
        assert_eq!(value.text(&mut text), Ok(text.len()));
        Ok(Some(text))
    }

    proptest! {
        #[test]
        fn rows_are_read_as_they_were_written(
            rows in prop::collection::vec(prop::collection::vec(prop::option::of("[\u{1}-\u{7f}]{0,9}"), 3), 0..5)
        ) {
            let field = |text: &Option<String>| text.as_deref().map_or("\\N".to_owned(), escape);
            let line = |row: &Vec<_>| row.iter().map(field).collect::<Vec<_>>().join("\t") + "\n";
            let text: String = rows.iter().map(line).collect();
            let mut fields = Fields::new(text.as_bytes());
            for row in &rows {
                for (number, wanted) in row.iter().enumerate() {
                    let got = read(fields.next(number == 2).unwrap()).unwrap();
                    prop_assert_eq!(&got, &wanted.clone().map(String::into_bytes));
                }
            }
            prop_assert!(fields.is_empty());
        }

        #[test]
        fn integers_are_those_of_the_standard_library(value in any::<i64>(), text in "-?[0-9+-]{0,21}") {
            prop_assert_eq!(Value(value.to_string().as_bytes()).integer(), Ok(value));
            let plain = !text.contains('+');
            let wanted = text.parse().map_err(|_| FieldError::Integer);
            prop_assert!(!plain || Value(text.as_bytes()).integer() == wanted, "{}", text);
        }

        #[test]
        fn an_integer_is_read_in_one_pass_or_not_at_all(
            text in prop_oneof!["-?[0-9]{0,20}", "[-0-9N.\\\\]{0,5}"], end in prop::sample::select(b"\t\n".to_vec()), is_last: bool
        ) {
            let line = [text.as_bytes(), &[end], b"7\t"].concat();
            let (mut fields, mut slow) = (Fields::new(&line), Fields::new(&line));
            let wanted = slow.next(is_last).ok().and_then(|value| value.integer().ok());
            match fields.next_integer(is_last) {
                Some(got) => {
                    prop_assert_eq!(Some(got), wanted);
                    prop_assert_eq!(fields.rest, slow.rest);
                }
                None => {
                    prop_assert!(wanted.is_none() || text.len() > SAFE_DIGITS);
                    prop_assert_eq!(fields.rest, &line[..]);
                }
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(prop::sample::select(b"\\\t\nNJ0123456789 :.-\x00\xFF".to_vec()), 0..40)) {
            let mut fields = Fields::new(&bytes);
            while let Ok(value) = fields.next(false).or_else(|_| fields.next(true)) {
                let _ = (value.integer(), value.timestamp(), read(value), value.text(&mut [0; 2]));
            }
        }
    }

    #[test]
    fn timestamps_are_counted_from_2000() {
        let table = [
            ("J2451545 00:00:00.000000", Ok(0)),
            ("J2451546 01:02:03.000004", Ok(90_123_000_004)),
            ("J2451544 23:59:59.999999", Ok(-1)),
            ("J2451545 24:00:00.000000", Err(FieldError::Timestamp)),
            ("2000-01-01 00:00:00", Ok(0)),
            ("2000-03-01 00:00:00.000001", Ok(60 * US_PER_DAY + 1)),
            ("1999-12-31 23:59:59", Ok(-1_000_000)),
            (
                "2026-11-25 12:00:00",
                Ok(9_825 * US_PER_DAY + US_PER_DAY / 2),
            ),
            ("1900-02-29 00:00:00", Err(FieldError::Timestamp)),
            ("2000-02-29 00:00:00", Ok(59 * US_PER_DAY)),
            ("2000-13-01 00:00:00", Err(FieldError::Timestamp)),
            ("2000-01-00 00:00:00", Err(FieldError::Timestamp)),
            ("2000-01-01 00:00:60", Err(FieldError::Timestamp)),
            ("2000-01-01 00:00:00.1", Err(FieldError::Timestamp)),
            ("2000-01-01", Err(FieldError::Timestamp)),
            ("J2451545 00:00:00.00000", Err(FieldError::Timestamp)),
            ("2451545 00:00:00.000000", Err(FieldError::Timestamp)),
            (
                "J999999999999999999 00:00:00.000000",
                Err(FieldError::Timestamp),
            ),
        ];
        for (text, wanted) in table {
            assert_eq!(Value(text.as_bytes()).timestamp(), wanted, "{text}");
        }
    }
}
