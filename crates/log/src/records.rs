//! Splits a log into records, each of which holds one entry. Memory is bounded: a record that is too long is skipped.

use std::io::{self, Read};

use memchr::{memchr, memchr2_iter};

use crate::timestamp::parse_time;

/// Longest record that is read. PostgreSQL accepts statements of up to 1 GiB; one of 64 MiB is a bulk load.
pub(crate) const MAX_RECORD_BYTES: usize = 64 << 20;
/// How much is read at once: little at first, because most formats are only tried on the beginning of a file.
const FIRST_READ_BYTES: usize = 4 << 10;
const READ_BYTES: usize = 1 << 20;
/// What is kept of a record that is too long.
const KEPT_BYTES: usize = 1024;
/// More than a time takes.
const LOOKAHEAD_BYTES: usize = 64;

/// How records end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// With the line.
    Lines,
    /// With a line end outside of quotes.
    Quoted,
    /// Before the next line without a tab: PostgreSQL indents the continuation lines of a message with one.
    Indented,
}

/// A record and its place.
#[derive(Debug, PartialEq)]
pub(crate) struct Record<'a> {
    /// Without its last line end; only the beginning of one that is too long.
    pub(crate) bytes: &'a [u8],
    /// Number of its first line, from 1.
    pub(crate) line: u64,
    pub(crate) is_too_long: bool,
    /// How its last line ends. That of one that is too long is not known.
    pub(crate) line_end: LineEnd,
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnd {
    /// With the end of the file.
    None,
    /// With LF alone.
    Lf,
    /// With CR LF.
    CrLf,
}

/// Reads records one after another.
pub(crate) struct Records<R> {
    input: R,
    framing: Framing,
    buffer: Vec<u8>,
    /// The record that was returned last, and what was read after it.
    begin: usize,
    end: usize,
    filled: usize,
    is_at_end: bool,
    /// The beginning of a record that is too long.
    beginning: Vec<u8>,
    line: u64,
    last_lines: u64,
    max_bytes: usize,
    /// Bytes of content read.
    pub(crate) read_bytes: u64,
}

impl<R: Read> Records<R> {
    pub(crate) fn new(input: R, framing: Framing) -> Self {
        Self::with_limit(input, framing, MAX_RECORD_BYTES)
    }

    pub(crate) fn with_limit(input: R, framing: Framing, max_bytes: usize) -> Self {
        Self {
            input,
            framing,
            buffer: Vec::new(),
            begin: 0,
            end: 0,
            filled: 0,
            is_at_end: false,
            beginning: Vec::new(),
            line: 1,
            last_lines: 0,
            max_bytes,
            read_bytes: 0,
        }
    }

