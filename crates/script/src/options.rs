//! pgbench's options about scripts and seeds, with its error messages.

use thiserror::Error;

use crate::builtin::{BUILTINS, Builtin};

/// An invalid option. The wording is pgbench's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionError {
    /// The text after the `@` is not a number.
    #[error("invalid weight specification: {0}")]
    Weight(String),
    /// The number after the `@` is negative or too large.
    #[error("weight specification out of range (0 .. 2147483647): {0}")]
    WeightRange(i64),
    /// No built-in script has a name with this prefix.
    #[error("no builtin script found for name \"{0}\"")]
    NoBuiltin(String),
    /// Several built-in scripts have a name with this prefix.
    #[error("ambiguous builtin name: {found} builtin scripts found for prefix \"{prefix}\"")]
    AmbiguousBuiltin {
        /// Their number.
        found: usize,
        /// The prefix.
        prefix: String,
    },
    /// `--random-seed` is neither a number nor one of its keywords.
    #[error("unrecognized random seed option \"{0}\"")]
    Seed(String),
}

/// Splits `name@weight`; without `@`, the weight is 1.
///
/// # Errors
/// When the weight is not a number, or out of range.
pub fn script_weight(option: &str) -> Result<(&str, u32), OptionError> {
    let Some((name, weight)) = option.rsplit_once('@') else {
        return Ok((option, 1));
    };
    let invalid = || OptionError::Weight(format!("@{weight}"));
    let weight: i64 = weight.trim_ascii_start().parse().map_err(|_| invalid())?;
    if weight > i64::from(i32::MAX) || weight < 0 {
        return Err(OptionError::WeightRange(weight));
    }
    Ok((name, weight as u32))
}

/// The built-in script whose name begins with `prefix`.
///
/// # Errors
/// When there is none, or more than one.
pub fn find_builtin(prefix: &str) -> Result<&'static Builtin, OptionError> {
    let mut found = BUILTINS
        .iter()
        .filter(|builtin| builtin.name.starts_with(prefix));
    let first = found.next();
    match (first, found.count()) {
        (Some(builtin), 0) => Ok(builtin),
        (None, _) => Err(OptionError::NoBuiltin(prefix.to_owned())),
        (Some(_), others) => Err(OptionError::AmbiguousBuiltin {
            found: 1 + others,
            prefix: prefix.to_owned(),
        }),
    }
}

/// `--random-seed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeedOption {
    /// `time`, and the default: from the clock.
    Time,
    /// `rand`: from a strong source of random numbers.
    Random,
    /// This number.
    Number(u64),
}

impl SeedOption {
    /// Reads the option as pgbench does, with C's `strtoull`: white space and a sign may come first, a minus sign
    /// negates the number modulo 2^64, and a number that is too large becomes the largest one.
    ///
    /// # Errors
    /// When it is neither a number nor a keyword.
    pub fn parse(option: &str) -> Result<Self, OptionError> {
        match option {
            "time" => return Ok(Self::Time),
            "rand" => return Ok(Self::Random),
            _ => {}
        }
        let text = option.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(OptionError::Seed(option.to_owned()));
        }
        Ok(Self::Number(match digits.parse::<u64>() {
            Ok(number) if negative => number.wrapping_neg(),
            Ok(number) => number,
            Err(_) => u64::MAX,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_follow_the_last_at_sign() {
        let table = [
            ("a.sql", Ok(("a.sql", 1))),
            ("a.sql@7", Ok(("a.sql", 7))),
            ("me@home/a.sql@0", Ok(("me@home/a.sql", 0))),
            ("a@+2147483647", Ok(("a", 2_147_483_647))),
            ("a@", Err("invalid weight specification: @")),
            ("a@one", Err("invalid weight specification: @one")),
            ("a@1.5", Err("invalid weight specification: @1.5")),
            (
                "a@2147483648",
                Err("weight specification out of range (0 .. 2147483647): 2147483648"),
            ),
            (
                "a@-1",
                Err("weight specification out of range (0 .. 2147483647): -1"),
            ),
            (
                "a@99999999999999999999",
                Err("invalid weight specification: @99999999999999999999"),
            ),
        ];
        for (option, wanted) in table {
            let found = script_weight(option).map_err(|error| error.to_string());
            assert_eq!(found, wanted.map_err(str::to_owned), "{option}");
        }
    }

    #[test]
    fn builtins_are_found_by_an_unambiguous_beginning() {
        let table = [
            ("tpcb-like", Ok("tpcb-like")),
            ("t", Ok("tpcb-like")),
            ("se", Ok("select-only")),
            ("si", Ok("simple-update")),
            (
                "s",
                Err("ambiguous builtin name: 2 builtin scripts found for prefix \"s\""),
            ),
            (
                "",
                Err("ambiguous builtin name: 3 builtin scripts found for prefix \"\""),
            ),
            ("T", Err("no builtin script found for name \"T\"")),
            (
                "select-only1",
                Err("no builtin script found for name \"select-only1\""),
            ),
        ];
        for (prefix, wanted) in table {
            let found = find_builtin(prefix).map(|builtin| builtin.name);
            assert_eq!(
                found.map_err(|error| error.to_string()),
                wanted.map_err(str::to_owned),
                "{prefix}"
            );
        }
    }

    #[test]
    fn seeds_are_words_or_numbers_as_c_reads_them() {
        let table = [
            ("time", Some(SeedOption::Time)),
            ("rand", Some(SeedOption::Random)),
            ("0", Some(SeedOption::Number(0))),
            (" +12", Some(SeedOption::Number(12))),
            ("-1", Some(SeedOption::Number(u64::MAX))),
            ("18446744073709551616", Some(SeedOption::Number(u64::MAX))),
            ("", None),
            ("TIME", None),
            ("one", None),
            ("1 ", None),
            ("0x1", None),
            ("- 1", None),
        ];
        for (option, wanted) in table {
            assert_eq!(SeedOption::parse(option).ok(), wanted, "{option:?}");
        }
    }
}
