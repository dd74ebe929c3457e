//! Times as PostgreSQL logs them: `2026-11-27 12:41:01.123 CET` (`%m`, `%t`) and `1732707661.123` (`%n`).

/// Microseconds since 1970 without the offset of the zone, and the zone as it is written.
#[derive(Debug, PartialEq)]
pub(crate) struct LocalTime<'a> {
    pub(crate) local_us: i64,
    pub(crate) zone: &'a [u8],
    /// How many bytes the whole takes.
    pub(crate) length: usize,
}

/// Parses a time with its zone at the beginning of `text`.
pub(crate) fn parse_time(text: &[u8]) -> Option<LocalTime<'_>> {
    let number = |from: usize, digits: usize| {
        let part = text.get(from..from + digits)?;
        part.iter().try_fold(0_i64, |sum, &byte| {
            byte.is_ascii_digit()
                .then(|| sum * 10 + i64::from(byte - b'0'))
        })
    };
    let separators = [(4, b'-'), (7, b'-'), (10, b' '), (13, b':'), (16, b':')];
    if !separators
        .iter()
        .all(|&(at, byte)| text.get(at) == Some(&byte))
    {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let mut at = 19;
    let mut fraction_us = 0;
    if text.get(at) == Some(&b'.') {
        let digits = text[at + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        let digits = digits.count().min(6);
        fraction_us = number(at + 1, digits)? * 10_i64.pow(6 - u32::try_from(digits).ok()?);
        at += 1 + digits;
    }
    let mut zone: &[u8] = b"";
    if text.get(at) == Some(&b' ') {
        let is_of_zone = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-/_:".contains(byte);
        let length = text[at + 1..].iter().take_while(is_of_zone).count();
        zone = &text[at + 1..at + 1 + length];
        at += 1 + length;
    }
    let seconds = ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    Some(LocalTime {
        local_us: seconds * 1_000_000 + fraction_us,
        zone,
        length: at,
    })
}

/// Parses `seconds.milliseconds` since 1970 at the beginning of `text`: the time in microseconds, and the length.
pub(crate) fn parse_epoch(text: &[u8]) -> Option<(i64, usize)> {
    let whole = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=12).contains(&whole) || text.get(whole) != Some(&b'.') {
        return None;
    }
    let millis = text.get(whole + 1..whole + 4)?;
    let seconds: i64 = crate::entry::number(&text[..whole])?;
    let millis: i64 = crate::entry::number(millis)?;
    Some((seconds * 1_000_000 + millis * 1_000, whole + 4))
}

/// Counts the days from 1970-01-01 in the Gregorian calendar (Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", days_from_civil).
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Offsets of zones. Only differences between times count, so a zone that is not known has the offset 0; that matters only
/// in a log in which the zone changes.
#[derive(Debug, Default)]
pub(crate) struct Zones {
    last: Vec<u8>,
    offset_us: i64,
    is_known: bool,
    /// The zones of a change between two of which one is not known.
    pub(crate) unknown_change: Option<(Vec<u8>, Vec<u8>)>,
}

impl Zones {
    /// Returns the time in UTC.
    pub(crate) fn utc_us(&mut self, time: &LocalTime<'_>) -> i64 {
        if time.zone != self.last {
            let known = offset_minutes(time.zone);
            let is_known_change = self.last.is_empty() || (self.is_known && known.is_some());
            if !is_known_change && self.unknown_change.is_none() {
                self.unknown_change = Some((self.last.clone(), time.zone.to_vec()));
            }
            self.last = time.zone.to_vec();
            self.is_known = known.is_some();
            self.offset_us = known.unwrap_or(0) * 60_000_000;
        }
        time.local_us - self.offset_us
    }
}

