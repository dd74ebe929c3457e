//! Decimal numbers as PostgreSQL's numeric stores them: `numeric.c`, the short format.
//!
//! A header of 16 bits (sign, decimal places, weight), then digits in base 10,000, without zeroes at either end. The weight is the
//! power of 10,000 of the first digit.

use crate::pages::failure::FieldError;

/// `DEC_DIGITS`.
const DIGITS_PER_GROUP: usize = 4;
/// `NUMERIC_SHORT`, `NUMERIC_SHORT_SIGN_MASK`, `NUMERIC_SHORT_DSCALE_SHIFT`.
const SHORT: u16 = 0x8000;
const NEGATIVE: u16 = 0x2000;
const SCALE_SHIFT: usize = 7;
/// `NUMERIC_SHORT_WEIGHT_SIGN_MASK` and `NUMERIC_SHORT_WEIGHT_MASK`: the weight's lower bits in two's complement.
const WEIGHT_BITS: i16 = 0x007F;
/// The greatest precision whose values always have the short format (`NUMERIC_SHORT_DSCALE_MAX`).
pub(crate) const MOST_PRECISION: usize = 63;

/// Appends the value of numeric(`precision`, `scale`), without the header of its length.
///
/// # Errors
/// When it is not a decimal number, or does not fit.
pub(crate) fn append_numeric(
    text: &[u8],
    precision: usize,
    scale: usize,
    out: &mut Vec<u8>,
) -> Result<(), FieldError> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let point = digits.iter().position(|byte| *byte == b'.');
    let (whole, decimals) = match point {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &[][..]),
    };
    let is_number = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    if digits.len() == usize::from(point.is_some())
        || decimals.len() > scale
        || !is_number(whole)
        || !is_number(decimals)
    {
        return Err(FieldError::Numeric(scale));
    }
    let zeroes = whole.iter().take_while(|digit| **digit == b'0').count();
    let whole = &whole[zeroes..];
    if whole.len() > precision - scale {
        return Err(FieldError::Range("the numeric"));
    }
    put(is_negative, scale, whole, decimals, out);
    Ok(())
}

fn put(is_negative: bool, scale: usize, whole: &[u8], decimals: &[u8], out: &mut Vec<u8>) {
    let header_at = out.len();
    out.extend([0, 0]);
    let before_point = whole.len().div_ceil(DIGITS_PER_GROUP);
    let (first, rest) = whole.split_at(whole.len() - (before_point.max(1) - 1) * DIGITS_PER_GROUP);
    let groups = std::iter::once(first)
        .filter(|group| !group.is_empty())
        .chain(rest.chunks(DIGITS_PER_GROUP))
        .map(|group| value(group, group.len()))
        .chain(
            decimals
                .chunks(DIGITS_PER_GROUP)
                .map(|group| value(group, DIGITS_PER_GROUP)),
        );
    let mut weight = before_point as i16 - 1;
    let mut end = header_at + 2;
    for group in groups {
        if group == 0 && out.len() == header_at + 2 {
            weight -= 1;
            continue;
        }
        out.extend(group.to_le_bytes());
        if group != 0 {
            end = out.len();
        }
    }
    out.truncate(end);
    let is_zero = end == header_at + 2;
    let mut header = SHORT | (scale as u16) << SCALE_SHIFT;
    if !is_zero {
        header |= (weight & WEIGHT_BITS).cast_unsigned();
        header |= if is_negative { NEGATIVE } else { 0 };
    }
    out[header_at..header_at + 2].copy_from_slice(&header.to_le_bytes());
}

/// The number that up to four digits are, with zeroes behind them up to `width`.
fn value(digits: &[u8], width: usize) -> u16 {
    let number = digits
        .iter()
        .fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
    number * 10_u16.pow((width - digits.len()) as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stored(text: &str, precision: usize, scale: usize) -> Result<Vec<u16>, FieldError> {
        let mut out = Vec::new();
        append_numeric(text.as_bytes(), precision, scale, &mut out)?;
        let words = out
            .chunks(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        Ok(words.collect())
    }

    /// As `SELECT numeric_send(...)` and pageinspect show them on PostgreSQL 15.
    #[test]
    fn values_have_the_short_format() {
        let two = SHORT | 2 << SCALE_SHIFT;
        let table: [(&str, Vec<u16>); 12] = [
            ("0", vec![two]),
            ("-0.00", vec![two]),
            ("0.00", vec![two]),
            ("1", vec![two, 1]),
            ("10.00", vec![two, 10]),
            ("-10.00", vec![two | NEGATIVE, 10]),
            ("300000.00", vec![two | 1, 30]),
            ("50000.00", vec![two | 1, 5]),
            ("12345.67", vec![two | 1, 1, 2345, 6700]),
            ("10000000", vec![two | 1, 1000]),
            ("0.05", vec![two | 0x7F, 500]),
            (".5", vec![two | 0x7F, 5000]),
        ];
        for (text, wanted) in table {
            assert_eq!(stored(text, 12, 2), Ok(wanted), "{text}");
        }
        let four = SHORT | 4 << SCALE_SHIFT;
        assert_eq!(stored("0.0007", 4, 4), Ok(vec![four | 0x7F, 7]));
        let eight = SHORT | 8 << SCALE_SHIFT;
        assert_eq!(stored("0.00001", 9, 8), Ok(vec![eight | 0x7E, 1000]));
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let of_two = FieldError::Numeric(2);
        let table = [
            ("", of_two),
            (".", of_two),
            ("-", of_two),
            ("1.234", of_two),
            ("1e3", of_two),
            ("1.2.3", of_two),
            ("NaN", of_two),
            ("1000.00", FieldError::Range("the numeric")),
        ];
        for (text, wanted) in table {
            assert_eq!(stored(text, 5, 2), Err(wanted), "{text}");
        }
        assert_eq!(stored("0000999.99", 5, 2).unwrap()[1..], [999, 9900]);
    }

    proptest! {
        #[test]
        fn digits_are_those_of_the_number(units in -99_999_999_999_i64..99_999_999_999, scale in 0_usize..9) {
            let (size, sign) = (units.unsigned_abs(), if units < 0 { "-" } else { "" });
            let unit = 10_u64.pow(scale as u32);
            let text = match scale {
                0 => format!("{sign}{size}"),
                scale => format!("{sign}{}.{:0scale$}", size / unit, size % unit),
            };
            let words = stored(&text, 20, scale).unwrap();
            let weight = ((words[0] & 0x7F) << 9).cast_signed() >> 9;
            let mut sum = 0_i128; // in units of 10^-8
            for (place, group) in words[1..].iter().enumerate() {
                prop_assert!(*group < 10_000);
                sum += i128::from(*group) * 10_i128.pow((4 * (i32::from(weight) - place as i32) + 8) as u32);
            }
            let wanted = i128::from(size) * 10_i128.pow(8 - scale as u32);
            prop_assert_eq!(sum, wanted);
            prop_assert_eq!(words[0] & NEGATIVE != 0, units < 0);
            let ends = [words.get(1), words.last()];
            prop_assert!(words.len() == 1 || ends.iter().all(|word| word.is_some_and(|word| *word != 0)));
        }
    }
}
