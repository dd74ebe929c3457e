//! Reads the entries of a log. Its files are read in the order of their first times.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::continued::{Continued, FurtherLines};
use crate::csv;
use crate::ends::{is_doubtful, is_of_one_line, statement_of, without_carriage_returns};
use crate::entry::{Bytes, Entry, Place, SessionKey, Severity};
use crate::error::LogError;
use crate::files::{self, Compression};
use crate::json;
use crate::message::{self, Said, Timed};
use crate::prefix::{Prefix, USUAL};
use crate::records::{Framing, LineEnd, Record, Records};
use crate::stderr::{self, Further, Parsed};
use crate::timestamp::Zones;

/// How many records at the beginning of a file decide its format and its first time.
const LOOK_AT_RECORDS: usize = 1_000;
/// The longest record that is read for this purpose.
const LOOK_AT_BYTES: usize = 1 << 20;
/// How often the caller is asked whether to go on.
const ASK_EVERY_RECORDS: u64 = 4_096;

/// The format of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Format {
    Json,
    Csv,
    Plain(Prefix),
}

impl Format {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Json => "jsonlog",
            Self::Csv => "csvlog",
            Self::Plain(_) => "stderr",
        }
    }

    fn framing(&self) -> Framing {
        match self {
            Self::Json => Framing::Lines,
            Self::Csv => Framing::Quoted,
            Self::Plain(_) => Framing::Indented,
        }
    }
}

/// A file, before it is read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) compression: Compression,
    pub(crate) size_bytes: u64,
    /// Time of its first entry; None if it has none.
    first_us: Option<i64>,
    /// How its lines end.
    line_end: LineEnd,
    /// Whether the continuation lines of its entries were removed.
    lacks_further_lines: bool,
}

/// What a file holds.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Content {
    /// Size without compression.
    pub(crate) content_bytes: u64,
    pub(crate) entries: u64,
    pub(crate) malformed: u64,
    pub(crate) too_long: u64,
    /// Times of the first and last entry, in microseconds since 1970.
    pub(crate) first_us: Option<i64>,
    pub(crate) last_us: Option<i64>,
}

/// Progress of reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Bytes read so far of all files, without compression.
    pub content_bytes: u64,
    /// Number of the current file, from 1.
    pub file: usize,
    /// How many files there are.
    pub files: usize,
}

/// A record that is not an entry.
pub(crate) struct Unread<'a> {
    pub(crate) place: Place,
    /// None if it is too long.
    pub(crate) reason: Option<String>,
    pub(crate) beginning: &'a [u8],
}

/// Receives entries.
pub(crate) trait Entries {
    fn entry(&mut self, entry: &Entry<'_>, place: Place);
    fn unread(&mut self, unread: &Unread<'_>);
    /// Returns whether to read on.
    fn wants_more(&self) -> bool;
}

/// Finds the formats of the files, and sorts the files by their first times.
pub(crate) fn sources(paths: &[PathBuf], prefix: Option<&str>) -> Result<Vec<Source>, LogError> {
    let prefixes = match prefix {
        Some(text) => {
            let parsed = Prefix::parse(text).map_err(|reason| {
                LogError::Unusable(format!("cannot use the log_line_prefix '{text}': {reason}"))
            })?;
            vec![parsed]
        }
        None => USUAL
            .iter()
            .filter_map(|text| Prefix::parse(text).ok())
            .collect(),
    };
    let mut found = Vec::new();
    for path in paths {
        found.push(source(path, &prefixes, prefix)?);
    }
    found.sort_by(|a, b| (a.first_us, &a.path).cmp(&(b.first_us, &b.path)));
    Ok(found)
}

fn source(path: &Path, prefixes: &[Prefix], given: Option<&str>) -> Result<Source, LogError> {
    let formats = [Format::Json, Format::Csv]
        .into_iter()
        .chain(prefixes.iter().cloned().map(Format::Plain));
    let opened = files::open(path)?;
    let mut source = Source {
        path: path.to_path_buf(),
        format: Format::Json,
        compression: opened.compression,
        size_bytes: opened.size_bytes,
        first_us: None,
        line_end: LineEnd::Lf,
        lacks_further_lines: false,
    };
    let mut is_empty = true;
    let mut most = 0;
    for format in formats {
        let seen = look(path, &format)?;
        is_empty &= seen.records == 0;
        if seen.entries > most {
            most = seen.entries;
            source.format = format;
            source.first_us = seen.first_us;
            source.line_end = seen.line_end;
            source.lacks_further_lines = seen.further_lines.are_missing();
        }
    }
    if most == 0 && !is_empty {
        let tried = match given {
            Some(text) => format!("the log_line_prefix '{text}'"),
            None => format!("the usual log_line_prefixes '{}'", USUAL.join("' and '")),
        };
        return Err(LogError::Unusable(format!(
            "{}: none of its first {LOOK_AT_RECORDS} lines is of jsonlog, csvlog, or of {tried}",
            path.display()
        )));
    }
    Ok(source)
}

/// What the beginning of a file looks like in one format.
struct Seen {
    records: usize,
    /// How many of them are entries, and the time of the first.
    entries: usize,
    first_us: Option<i64>,
    /// CR LF if all lines end with it.
    line_end: LineEnd,
    further_lines: FurtherLines,
}

fn look(path: &Path, format: &Format) -> Result<Seen, LogError> {
    let mut records =
        Records::with_limit(files::open(path)?.content, format.framing(), LOOK_AT_BYTES);
    let mut zones = Zones::default();
    let mut seen = Seen {
        records: 0,
        entries: 0,
        first_us: None,
        line_end: LineEnd::Lf,
        further_lines: FurtherLines::default(),
    };
    let (mut lf, mut cr_lf) = (0, 0);
    while seen.records < LOOK_AT_RECORDS {
        let Some(record) = records.next().map_err(LogError::io(path))? else {
            break;
        };
        seen.records += 1;
        lf += usize::from(record.line_end == LineEnd::Lf);
        cr_lf += usize::from(record.line_end == LineEnd::CrLf);
        let time_us = match parse(record.bytes, format, &mut zones) {
            Ok(Parsed::Message(entry)) => {
                if matches!(format, Format::Plain(_)) {
                    seen.further_lines.entry(record.bytes, &entry.message);
                }
                Some(entry.time_us)
            }
            Ok(Parsed::Further(Further::Detail, _, text)) => {
                seen.further_lines.detail(record.bytes, &text);
                None
            }
            Ok(Parsed::Further(..)) => None,
            Err(_) => {
                seen.further_lines.other_line();
                None
            }
        };
        if time_us.is_some() {
            seen.entries += 1;
            seen.first_us = seen.first_us.or(time_us);
        } else if *format == Format::Csv {
            records.retry_from_second_line();
        }
    }
    if lf == 0 && cr_lf > 0 {
        seen.line_end = LineEnd::CrLf;
    }
    Ok(seen)
}

fn parse<'a>(record: &'a [u8], format: &Format, zones: &mut Zones) -> Result<Parsed<'a>, String> {
    match format {
        Format::Json => json::parse(record, zones).map(Parsed::Message),
        Format::Csv => csv::parse(record, zones).map(Parsed::Message),
        Format::Plain(prefix) => stderr::parse(record, prefix, zones),
    }
}

