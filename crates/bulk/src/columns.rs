//! One table of generated columns: sequences, drawn numbers, texts and timestamps.
//!
//! What is drawn for a row depends on the seed and on the row's number alone, so that the table is the same however many
//! streams fill it.

use std::ops::Range;

use plinth_config::ConfigError;
use plinth_script::Prng;
use plinth_script::distributions::{
    MIN_GAUSSIAN, ZIPFIAN_RANGE, exponential, gaussian, uniform, zipfian,
};
use serde::Deserialize;

use crate::table::Table;

/// 10,000 billion.
const MOST_ROWS: u64 = 10_000_000_000_000;
/// PostgreSQL's own limit.
const MOST_COLUMNS: usize = 1_600;
const LONGEST_TEXT_BYTES: usize = 1_000_000;
/// 64 characters that COPY takes as they are.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BITS_PER_CHARACTER: u32 = 6;
const US_PER_DAY: i64 = 86_400_000_000;
/// Julian day number of 1970-01-01.
const UNIX_JULIAN_DAY: i64 = 2_440_588;

/// A table: its name as SQL has it, its rows, and its columns in their order.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnsGenerator {
    /// The table's name, quoted where SQL wants it quoted.
    pub table: String,
    /// The number of rows.
    pub rows: u64,
    /// Seed of what is drawn.
    pub seed: u64,
    /// The columns.
    pub columns: Vec<Column>,
}

/// The source of the values of a column. Bounds are inclusive; distributions are those of pgbench's random functions.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Column {
    /// `first`, `first + step`, ...
    Sequence {
        /// The value of the first row.
        first: i64,
        /// From one row to the next.
        step: i64,
    },
    /// Integers, each as likely as any other.
    Uniform {
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
    },
    /// Integers, those in the middle the likeliest.
    Gaussian {
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
        /// Standard deviations from the middle to either end.
        parameter: f64,
    },
    /// Integers, the least the likeliest.
    Exponential {
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
        /// How much likelier.
        parameter: f64,
    },
    /// Integers, the k-th with a probability in proportion to k^-parameter.
    Zipfian {
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
        /// The exponent.
        parameter: f64,
    },
    /// Text: a random piece, repeated to the size.
    Text {
        /// Its size.
        size_bytes: usize,
        /// Of the piece that is repeated; as long as the text, nothing repeats.
        piece_bytes: usize,
    },
    /// Timestamps without time zone, in microseconds since 1970-01-01.
    Timestamp {
        /// The earliest.
        first_us: i64,
        /// The latest.
        last_us: i64,
        /// In the order of rows and evenly spaced; otherwise drawn.
        spaced: bool,
    },
}

impl ColumnsGenerator {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if !(1..=MOST_ROWS).contains(&self.rows) {
            let message = format!("got {}, allowed are 1 to {MOST_ROWS}", self.rows);
            return Err(ConfigError::new("generator.rows", message));
        }
        if !(1..=MOST_COLUMNS).contains(&self.columns.len()) {
            let message = format!(
                "got {}, allowed are 1 to {MOST_COLUMNS}",
                self.columns.len()
            );
            return Err(ConfigError::new("generator.columns", message));
        }
        for (number, column) in self.columns.iter().enumerate() {
            column.validate(self.rows).map_err(|message| {
                ConfigError::new("generator.columns", format!("column {number}: {message}"))
            })?;
        }
        Ok(())
    }
}

