//! The text of doubles, as C and PostgreSQL read and write it.

use std::io::Write;

/// A double as C's `strtod` reads it: `None` for what it reports as out of range, which includes underflow.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let double: f64 = text.parse().ok()?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let has_digit =
        |digits: std::ops::RangeInclusive<u8>| mantissa.bytes().any(|b| digits.contains(&b));
    let is_word = !has_digit(b'0'..=b'9');
    let is_zero = !has_digit(b'1'..=b'9');
    (double.is_normal() || is_zero || is_word).then_some(double)
}

/// Significant decimal digits that survive a round trip through a double: C's DBL_DIG.
const DOUBLE_DIGITS: usize = 15;

/// Appends `d` as PostgreSQL's `printf("%.15g")` (`src/port/snprintf.c`) writes it.
pub(crate) fn write_double(d: f64, out: &mut Vec<u8>) {
    if !d.is_finite() {
        // C leaves the spelling of these to the platform; PostgreSQL's own printf does not.
        let text: &[u8] = match d {
            d if d.is_nan() => b"NaN",
            d if d > 0.0 => b"Infinity",
            _ => b"-Infinity",
        };
        out.extend_from_slice(text);
        return;
    }
    // Rust's `e` format rounds to the same digits: d.dddddddddddddde[-]x
    let mut scratch = [0_u8; 32];
    let mut rest = &mut scratch[..];
    let precision = DOUBLE_DIGITS - 1;
    if write!(rest, "{d:.precision$e}").is_err() {
        unreachable!("a double in scientific notation with 15 digits takes at most 22 bytes");
    }
    let unused = rest.len();
    let scientific = &scratch[..scratch.len() - unused];
    let (mantissa, exponent) = split_exponent(scientific);
    let (sign, mantissa) = match mantissa.strip_prefix(b"-") {
        Some(digits) => (&b"-"[..], digits),
        None => (&b""[..], mantissa),
    };
    let mut digits = [0_u8; DOUBLE_DIGITS];
    digits[0] = mantissa[0];
    digits[1..].copy_from_slice(&mantissa[2..]);
    let significant = digits
        .iter()
        .rposition(|&b| b != b'0')
        .map_or(1, |last| last + 1);
    let digits = &digits[..significant];

    out.extend_from_slice(sign);
    if exponent < -4 || exponent >= DOUBLE_DIGITS as i32 {
        write_scientific(digits, exponent, out);
    } else {
        write_fixed(digits, exponent, out);
    }
}

fn split_exponent(scientific: &[u8]) -> (&[u8], i32) {
    let e = scientific
        .iter()
        .position(|&b| b == b'e')
        .unwrap_or(scientific.len());
    let text = scientific.get(e + 1..).unwrap_or_default();
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let magnitude = digits
        .iter()
        .fold(0, |value, &b| value * 10 + i32::from(b - b'0'));
    (
        &scientific[..e],
        if negative { -magnitude } else { magnitude },
    )
}

fn write_scientific(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    out.push(digits[0]);
    if digits.len() > 1 {
        out.push(b'.');
        out.extend_from_slice(&digits[1..]);
    }
    out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
    let magnitude = exponent.unsigned_abs();
    if magnitude < 10 {
        out.push(b'0');
    }
    out.extend_from_slice(itoa::Buffer::new().format(magnitude).as_bytes());
}

fn write_fixed(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        out.extend_from_slice(digits);
        return;
    }
    let integer_digits = exponent as usize + 1;
    if digits.len() <= integer_digits {
        out.extend_from_slice(digits);
        out.extend(std::iter::repeat_n(b'0', integer_digits - digits.len()));
    } else {
        out.extend_from_slice(&digits[..integer_digits]);
        out.push(b'.');
        out.extend_from_slice(&digits[integer_digits..]);
    }
}