/// Reads a file to its end, asking `keep_going` from time to time.
pub(crate) fn read(
    source: &Source,
    number: usize,
    zones: &mut Zones,
    entries: &mut impl Entries,
    keep_going: &mut dyn FnMut(u64) -> bool,
) -> Result<Content, LogError> {
    let mut records = Records::new(files::open(&source.path)?.content, source.format.framing());
    let mut reading = FileReading {
        source,
        number,
        zones,
        entries,
        content: Content::default(),
        held: None,
        continued: Continued::default(),
    };
    let mut count = 0_u64;
    loop {
        count += 1;
        if count.is_multiple_of(ASK_EVERY_RECORDS)
            && !(reading.entries.wants_more() && keep_going(records.read_bytes))
        {
            return Err(LogError::Interrupted);
        }
        let Some(record) = records.next().map_err(LogError::io(&source.path))? else {
            break;
        };
        if reading.record(&record) == Next::ItsSecondLine {
            records.retry_from_second_line();
        }
    }
    reading.hand_over(Proof::EndOfFile);
    reading.content.content_bytes = records.read_bytes;
    Ok(reading.content)
}

/// What to read next.
#[derive(PartialEq)]
enum Next {
    Record,
    /// The record was malformed: read it again from its second line.
    ItsSecondLine,
}

/// What follows a plain-log entry.
#[derive(Clone, Copy, PartialEq)]
enum Proof {
    /// Another entry, or a continuation such as DETAIL.
    Entry,
    OtherLine,
    EndOfFile,
}

/// A plain-log entry whose remaining lines may still come.
struct Held {
    entry: Entry<'static>,
    place: Place,
    /// There are signs that it is not whole.
    is_doubtful: bool,
    /// Whether its last line has a line end.
    has_line_end: bool,
}

struct FileReading<'a, E> {
    source: &'a Source,
    number: usize,
    zones: &'a mut Zones,
    entries: &'a mut E,
    content: Content,
    held: Option<Held>,
    continued: Continued,
}

