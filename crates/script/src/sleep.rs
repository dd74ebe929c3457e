//! `\sleep number [us | ms | s]`

use crate::error::{EvalError, EvalReason, ParseError};
use crate::lossless;
use crate::reader::{Reader, Word};
use crate::value::Value;
use crate::variables::Variables;

/// The duration of a client's sleep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sleep {
    duration: Duration,
    unit_us: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Duration {
    Number(i64),
    Variable { slot: usize, name: Box<str> },
}

impl Sleep {
    /// The duration in microseconds; 0 for a negative one.
    ///
    /// # Errors
    /// When the variable is unset, or does not begin with an integer.
    pub fn microseconds(&self, variables: &Variables) -> Result<u64, EvalError> {
        let number = match &self.duration {
            Duration::Number(number) => *number,
            Duration::Variable { slot, name } => number_of(variables, *slot, name)?,
        };
        Ok((number.max(0) as u64).saturating_mul(self.unit_us))
    }
}

/// The variable's text as C's `atoi` reads it, without the limit of 32 bits.
fn number_of(variables: &Variables, slot: usize, name: &str) -> Result<i64, EvalError> {
    if let (None, Some(Value::Int(number))) = (variables.text(slot), variables.get(slot)) {
        return Ok(number);
    }
    let mut text = Vec::new();
    if !variables.write_text(slot, &mut text) {
        return Err(EvalReason::SleepVariable(name.into()).into());
    }
    let number = leading_integer(&text);
    if number == 0 && !text.first().is_some_and(u8::is_ascii_digit) {
        return Err(EvalReason::SleepTime {
            name: name.into(),
            text: lossless::from_bytes(&text).into(),
        }
        .into());
    }
    Ok(number)
}

/// Parses a text as `strtol` does: 0 without an integer, the nearest limit when it is out of range.
pub(crate) fn leading_integer(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    digits
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .map(|b| i64::from(b - b'0'))
        .fold(0_i64, |number, digit| {
            let digit = if negative { -digit } else { digit };
            number.saturating_mul(10).saturating_add(digit)
        })
}

/// Parses what follows `\sleep`.
pub(crate) fn parse(reader: &mut Reader<'_, '_>) -> Result<Sleep, ParseError> {
    let Some(mut number) = reader.word() else {
        return Err(reader.missing("missing argument", USAGE));
    };
    let mut unit = reader.word();
    if let Some(extra) = reader.word() {
        return Err(reader.too_many(extra, USAGE));
    }
    let duration = match number.text.strip_prefix(':') {
        Some(name) => Duration::Variable {
            slot: reader.read(name, number.start),
            name: name.into(),
        },
        None => {
            let digits = number_length(number.text);
            if digits < number.text.len() && unit.is_none() {
                // A unit may follow its number without a space, as in 10ms.
                unit = Some(Word {
                    text: &number.text[digits..],
                    start: number.start + digits,
                });
                number.text = &number.text[..digits];
            }
            if !is_integer(number.text) {
                let message = format!("invalid sleep time, must be an integer ({})", number.text);
                let error = reader.source.error(number.start, message);
                return Err(error.with_hint(format!("write {USAGE}")));
            }
            Duration::Number(leading_integer(number.text.as_bytes()))
        }
    };
    let unit_us = unit.map_or(Ok(SECOND_US), |unit| unit_us(reader, unit))?;
    Ok(Sleep { duration, unit_us })
}

const USAGE: &str = "\\sleep number [us | ms | s]";
const SECOND_US: u64 = 1_000_000;

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Length of a sign and digits at the start of `text`; all of it when there is no digit.
fn number_length(text: &str) -> usize {
    let sign = usize::from(text.starts_with(['+', '-']));
    let digits = text
        .bytes()
        .skip(sign)
        .take_while(u8::is_ascii_digit)
        .count();
    if digits == 0 {
        text.len()
    } else {
        sign + digits
    }
}

fn unit_us(reader: &Reader<'_, '_>, unit: Word<'_>) -> Result<u64, ParseError> {
    let is = |name: &str| unit.text.eq_ignore_ascii_case(name);
    if is("us") {
        Ok(1)
    } else if is("ms") {
        Ok(1_000)
    } else if is("s") {
        Ok(SECOND_US)
    } else {
        let message = format!(
            "unrecognized time unit, must be us, ms or s ({})",
            unit.text
        );
        Err(reader.source.error(unit.start, message))
    }
}