impl Table for ColumnsGenerator {
    fn name(&self) -> &str {
        &self.table
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn write_rows(&self, rows: Range<u64>, out: &mut Vec<u8>) {
        let base = Prng::seeded(self.seed).next_u64();
        for row in rows {
            let mut rng = Prng::seeded(base.wrapping_add(row));
            for (number, column) in self.columns.iter().enumerate() {
                if number > 0 {
                    out.push(b'\t');
                }
                column.write(row, self.rows, &mut rng, out);
            }
            out.push(b'\n');
        }
    }
}

impl Column {
    fn validate(&self, rows: u64) -> Result<(), String> {
        match *self {
            Self::Sequence { first, step } => {
                let last = i128::from(first) + i128::from(step) * i128::from(rows - 1);
                if i64::try_from(last).is_err() {
                    return Err(format!("the last value, {last}, does not fit in 64 bits"));
                }
                Ok(())
            }
            Self::Uniform { min, max } => check_bounds(min, max),
            Self::Gaussian {
                min,
                max,
                parameter,
            } => {
                let allowed = format!("{MIN_GAUSSIAN} or more");
                check_parameter(parameter, parameter >= MIN_GAUSSIAN, &allowed)?;
                check_bounds(min, max)
            }
            Self::Exponential {
                min,
                max,
                parameter,
            } => {
                check_parameter(parameter, parameter > 0.0, "above 0")?;
                check_bounds(min, max)
            }
            Self::Zipfian {
                min,
                max,
                parameter,
            } => {
                let (least, most) = (ZIPFIAN_RANGE.start(), ZIPFIAN_RANGE.end());
                let allowed = format!("{least} to {most}");
                check_parameter(parameter, ZIPFIAN_RANGE.contains(&parameter), &allowed)?;
                check_bounds(min, max)
            }
            Self::Text {
                size_bytes,
                piece_bytes,
            } => {
                if !(1..=LONGEST_TEXT_BYTES).contains(&size_bytes) {
                    return Err(format!(
                        "size_bytes: got {size_bytes}, allowed are 1 to {LONGEST_TEXT_BYTES}"
                    ));
                }
                if !(1..=size_bytes).contains(&piece_bytes) {
                    return Err(format!(
                        "piece_bytes: got {piece_bytes}, allowed are 1 to {size_bytes}"
                    ));
                }
                Ok(())
            }
            Self::Timestamp {
                first_us, last_us, ..
            } => {
                if first_us.div_euclid(US_PER_DAY) < -UNIX_JULIAN_DAY {
                    return Err(format!("first_us: got {first_us}, before Julian day 0"));
                }
                check_bounds(first_us, last_us)
            }
        }
    }

