//! Values of expressions and variables, and their conversions to one another and to text.

use crate::double::{parse_double, write_double};
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
