//! The entries of a log of several files, in the order of their first times.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::assemble::Place;
use crate::csv;
use crate::entry::Entry;
use crate::error::LogError;
use crate::files::{self, Compression};
use crate::json;
use crate::prefix::{Prefix, USUAL};
use crate::records::{Framing, Record, Records};
use crate::stderr::{self, Further, Parsed};
use crate::timestamp::Zones;

/// How many records at the beginning of a file are looked at for its format and its first time.
const LOOK_AT_RECORDS: usize = 1_000;
/// Longest record that is looked at for that.
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
}

/// What a file holds.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Content {
    /// Without compression.
    pub(crate) content_bytes: u64,
    pub(crate) entries: u64,
    pub(crate) malformed: u64,
    pub(crate) too_long: u64,
    /// Times of the first and last entry, in microseconds since 1970.
    pub(crate) first_us: Option<i64>,
    pub(crate) last_us: Option<i64>,
}

/// How far the reading is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Bytes read of the files that are done and of the one that is read, without compression.
    pub content_bytes: u64,
    /// Number of the file that is read, from 1.
    pub file: usize,
    /// How many there are.
    pub files: usize,
}

/// A record that is no entry.
pub(crate) struct Unread<'a> {
    pub(crate) place: Place,
    /// None if it is too long.
    pub(crate) reason: Option<String>,
    pub(crate) beginning: &'a [u8],
}

/// What takes the entries.
pub(crate) trait Entries {
    fn entry(&mut self, entry: &Entry<'_>, place: Place);
    fn unread(&mut self, unread: &Unread<'_>);
    /// Whether to read on.
    fn wants_more(&self) -> bool;
}

/// Looks at the files, and sorts them by their first times.
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
    };
    let mut is_empty = true;
    let mut best = (0, None);
    for format in formats {
        let (read, first_us, seen) = look(path, &format)?;
        is_empty &= seen == 0;
        if read > best.0 {
            best = (read, first_us);
            source.format = format;
            source.first_us = first_us;
        }
    }
    if best.0 == 0 && !is_empty {
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

/// Reads the beginning of a file in a format: how many records are entries, the time of the first, and how many there are.
fn look(path: &Path, format: &Format) -> Result<(usize, Option<i64>, usize), LogError> {
    let mut records =
        Records::with_limit(files::open(path)?.content, format.framing(), LOOK_AT_BYTES);
    let mut zones = Zones::default();
    let (mut read, mut first_us, mut seen) = (0, None, 0);
    while seen < LOOK_AT_RECORDS {
        let Some(record) = records.next().map_err(LogError::io(path))? else {
            break;
        };
        seen += 1;
        let time_us = match format {
            Format::Json => json::parse(record.bytes, &mut zones)
                .ok()
                .map(|entry| entry.time_us),
            Format::Csv => csv::parse(record.bytes, &mut zones)
                .ok()
                .map(|entry| entry.time_us),
            Format::Plain(prefix) => match stderr::parse(record.bytes, prefix, &mut zones) {
                Ok(Parsed::Message(entry)) => Some(entry.time_us),
                _ => None,
            },
        };
        if time_us.is_some() {
            read += 1;
            first_us = first_us.or(time_us);
        } else if *format == Format::Csv {
            records.retry_from_second_line();
        }
    }
    Ok((read, first_us, seen))
}

/// Reads a file to its end. `keep_going` is asked now and then.
pub(crate) fn read(
    source: &Source,
    number: usize,
    zones: &mut Zones,
    entries: &mut impl Entries,
    keep_going: &mut dyn FnMut(u64) -> bool,
) -> Result<Content, LogError> {
    let mut records = Records::new(files::open(&source.path)?.content, source.format.framing());
    let mut content = Content::default();
    let mut held: Option<(Entry<'static>, Place)> = None;
    let mut count = 0_u64;
    loop {
        count += 1;
        if count.is_multiple_of(ASK_EVERY_RECORDS)
            && !(entries.wants_more() && keep_going(records.read_bytes))
        {
            return Err(LogError::Interrupted);
        }
        let Some(record) = records.next().map_err(LogError::io(&source.path))? else {
            break;
        };
        let place = Place {
            file: number,
            line: record.line,
        };
        let Record {
            bytes, is_too_long, ..
        } = record;
        if is_too_long {
            content.too_long += 1;
            hand_over(&mut held, entries); // what follows belongs to the one that is skipped
            entries.unread(&Unread {
                place,
                reason: None,
                beginning: bytes,
            });
            continue;
        }
        let parsed = match &source.format {
            Format::Json => json::parse(bytes, zones).map(Parsed::Message),
            Format::Csv => csv::parse(bytes, zones).map(Parsed::Message),
            Format::Plain(prefix) => stderr::parse(bytes, prefix, zones),
        };
        match parsed {
            Ok(Parsed::Message(entry)) => {
                content.entries += 1;
                content.first_us = content.first_us.or(Some(entry.time_us));
                content.last_us = content.last_us.max(Some(entry.time_us));
                if matches!(source.format, Format::Plain(_)) {
                    // What belongs to it follows.
                    hand_over(&mut held, entries);
                    held = Some((entry.into_owned(), place));
                } else {
                    entries.entry(&entry, place);
                }
            }
            Ok(Parsed::Further(further, session, text)) => {
                if let Some((entry, _)) = &mut held
                    && entry.session == session
                {
                    match further {
                        Further::Detail => entry.detail = text.into_owned().into(),
                        Further::Statement => entry.statement = text.into_owned().into(),
                        Further::Other => {}
                    }
                }
            }
            Err(_) if bytes.is_empty() => {}
            Err(reason) => {
                content.malformed += 1;
                hand_over(&mut held, entries);
                entries.unread(&Unread {
                    place,
                    reason: Some(reason),
                    beginning: bytes,
                });
                if source.format == Format::Csv {
                    records.retry_from_second_line();
                }
            }
        }
    }
    hand_over(&mut held, entries);
    content.content_bytes = records.read_bytes;
    Ok(content)
}

/// Gives an entry of a plain log away, to which nothing more belongs.
fn hand_over(held: &mut Option<(Entry<'static>, Place)>, entries: &mut impl Entries) {
    if let Some((entry, place)) = held.take() {
        entries.entry(&entry, place);
    }
}