/// Offsets east of UTC of abbreviations that mean the same everywhere in PostgreSQL's default list, and of numbers.
fn offset_minutes(zone: &[u8]) -> Option<i64> {
    if let Some((sign @ (b'+' | b'-'), digits)) =
        zone.split_first().map(|(first, rest)| (*first, rest))
    {
        let digits: Vec<u8> = digits
            .iter()
            .copied()
            .filter(|&byte| byte != b':')
            .collect();
        let (hours, minutes) = match digits.len() {
            2 => (crate::entry::number::<i64>(&digits)?, 0),
            4 => (
                crate::entry::number(&digits[..2])?,
                crate::entry::number(&digits[2..])?,
            ),
            _ => return None,
        };
        let minutes = hours * 60 + minutes;
        return Some(if sign == b'+' { minutes } else { -minutes });
    }
    let hours_times_2 = match zone {
        b"UTC" | b"GMT" | b"UCT" | b"Z" | b"WET" => 0,
        b"CET" | b"WEST" | b"BST" | b"MEZ" => 2,
        b"CEST" | b"EET" | b"SAST" | b"MESZ" => 4,
        b"EEST" | b"MSK" | b"EAT" => 6,
        b"IST" => 11,
        b"HKT" | b"AWST" => 16,
        b"JST" | b"KST" => 18,
        b"ACST" => 19,
        b"AEST" => 20,
        b"ACDT" => 21,
        b"AEDT" => 22,
        b"NZST" => 24,
        b"NZDT" => 26,
        b"BRT" | b"ADT" => -6,
        b"AST" | b"EDT" => -8,
        b"EST" | b"CDT" => -10,
        b"CST" | b"MDT" => -12,
        b"MST" | b"PDT" => -14,
        b"PST" | b"AKDT" => -16,
        b"AKST" => -18,
        b"HST" => -20,
        _ => return None,
    };
    Some(hours_times_2 * 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_microseconds_since_1970() {
        let cases = [
            ("1970-01-01 00:00:00 UTC", 0, "UTC"),
            ("2000-02-29 12:00:00.5 GMT", 951_825_600_500_000, "GMT"),
            ("2026-11-27 12:41:01.123 CET", 1_795_783_261_123_000, "CET"),
            (
                "2026-11-27 12:41:01.123456 +03",
                1_795_783_261_123_456,
                "+03",
            ),
            ("2026-11-27 12:41:01", 1_795_783_261_000_000, ""),
        ];
        for (text, local_us, zone) in cases {
            let time = parse_time(text.as_bytes()).unwrap();
            assert_eq!(
                (time.local_us, time.zone),
                (local_us, zone.as_bytes()),
                "{text}"
            );
            assert_eq!(time.length, text.len());
        }
        for text in [
            "",
            "2026-11-27",
            "2026-13-27 12:41:01",
            "2026-11-27T12:41:01",
            "abcd-11-27 12:41:01",
        ] {
            assert_eq!(parse_time(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_follows_the_zone_is_not_read() {
        let time = parse_time(b"2026-11-27 12:41:01.123 UTC [17] LOG:  x").unwrap();
        assert_eq!(time.length, "2026-11-27 12:41:01.123 UTC".len());
    }

    #[test]
    fn seconds_of_the_epoch_have_milliseconds() {
        assert_eq!(
            parse_epoch(b"1732707661.123 x"),
            Some((1_732_707_661_123_000, 14))
        );
        for text in ["1732707661", "x.123", "1732707661.1", "1.12x"] {
            assert_eq!(parse_epoch(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_change_to_summer_time_is_no_jump() {
        let mut zones = Zones::default();
        let winter = zones.utc_us(&parse_time(b"2026-03-29 01:59:59.000 CET").unwrap());
        let summer = zones.utc_us(&parse_time(b"2026-03-29 03:00:00.000 CEST").unwrap());
        assert_eq!(summer - winter, 1_000_000);
        assert_eq!(zones.unknown_change, None);
        zones.utc_us(&parse_time(b"2026-03-29 03:00:00.000 XYZ").unwrap());
        assert_eq!(
            zones.unknown_change,
            Some((b"CEST".to_vec(), b"XYZ".to_vec()))
        );
    }
}