    fn write(&self, row: u64, rows: u64, rng: &mut Prng, out: &mut Vec<u8>) {
        match *self {
            Self::Sequence { first, step } => write_integer(first + step * row as i64, out),
            Self::Uniform { min, max } => write_integer(uniform(rng, min, max), out),
            Self::Gaussian {
                min,
                max,
                parameter,
            } => write_integer(gaussian(rng, min, max, parameter), out),
            Self::Exponential {
                min,
                max,
                parameter,
            } => write_integer(exponential(rng, min, max, parameter), out),
            Self::Zipfian {
                min,
                max,
                parameter,
            } => write_integer(zipfian(rng, min, max, parameter), out),
            Self::Text {
                size_bytes,
                piece_bytes,
            } => write_text(size_bytes, piece_bytes, rng, out),
            Self::Timestamp {
                first_us,
                last_us,
                spaced: true,
            } => write_timestamp(spaced(first_us, last_us, row, rows), out),
            Self::Timestamp {
                first_us, last_us, ..
            } => write_timestamp(uniform(rng, first_us, last_us), out),
        }
    }
}

fn check_bounds(min: i64, max: i64) -> Result<(), String> {
    match max.checked_sub(min).and_then(|width| width.checked_add(1)) {
        Some(values) if values >= 1 => Ok(()),
        _ => Err(format!(
            "got {min} to {max}, allowed are up to 2^63 - 1 values, the least first"
        )),
    }
}

fn check_parameter(parameter: f64, is_allowed: bool, allowed: &str) -> Result<(), String> {
    if is_allowed && parameter.is_finite() {
        return Ok(());
    }
    Err(format!("parameter: got {parameter}, allowed is {allowed}"))
}

fn write_integer(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn write_text(size_bytes: usize, piece_bytes: usize, rng: &mut Prng, out: &mut Vec<u8>) {
    let start = out.len();
    let mut bits = 0;
    for index in 0..piece_bytes {
        if index % (u64::BITS / BITS_PER_CHARACTER) as usize == 0 {
            bits = rng.next_u64();
        }
        out.push(ALPHABET[bits as usize % ALPHABET.len()]);
        bits >>= BITS_PER_CHARACTER;
    }
    while out.len() < start + size_bytes {
        let more = piece_bytes.min(start + size_bytes - out.len());
        out.extend_from_within(start..start + more);
    }
}

/// The instant of a row, from `first_us` at the first to `last_us` at the last.
fn spaced(first_us: i64, last_us: i64, row: u64, rows: u64) -> i64 {
    let width = i128::from(last_us - first_us);
    let passed = width * i128::from(row) / i128::from(rows.max(2) - 1);
    first_us + passed as i64
}

/// A Julian day and a time of day, which PostgreSQL reads as it reads any date ("Date/Time Types", ISO and Julian
/// input), so that no calendar is needed here.
fn write_timestamp(unix_us: i64, out: &mut Vec<u8>) {
    let day = unix_us.div_euclid(US_PER_DAY) + UNIX_JULIAN_DAY;
    let us = unix_us.rem_euclid(US_PER_DAY);
    out.push(b'J');
    write_integer(day, out);
    let (hours, minutes) = (us / 3_600_000_000, us / 60_000_000 % 60);
    for (separator, value) in [(b' ', hours), (b':', minutes), (b':', us / 1_000_000 % 60)] {
        out.push(separator);
        write_padded(value, 10, out);
    }
    out.push(b'.');
    write_padded(us % 1_000_000, 100_000, out);
}

/// Padded with leading zeroes, so that its first digit has the place value `place`.
fn write_padded(value: i64, mut place: i64, out: &mut Vec<u8>) {
    while place > 0 {
        out.push(b'0' + (value / place % 10) as u8);
        place /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generator(rows: u64, columns: &str) -> ColumnsGenerator {
        let json =
            format!(r#"{{"table": "t", "rows": {rows}, "seed": 7, "columns": [{columns}]}}"#);
        serde_json::from_str(&json).unwrap()
    }

    fn all_lines(generator: &ColumnsGenerator) -> Vec<String> {
        lines(generator, std::iter::once(0..generator.rows))
    }

    fn lines(
        generator: &ColumnsGenerator,
        pieces: impl IntoIterator<Item = Range<u64>>,
    ) -> Vec<String> {
        assert_eq!(generator.validate(), Ok(()));
        let mut out = Vec::new();
        for piece in pieces {
            generator.write_rows(piece, &mut out);
        }
        let text = String::from_utf8(out).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn numbers(columns: &str, rows: u64) -> Vec<i64> {
        let all = all_lines(&generator(rows, columns));
        all.iter().map(|line| line.parse().unwrap()).collect()
    }

    const MIXED: &str = r#"{"kind": "sequence", "first": 5, "step": 2}, {"kind": "uniform", "min": 0, "max": 9},
        {"kind": "zipfian", "min": 1, "max": 100, "parameter": 1.2}, {"kind": "text", "size_bytes": 7, "piece_bytes": 3},
        {"kind": "timestamp", "first_us": 0, "last_us": 86400000000, "spaced": false}"#;

    #[test]
    fn a_row_is_the_same_in_whatever_pieces() {
        let generator = generator(1_000, MIXED);
        let whole = all_lines(&generator);
        let pieces = [0..1, 1..17, 17..999, 999..1_000];
        assert_eq!(lines(&generator, pieces), whole);
        assert!(whole[2].starts_with("9\t"), "{}", whole[2]);
        let other = ColumnsGenerator {
            seed: 8,
            ..generator
        };
        assert_ne!(all_lines(&other), whole);
    }

    #[test]
    fn drawn_numbers_keep_to_their_bounds_and_distribution() {
        let uniform = numbers(r#"{"kind": "uniform", "min": -2, "max": 2}"#, 50_000);
        for value in -2..=2 {
            let count = uniform.iter().filter(|&&drawn| drawn == value).count();
            assert!(count.abs_diff(10_000) < 500, "{value}: {count}");
        }
        let middle = numbers(
            r#"{"kind": "gaussian", "min": 1, "max": 100, "parameter": 10}"#,
            50_000,
        );
        // Within 10 % of the range around its middle lies one standard deviation to either side: 68 %.
        let near = middle.iter().filter(|value| (46..=55).contains(*value));
        assert!(near.count().abs_diff(34_000) < 1_000);
        for kind in ["exponential", "zipfian"] {
            let column = format!(r#"{{"kind": "{kind}", "min": 1, "max": 100, "parameter": 2}}"#);
            let drawn = numbers(&column, 50_000);
            let of = |value| drawn.iter().filter(|&&drawn| drawn == value).count();
            assert!(of(1) > of(2) && of(2) > of(60), "{kind}");
            assert!(drawn.iter().all(|value| (1..=100).contains(value)));
        }
    }

    #[test]
    fn texts_have_their_size_and_repeat_their_piece() {
        for (size, piece) in [(290, 29), (10, 10), (11, 3), (1, 1)] {
            let column =
                format!(r#"{{"kind": "text", "size_bytes": {size}, "piece_bytes": {piece}}}"#);
            let texts = all_lines(&generator(50, &column));
            for text in &texts {
                assert_eq!(text.len(), size);
                assert_eq!(text[piece..], text[..size - piece]);
            }
            assert!(texts[0] != texts[1] || size == 1);
        }
    }

    #[test]
    fn timestamps_are_julian_days() {
        let of = |first_us: i64, last_us: i64, rows: u64| {
            let column = format!(
                r#"{{"kind": "timestamp", "first_us": {first_us}, "last_us": {last_us}, "spaced": true}}"#
            );
            all_lines(&generator(rows, &column))
        };
        assert_eq!(of(0, 0, 1), ["J2440588 00:00:00.000000"]);
        assert_eq!(of(-1, 0, 1), ["J2440587 23:59:59.999999"]);
        let spaced = of(1_355_314_332_123_456, 1_355_314_334_123_456, 3);
        assert_eq!(spaced[0], "J2456274 12:12:12.123456");
        assert_eq!(spaced[1], "J2456274 12:12:13.123456");
        assert_eq!(spaced[2], "J2456274 12:12:14.123456");
    }

    #[test]
    fn what_makes_no_sense_names_the_column() {
        let table = [
            (
                r#"{"kind": "sequence", "first": 9223372036854775807, "step": 1}"#,
                "does not fit",
            ),
            (r#"{"kind": "uniform", "min": 3, "max": 2}"#, "got 3 to 2"),
            (
                r#"{"kind": "gaussian", "min": 1, "max": 2, "parameter": 1.5}"#,
                "got 1.5, allowed is 2 or more",
            ),
            (
                r#"{"kind": "exponential", "min": 1, "max": 2, "parameter": 0}"#,
                "got 0, allowed is above 0",
            ),
            (
                r#"{"kind": "zipfian", "min": 1, "max": 2, "parameter": 1}"#,
                "got 1, allowed is 1.001 to 1000",
            ),
            (
                r#"{"kind": "text", "size_bytes": 0, "piece_bytes": 1}"#,
                "size_bytes: got 0",
            ),
            (
                r#"{"kind": "text", "size_bytes": 5, "piece_bytes": 6}"#,
                "piece_bytes: got 6",
            ),
            (
                r#"{"kind": "timestamp", "first_us": 5, "last_us": 4, "spaced": true}"#,
                "got 5 to 4",
            ),
        ];
        for (column, words) in table {
            let error = generator(
                2,
                &format!(r#"{{"kind": "uniform", "min": 0, "max": 1}}, {column}"#),
            )
            .validate()
            .unwrap_err();
            assert_eq!(error.key, "generator.columns");
            assert!(error.message.starts_with("column 1: "), "{error}");
            assert!(error.message.contains(words), "{error}");
        }
        assert_eq!(
            generator(0, MIXED).validate().unwrap_err().key,
            "generator.rows"
        );
        assert_eq!(
            generator(1, "").validate().unwrap_err().key,
            "generator.columns"
        );
    }
}