    /// Returns the next record; None at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Record<'_>>> {
        self.begin = self.end;
        self.line += self.last_lines;
        let mut scan = Scan::default();
        loop {
            let data = &self.buffer[self.begin..self.filled];
            if let Some(length) = scan.record_end(data, self.framing) {
                return Ok(Some(self.record(length, false)));
            }
            if self.is_at_end {
                let length = data.len();
                if length == 0 {
                    return Ok(None);
                }
                return Ok(Some(self.record(length, false)));
            }
            if data.len() > self.max_bytes {
                return self.skip().map(Some);
            }
            self.fill()?;
        }
    }

    /// Reads the last record again from its second line on: its first line alone was malformed. False if it has only one.
    pub(crate) fn retry_from_second_line(&mut self) -> bool {
        let record = &self.buffer[self.begin..self.end];
        match memchr(b'\n', record) {
            Some(at) if at + 1 < record.len() => {
                self.end = self.begin + at + 1;
                self.last_lines = 1;
                true
            }
            _ => false,
        }
    }

    fn record(&mut self, length: usize, is_too_long: bool) -> Record<'_> {
        self.end = self.begin + length;
        let bytes = &self.buffer[self.begin..self.end];
        self.last_lines = memchr::memchr_iter(b'\n', bytes).count() as u64;
        let (bytes, line_end) = match bytes {
            [line @ .., b'\r', b'\n'] => (line, LineEnd::CrLf),
            [line @ .., b'\n'] => (line, LineEnd::Lf),
            _ => (bytes, LineEnd::None),
        };
        Record {
            bytes,
            line: self.line,
            is_too_long,
            line_end,
        }
    }

    /// Discards the rest of a record that is too long. Quotes that are broken would swallow the rest of the file, so a line
    /// that begins with a time ends them.
    fn skip(&mut self) -> io::Result<Record<'_>> {
        let kept = KEPT_BYTES.min(self.filled - self.begin);
        self.beginning = self.buffer[self.begin..self.begin + kept].to_vec();
        self.last_lines = 0;
        loop {
            match memchr(b'\n', &self.buffer[self.begin..self.filled]) {
                Some(at) => {
                    self.begin += at + 1;
                    self.last_lines += 1;
                    while self.filled - self.begin < LOOKAHEAD_BYTES && !self.is_at_end {
                        self.fill()?;
                    }
                    if self.is_at_beginning_of_record() {
                        break;
                    }
                }
                None if self.is_at_end => {
                    self.begin = self.filled;
                    break;
                }
                None => {
                    self.begin = self.filled;
                    self.fill()?;
                }
            }
        }
        self.end = self.begin;
        Ok(Record {
            bytes: &self.beginning,
            line: self.line,
            is_too_long: true,
            line_end: LineEnd::None,
        })
    }

    fn is_at_beginning_of_record(&self) -> bool {
        let next = &self.buffer[self.begin..self.filled];
        match self.framing {
            Framing::Lines => true,
            Framing::Quoted => next.is_empty() || parse_time(next).is_some(),
            Framing::Indented => next.first() != Some(&b'\t'),
        }
    }

    /// Reads more, and forgets what was returned before.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.begin..self.filled, 0);
        self.filled -= self.begin;
        self.end = self.end.saturating_sub(self.begin);
        self.begin = 0;
        let wanted = (2 * self.buffer.len()).clamp(FIRST_READ_BYTES, READ_BYTES);
        if self.buffer.len() < self.filled + wanted {
            self.buffer.resize(self.filled + wanted, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.is_at_end = true,
                Ok(read) => {
                    self.filled += read;
                    self.read_bytes += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

/// How far a record was searched for its end, which is not repeated when more of it has been read.
#[derive(Default)]
struct Scan {
    at: usize,
    is_quoted: bool,
}

impl Scan {
    fn record_end(&mut self, data: &[u8], framing: Framing) -> Option<usize> {
        match framing {
            Framing::Lines => {
                let found = memchr(b'\n', &data[self.at..]).map(|found| self.at + found + 1);
                self.at = data.len();
                found
            }
            Framing::Quoted => {
                for found in memchr2_iter(b'"', b'\n', &data[self.at..]) {
                    if data[self.at + found] == b'"' {
                        self.is_quoted = !self.is_quoted;
                    } else if !self.is_quoted {
                        return Some(self.at + found + 1);
                    }
                }
                self.at = data.len();
                None
            }
            Framing::Indented => {
                while let Some(found) = memchr(b'\n', &data[self.at..]) {
                    let next = self.at + found + 1;
                    match data.get(next) {
                        None => return None, // whether it is the end depends on what follows
                        Some(b'\t') => self.at = next,
                        Some(_) => return Some(next),
                    }
                }
                self.at = data.len();
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(into.len());
            into[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn all(text: &[u8], framing: Framing, step: usize, limit: usize) -> Vec<(Vec<u8>, u64, bool)> {
        let mut records = Records::with_limit(Slow(text, step), framing, limit);
        let mut found = Vec::new();
        while let Some(record) = records.next().unwrap() {
            found.push((record.bytes.to_vec(), record.line, record.is_too_long));
        }
        found
    }

    fn texts(text: &str, framing: Framing) -> Vec<(String, u64)> {
        let whole = all(text.as_bytes(), framing, 1 << 20, 1 << 20);
        assert_eq!(
            all(text.as_bytes(), framing, 3, 1 << 20),
            whole,
            "in steps of 3 bytes"
        );
        let text = |bytes| String::from_utf8(bytes).unwrap();
        whole
            .into_iter()
            .map(|(bytes, line, _)| (text(bytes), line))
            .collect()
    }

    fn pairs(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
        expected
            .iter()
            .map(|(text, line)| ((*text).to_owned(), *line))
            .collect()
    }

    #[test]
    fn records_end_as_their_format_says() {
        assert_eq!(
            texts("a\nb\r\nc", Framing::Lines),
            pairs(&[("a", 1), ("b", 2), ("c", 3)])
        );
        assert_eq!(
            texts("1,\"a\nb\"\n2,\"c\"\"\nd\"\n3\n", Framing::Quoted),
            pairs(&[("1,\"a\nb\"", 1), ("2,\"c\"\"\nd\"", 3), ("3", 5)])
        );
        assert_eq!(
            texts("a\n\tb\n\t\nc\nd", Framing::Indented),
            pairs(&[("a\n\tb\n\t", 1), ("c", 4), ("d", 5)])
        );
    }

    #[test]
    fn a_record_that_is_too_long_is_skipped_up_to_one_that_begins_with_a_time() {
        let long = "x".repeat(5000);
        let text = format!("1\n2,\"{long}\n3\n2026-11-27 12:41:01 UTC,4\n5\n");
        let found = all(text.as_bytes(), Framing::Quoted, 700, 2000);
        let lines: Vec<(u64, bool)> = found
            .iter()
            .map(|(_, line, too_long)| (*line, *too_long))
            .collect();
        assert_eq!(lines, [(1, false), (2, true), (4, false), (5, false)]);
        assert!(found[1].0.starts_with(b"2,\"xxx"));
        assert_eq!(found[2].0, b"2026-11-27 12:41:01 UTC,4");
    }

    #[test]
    fn the_rest_of_a_file_may_be_too_long() {
        let text = format!("1\n{}", "x".repeat(9000));
        let found = all(text.as_bytes(), Framing::Lines, 700, 2000);
        assert_eq!(found.len(), 2);
        assert!(found[1].2);
    }

    #[test]
    fn a_malformed_record_is_read_again_from_its_second_line() {
        let mut records = Records::new(&b"1,\"a\n2,\"b\"\n3\n"[..], Framing::Quoted);
        assert_eq!(records.next().unwrap().unwrap().bytes, b"1,\"a\n2,\"b\"\n3");
        assert!(records.retry_from_second_line());
        let second = records.next().unwrap().unwrap();
        assert_eq!((second.bytes, second.line), (&b"2,\"b\""[..], 2));
        assert!(!records.retry_from_second_line());
        assert_eq!(records.next().unwrap().unwrap().bytes, b"3");
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_however_it_arrives(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'"'), Just(b'\t'), Just(b'a')], 0..200),
            step in 1_usize..20,
        ) {
            for framing in [Framing::Lines, Framing::Quoted, Framing::Indented] {
                let found = all(&text, framing, step, 1 << 20);
                prop_assert_eq!(&found, &all(&text, framing, 1 << 20, 1 << 20));
                let mut joined: Vec<u8> = found.iter().map(|one| &one.0[..]).collect::<Vec<_>>().join(&b'\n');
                if text.ends_with(b"\n") {
                    joined.push(b'\n');
                }
                prop_assert_eq!(joined, text.clone());
            }
        }

        #[test]
        fn any_bytes_with_any_limit_end(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'"'), Just(b'\t'), Just(b'{'), any::<u8>()], 0..3000),
            step in 1_usize..1000,
            limit in 1_usize..1500,
        ) {
            for framing in [Framing::Lines, Framing::Quoted, Framing::Indented] {
                prop_assert!(all(&text, framing, step, limit).len() <= text.len() + 1);
            }
        }
    }
}
