//! Values of expressions and variables, and their conversions to one another and to text.

use std::io::Write;

use crate::error::{EvalError, EvalReason};

/// The value of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// SQL's NULL.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double-precision number.
    Double(f64),
}

impl Value {
    /// Name of the type, as used in error messages.
    #[must_use]
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "int",
            Self::Double(_) => "double",
        }
    }

    /// The value as a boolean. Only booleans convert to it.
    ///
    /// # Errors
    /// [`EvalReason::Coercion`] for all other types.
    pub fn to_bool(self) -> Result<bool, EvalError> {
        match self {
            Self::Bool(b) => Ok(b),
            other => Err(other.coercion("boolean")),
        }
    }

    /// The value as an integer; a double is rounded, half to even.
    ///
    /// # Errors
    /// [`EvalReason::DoubleToInt`] out of range, [`EvalReason::Coercion`] for null and booleans.
    pub fn to_int(self) -> Result<i64, EvalError> {
        match self {
            Self::Int(i) => Ok(i),
            Self::Double(d) => {
                let rounded = d.round_ties_even();
                // -2^63 is a double, 2^63 - 1 is not: the upper limit is exclusive.
                if rounded >= i64::MIN as f64 && rounded < -(i64::MIN as f64) {
                    Ok(rounded as i64)
                } else {
                    Err(EvalReason::DoubleToInt(rounded).into())
                }
            }
            other => Err(other.coercion("int")),
        }
    }

    /// The value as a double.
    ///
    /// # Errors
    /// [`EvalReason::Coercion`] for null and booleans.
    pub fn to_double(self) -> Result<f64, EvalError> {
        match self {
            Self::Double(d) => Ok(d),
            Self::Int(i) => Ok(i as f64),
            other => Err(other.coercion("double")),
        }
    }

    /// Whether the value is true as a condition: the boolean true, or a number other than zero.
    #[must_use]
    pub fn is_true(self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(b) => b,
            Self::Int(i) => i != 0,
            Self::Double(d) => d != 0.0,
        }
    }

    /// Appends the text of the value in SQL and in parameters, without allocating when `out` has the capacity. Doubles
    /// are written as C's `%.15g` does.
    pub fn write_text(self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"NULL"),
            Self::Bool(true) => out.extend_from_slice(b"true"),
            Self::Bool(false) => out.extend_from_slice(b"false"),
            Self::Int(i) => out.extend_from_slice(itoa::Buffer::new().format(i).as_bytes()),
            Self::Double(d) => write_double(d, out),
        }
    }

    /// The value that the text of a variable spells in an expression; `None` if it spells none. pgbench accepts `null`,
    /// any prefix of `true`, `yes`, `false` and `no`, `on`, `off` and `of`, integers, and doubles, ignoring case.
    #[must_use]
    pub fn from_bytes(text: &[u8]) -> Option<Self> {
        let is = |word: &[u8]| text.eq_ignore_ascii_case(word);
        let begins = |word: &[u8]| {
            let beginning = word.get(..text.len());
            beginning.is_some_and(is)
        };
        if text.is_empty() {
            return None;
        }
        if is(b"null") {
            return Some(Self::Null);
        }
        if begins(b"true") || begins(b"yes") || is(b"on") {
            return Some(Self::Bool(true));
        }
        if begins(b"false") || begins(b"no") || is(b"off") || is(b"of") {
            return Some(Self::Bool(false));
        }
        let number = std::str::from_utf8(text).ok()?;
        let number = number.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
        let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
        if digits.bytes().all(|b| b.is_ascii_digit()) {
            return number.parse().ok().map(Self::Int);
        }
        parse_double(number).map(Self::Double)
    }

    fn coercion(self, to: &'static str) -> EvalError {
        let from = self.type_name();
        EvalReason::Coercion { from, to }.into()
    }
}

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
fn write_double(d: f64, out: &mut Vec<u8>) {
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