impl<E: Entries> FileReading<'_, E> {
    fn record(&mut self, record: &Record<'_>) -> Next {
        let place = Place {
            file: self.number,
            line: record.line,
        };
        if record.is_too_long {
            self.too_long(record.bytes, place);
            return Next::Record;
        }
        let (bytes, has_line_ends) = self.as_written(record);
        let source = self.source;
        match parse(&bytes, &source.format, self.zones) {
            Ok(Parsed::Message(mut entry)) => {
                self.content.entries += 1;
                self.content.first_us = self.content.first_us.or(Some(entry.time_us));
                self.content.last_us = self.content.last_us.max(Some(entry.time_us));
                match source.format {
                    Format::Json => self.entries.entry(&entry, place),
                    Format::Csv => {
                        entry.end_is_known &= has_line_ends && record.line_end != LineEnd::None;
                        self.entries.entry(&entry, place);
                    }
                    Format::Plain(_) => {
                        self.hand_over(Proof::Entry);
                        let mut is_doubtful = !has_line_ends || is_doubtful(&bytes);
                        is_doubtful |= source.lacks_further_lines;
                        is_doubtful |= self.is_continued(&bytes, &entry);
                        self.held = Some(Held {
                            entry: entry.into_owned(),
                            place,
                            is_doubtful,
                            has_line_end: record.line_end != LineEnd::None,
                        });
                    }
                }
            }
            Ok(Parsed::Further(further, session, text)) => {
                let mut is_doubtful = !has_line_ends || is_doubtful(&bytes);
                is_doubtful |= self.continued.may_be_part(&bytes);
                self.further(further, session, text, is_doubtful);
            }
            Err(_) if bytes.is_empty() => self.other_line(&bytes),
            Err(reason) => {
                self.other_line(&bytes);
                self.unread(place, Some(reason), &bytes);
                if source.format == Format::Csv {
                    return Next::ItsSecondLine;
                }
            }
        }
        Next::Record
    }

    /// Returns a record with the line ends that the server wrote, and whether they match those of the rest of the file.
    fn as_written<'a>(&self, record: &Record<'a>) -> (Bytes<'a>, bool) {
        let is_as_others =
            record.line_end == self.source.line_end || record.line_end == LineEnd::None;
        if self.source.line_end == LineEnd::CrLf {
            let (bytes, are_all) = without_carriage_returns(record.bytes);
            return (bytes, are_all && is_as_others);
        }
        (record.bytes.into(), is_as_others)
    }

    /// Returns whether a plain-log entry may be a line of the statement before it.
    fn is_continued(&mut self, record: &[u8], entry: &Entry<'_>) -> bool {
        let may_be_part = self.continued.may_be_part(record);
        if has_come_so(entry) {
            self.continued.has_come_so();
        } else if !may_be_part && let Some(text) = statement_of(&entry.message) {
            self.continued.statement(text);
        }
        may_be_part
    }

    /// Adds a DETAIL or STATEMENT to the entry before it, if both have the same session.
    fn further(
        &mut self,
        further: Further,
        session: SessionKey,
        text: Bytes<'_>,
        is_doubtful: bool,
    ) {
        let Some(held) = &mut self.held else {
            return;
        };
        if held.entry.session != session {
            return;
        }
        held.is_doubtful |= is_doubtful;
        let has_come_so = has_come_so(&held.entry);
        let place = match further {
            Further::Detail => &mut held.entry.detail,
            Further::Statement => &mut held.entry.statement,
            Further::Other => return,
        };
        held.is_doubtful |= !place.is_empty(); // a second one belongs to an entry that is missing
        if further == Further::Statement && !is_doubtful && !has_come_so {
            self.continued.statement(&text);
        }
        *place = text.into_owned().into();
    }

    /// Takes a line that is not an entry. It may be part of the entry before it.
    fn other_line(&mut self, line: &[u8]) {
        if matches!(self.source.format, Format::Plain(_)) {
            self.hand_over(Proof::OtherLine);
            self.continued.other_line(line);
        }
    }

    fn too_long(&mut self, beginning: &[u8], place: Place) {
        self.content.too_long += 1;
        let is_entry = parse(beginning, &self.source.format, self.zones).is_ok();
        self.hand_over(if is_entry {
            Proof::Entry
        } else {
            Proof::OtherLine
        });
        self.entries.unread(&Unread {
            place,
            reason: None,
            beginning,
        });
    }

    fn unread(&mut self, place: Place, reason: Option<String>, beginning: &[u8]) {
        self.content.malformed += 1;
        self.entries.unread(&Unread {
            place,
            reason,
            beginning,
        });
    }

    /// Hands over the plain-log entry that is held, which is complete now.
    fn hand_over(&mut self, proof: Proof) {
        let Some(held) = self.held.take() else {
            return;
        };
        let Held {
            mut entry, place, ..
        } = held;
        let is_proven = match proof {
            Proof::Entry => true,
            Proof::OtherLine => false,
            Proof::EndOfFile => held.has_line_end && is_of_one_line(&entry.message),
        };
        entry.end_is_known = is_proven && !held.is_doubtful;
        let is_duration =
            |message| matches!(message::read(message), Said::Duration(_, Timed::Before));
        if !entry.end_is_known && is_duration(&entry.message) {
            let reason = "a duration whose line may be cut".to_owned();
            self.unread(place, Some(reason), &entry.message);
            return;
        }
        self.entries.entry(&entry, place);
    }
}

/// Returns whether the server reports a string or a comment without an end.
fn has_come_so(entry: &Entry<'_>) -> bool {
    entry.severity == Severity::Error && entry.message.starts_with(b"unterminated ")
}
