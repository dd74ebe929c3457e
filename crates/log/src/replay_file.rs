//! The replay file: the statements of a log that can be replayed, in the order of time.
//!
//! A header of 64 bytes, little-endian: the magic `PLINTHRP`, the version (4 bytes), 4 bytes of zeros, the time of the
//! beginning in microseconds since 1970, then the length of the recording in microseconds, the number of statements, the
//! number of sessions, where the tables begin, and the size of the file (8 bytes each).
//!
//! Then a record for each statement, each after its length. Numbers are LEB128 ([`crate::varint`]), times are microseconds:
//! time since the record before it, session, flags (a byte), duration if it is known, SQLSTATE (5 bytes) if the statement
//! failed and the log says how, number of the text or, with a flag, class and text; of the extended protocol the number of
//! parameters and of each its length plus 1 and its bytes, 0 for NULL.
//!
//! Then the tables, each after its length: classes (text, statements, statements with a duration, durations in all), texts
//! (class, text), names, and sessions (statements, numbers of the names of user, database and application, beginning, length,
//! flags).

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use crate::assemble::{Form, Statement};
use crate::classifier::Classified;
use crate::entry::Bytes;
use crate::sorted::{Key, Sorter};
use crate::varint;

const MAGIC: &[u8; 8] = b"PLINTHRP";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 64;

/// How many bytes of texts are kept once each; further texts stand in their records.
const MAX_TEXTS_BYTES: usize = 64 << 20;
/// A text that is longer is hardly sent twice.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// How many classes there are, the last of which is that of all further statements.
const MAX_CLASSES: usize = 50_000;
/// How much is kept of the text of a class.
const MAX_CLASS_BYTES: usize = 10_000;
/// No statement is longer: PostgreSQL takes messages of 1 GiB.
const MAX_RECORD_BYTES: u64 = 2 << 30;

const IS_EXTENDED: u8 = 1;
const IS_PREPARED: u8 = 2;
const HAS_DURATION: u8 = 4;
const HAS_FAILED: u8 = 8;
const HAS_SQLSTATE: u8 = 16;
const HAS_OWN_TEXT: u8 = 32;

const HAS_BEGINNING: u8 = 1;
const HAS_END: u8 = 2;

/// Makes a replay file.
pub(crate) struct Writer {
    sorter: Sorter,
    texts: Interned,
    /// By text: its class.
    classes_of_texts: Vec<u32>,
    names: Interned,
    classes: Vec<ClassRow>,
    /// By the hash of its text.
    class_numbers: HashMap<u64, u32>,
    sessions: Vec<Option<SessionRow>>,
    statements: u64,
    record: Vec<u8>,
}

struct ClassRow {
    text: Vec<u8>,
    statements: u64,
    with_duration: u64,
    duration_us: u64,
}

struct SessionRow {
    statements: u64,
    names: [u64; 3],
    first_us: i64,
    last_us: i64,
    /// When its latest statement began.
    last_start_us: i64,
    flags: u8,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Written {
    pub(crate) statements: u64,
    sessions: u64,
    /// The most at one time.
    sessions_at_once: u64,
    texts: u64,
    classes: u64,
    size_bytes: u64,
    /// From the first to the last moment of a session.
    span_us: u64,
}

impl Writer {
    /// `folder` is where temporary files are.
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            sorter: Sorter::new(folder),
            texts: Interned::default(),
            classes_of_texts: Vec::new(),
            names: Interned::default(),
            classes: Vec::new(),
            class_numbers: HashMap::new(),
            sessions: Vec::new(),
            statements: 0,
            record: Vec::new(),
        }
    }

    /// Takes a statement that can be replayed; without `parameters`, by the simple protocol.
    pub(crate) fn statement(
        &mut self,
        statement: &Statement<'_>,
        class: &Classified,
        parameters: Option<&[Option<Bytes<'_>>]>,
    ) -> io::Result<()> {
        let class = self.class(class);
        let row = &mut self.classes[class as usize];
        row.statements += 1;
        row.with_duration += u64::from(statement.duration_us.is_some());
        row.duration_us = row
            .duration_us
            .saturating_add(statement.duration_us.unwrap_or(0));
        let text = (statement.text.len() <= MAX_TEXT_BYTES)
            .then(|| self.texts.number(statement.text, MAX_TEXTS_BYTES))
            .flatten();
        if self.classes_of_texts.len() < self.texts.all.len() {
            self.classes_of_texts.push(class);
        }
        let record = &mut self.record;
        record.clear();
        let flags = [
            (parameters.is_some(), IS_EXTENDED),
            (statement.form == Form::Prepared, IS_PREPARED),
            (statement.duration_us.is_some(), HAS_DURATION),
            (statement.has_failed, HAS_FAILED),
            (statement.sqlstate.is_some(), HAS_SQLSTATE),
            (text.is_none(), HAS_OWN_TEXT),
        ];
        record.push(flags.iter().filter(|flag| flag.0).map(|flag| flag.1).sum());
        if let Some(duration_us) = statement.duration_us {
            varint::put(record, duration_us);
        }
        if let Some(code) = statement.sqlstate {
            record.extend_from_slice(&code);
        }
        match text {
            Some(number) => varint::put(record, number),
            None => {
                varint::put(record, u64::from(class));
                varint::put_bytes(record, statement.text);
            }
        }
        if let Some(parameters) = parameters {
            varint::put(record, parameters.len() as u64);
            for parameter in parameters {
                match parameter {
                    None => varint::put(record, 0),
                    Some(value) => {
                        varint::put(record, value.len() as u64 + 1);
                        record.extend_from_slice(value);
                    }
                }
            }
        }
        let key = Key {
            start_us: self.session(statement),
            session: statement.session.number,
            number: self.statements,
        };
        self.statements += 1;
        self.sorter.push(key, &self.record)
    }

    fn class(&mut self, class: &Classified) -> u32 {
        if let Some(&number) = self.class_numbers.get(&class.hash) {
            return number;
        }
        let number = self.classes.len().min(MAX_CLASSES - 1);
        let text = &class.normalised.text;
        if number == self.classes.len() {
            let is_last = number == MAX_CLASSES - 1;
            let text = if is_last {
                &b"(further statements)"[..]
            } else {
                text
            };
            self.classes.push(ClassRow {
                text: text[..text.len().min(MAX_CLASS_BYTES)].to_vec(),
                statements: 0,
                with_duration: 0,
                duration_us: 0,
            });
            if !is_last {
                self.class_numbers.insert(class.hash, number as u32);
            }
        }
        number as u32
    }

    /// Notes the session of a statement. Returns when the statement began, which is not before the one before it of the same
    /// session: times of a log have milliseconds, durations microseconds.
    fn session(&mut self, statement: &Statement<'_>) -> i64 {
        let facts = statement.session;
        let number = facts.number as usize;
        if self.sessions.len() <= number {
            self.sessions.resize_with(number + 1, || None);
        }
        let duration_us = statement.duration_us.unwrap_or(0).try_into().unwrap_or(0);
        let end_us = statement.start_us.saturating_add(duration_us);
        let row = self.sessions[number].get_or_insert_with(|| {
            let mut name = |text: &[u8]| self.names.number(text, usize::MAX).unwrap_or_default();
            SessionRow {
                statements: 0,
                names: [&facts.user, &facts.database, &facts.application].map(|one| name(one)),
                first_us: statement.start_us,
                last_us: end_us,
                last_start_us: statement.start_us,
                flags: 0,
            }
        });
        row.statements += 1;
        row.last_start_us = row.last_start_us.max(statement.start_us);
        row.last_us = row.last_us.max(end_us).max(row.last_start_us);
        row.last_start_us
    }

    /// Sets when a session with statements was opened, and closed.
    pub(crate) fn session_span(
        &mut self,
        number: u32,
        opened_us: Option<i64>,
        closed_us: Option<i64>,
    ) {
        let Some(Some(row)) = self.sessions.get_mut(number as usize) else {
            return;
        };
        if let Some(opened_us) = opened_us {
            row.first_us = row.first_us.min(opened_us);
            row.flags |= HAS_BEGINNING;
        }
        if let Some(closed_us) = closed_us {
            row.last_us = row.last_us.max(closed_us);
            row.flags |= HAS_END;
        }
    }

    /// Writes the file.
    pub(crate) fn finish(self, file: &File) -> io::Result<Written> {
        let rows = || self.sessions.iter().flatten();
        let first_us = rows().map(|row| row.first_us).min().unwrap_or_default();
        let last_us = rows().map(|row| row.last_us).max().unwrap_or_default();
        let sessions = rows().count() as u64;
        // Sessions without statements are left out.
        let mut numbers = Vec::with_capacity(self.sessions.len());
        let mut next = 0_u64;
        for row in &self.sessions {
            numbers.push(next);
            next += u64::from(row.is_some());
        }

        let mut out = BufWriter::with_capacity(1 << 20, file);
        out.write_all(&[0; HEADER_BYTES])?;
        let mut at = HEADER_BYTES as u64;
        let mut before_us = first_us;
        let (mut head, mut body) = (Vec::new(), Vec::new());
        self.sorter.merge(|key, record| {
            body.clear();
            varint::put(
                &mut body,
                key.start_us.saturating_sub(before_us).max(0) as u64,
            );
            before_us = before_us.max(key.start_us);
            varint::put(&mut body, numbers[key.session as usize]);
            head.clear();
            varint::put(&mut head, (body.len() + record.len()) as u64);
            for part in [&head[..], &body, record] {
                out.write_all(part)?;
                at += part.len() as u64;
            }
            Ok(())
        })?;

        let tables_at = at;
        let mut tables = Vec::new();
        varint::put(&mut tables, self.classes.len() as u64);
        for class in &self.classes {
            varint::put_bytes(&mut tables, &class.text);
            for number in [class.statements, class.with_duration, class.duration_us] {
                varint::put(&mut tables, number);
            }
        }
        varint::put(&mut tables, self.texts.all.len() as u64);
        for (text, class) in self.texts.all.iter().zip(&self.classes_of_texts) {
            varint::put(&mut tables, u64::from(*class));
            varint::put_bytes(&mut tables, text);
        }
        varint::put(&mut tables, self.names.all.len() as u64);
        for name in &self.names.all {
            varint::put_bytes(&mut tables, name);
        }
        varint::put(&mut tables, sessions);
        for row in self.sessions.iter().flatten() {
            varint::put(&mut tables, row.statements);
            for name in row.names {
                varint::put(&mut tables, name);
            }
            varint::put(&mut tables, row.first_us.abs_diff(first_us));
            varint::put(&mut tables, row.last_us.abs_diff(row.first_us));
            tables.push(row.flags);
        }
        out.write_all(&tables)?;
        let size_bytes = at + tables.len() as u64;

        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(&0_u32.to_le_bytes());
        header.extend_from_slice(&first_us.to_le_bytes());
        let span_us = last_us.abs_diff(first_us);
        for number in [span_us, self.statements, sessions, tables_at, size_bytes] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&header)?;
        out.flush()?;
        file.sync_all()?;
        let spans: Vec<(u64, u64)> = self
            .sessions
            .iter()
            .flatten()
            .map(|row| {
                (
                    row.first_us.abs_diff(first_us),
                    row.last_us.abs_diff(first_us),
                )
            })
            .collect();
        Ok(Written {
            statements: self.statements,
            sessions,
            sessions_at_once: most_at_once(spans.iter().copied()),
            texts: self.texts.all.len() as u64,
            classes: self.classes.len() as u64,
            size_bytes,
            span_us,
        })
    }
}

/// Texts that are kept once.
#[derive(Default)]
struct Interned {
    numbers: HashMap<Vec<u8>, u64>,
    all: Vec<Vec<u8>>,
    bytes: usize,
}

impl Interned {
    /// Returns the number of a text; None of a new one for which there is no room.
    fn number(&mut self, text: &[u8], max_bytes: usize) -> Option<u64> {
        if let Some(&number) = self.numbers.get(text) {
            return Some(number);
        }
        if self.bytes.saturating_add(text.len()) > max_bytes {
            return None;
        }
        self.bytes += text.len();
        let number = self.all.len() as u64;
        self.numbers.insert(text.to_vec(), number);
        self.all.push(text.to_vec());
        Some(number)
    }
}

/// Counts how many spans, from first to last moment, overlap at most.
pub fn most_at_once<T: Ord + Copy>(spans: impl Iterator<Item = (T, T)>) -> u64 {
    let mut events: Vec<(T, bool)> = spans
        .flat_map(|(first, last)| [(first, false), (last, true)])
        .collect();
    events.sort_unstable(); // what begins when another ends is there at the same time
    let (mut now, mut most) = (0_u64, 0);
    for (_, is_end) in events {
        if is_end {
            now -= 1;
        } else {
            now += 1;
            most = most.max(now);
        }
    }
    most
}

/// Why a file is no replay file.
#[derive(Debug, thiserror::Error)]
pub enum ReplayFileError {
    /// The system said no.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is another kind of file, or damaged.
    #[error("{0}")]
    Malformed(&'static str),
}

const NO_REPLAY_FILE: ReplayFileError =
    ReplayFileError::Malformed("it is no replay file, which `plinth replay prepare` makes");
const OTHER_VERSION: ReplayFileError =
    ReplayFileError::Malformed("it was made by another version: prepare it again");
const CUT_OFF: ReplayFileError = ReplayFileError::Malformed("it is cut off: prepare it again");
const DAMAGED: ReplayFileError = ReplayFileError::Malformed("it is damaged: prepare it again");

/// A replay file but for its statements.
#[derive(Debug)]
pub struct ReplayFile {
    file: File,
    tables_at: u64,
    /// Beginning of the recording, in microseconds since 1970.
    pub first_us: i64,
    /// From the first to the last moment of a session.
    pub span_us: u64,
    /// How many statements it has.
    pub statements: u64,
    /// Classes of statements.
    pub classes: Vec<RecordedClass>,
    /// Texts that several statements may have.
    pub texts: Vec<RecordedText>,
    /// Sessions, by number.
    pub sessions: Vec<RecordedSession>,
}

/// A class of statements: those whose texts differ in constants only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedClass {
    /// The text without constants, of any encoding.
    pub text: Vec<u8>,
    /// How many statements it has.
    pub statements: u64,
    /// And how many whose duration is known.
    pub with_duration: u64,
    /// Their durations in all.
    pub duration_us: u64,
}

/// The text of statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedText {
    /// Its class.
    pub class: u32,
    /// The text.
    pub text: Vec<u8>,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedSession {
    /// How many statements it has; at least one.
    pub statements: u64,
    /// Its user; empty if the log does not say.
    pub user: Arc<[u8]>,
    /// Its database, likewise.
    pub database: Arc<[u8]>,
    /// Its application, likewise.
    pub application: Arc<[u8]>,
    /// When it was opened, or its first statement began, since the beginning of the recording.
    pub first_us: u64,
    /// When it was closed, or its last statement ended.
    pub last_us: u64,
    /// Whether its opening was recorded.
    pub has_beginning: bool,
    /// Whether its closing was recorded.
    pub has_end: bool,
}

/// A statement as it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedStatement<'a> {
    /// When it began, since the beginning of the recording.
    pub start_us: u64,
    /// Its session.
    pub session: u32,
    /// Its class.
    pub class: u32,
    /// Number of its text; None if it has one of its own.
    pub text_number: Option<u32>,
    /// Its text.
    pub text: &'a [u8],
    /// How long it took, if that is known.
    pub duration_us: Option<u64>,
    /// Whether it failed.
    pub has_failed: bool,
    /// The code of its error, if the log has it.
    pub sqlstate: Option<[u8; 5]>,
    /// Whether it was an execution of a prepared statement with a name.
    pub is_prepared: bool,
    /// Its parameters, for [`parameters`]; None of the simple protocol.
    pub parameters: Option<(u16, &'a [u8])>,
}

impl ReplayFile {
    /// Opens a file and reads its tables.
    pub fn open(path: &Path) -> Result<Self, ReplayFileError> {
        let mut file = File::open(path)?;
        let mut header = [0; HEADER_BYTES];
        match file.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(NO_REPLAY_FILE);
            }
            read => read?,
        }
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&header[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        if header[..8] != *MAGIC {
            return Err(NO_REPLAY_FILE);
        }
        if header[8..12] != VERSION.to_le_bytes() {
            return Err(OTHER_VERSION);
        }
        let (tables_at, size_bytes) = (number(48), number(56));
        if file.metadata()?.len() != size_bytes {
            return Err(CUT_OFF);
        }
        if !(HEADER_BYTES as u64..=size_bytes).contains(&tables_at) {
            return Err(DAMAGED);
        }
        file.seek(SeekFrom::Start(tables_at))?;
        let mut tables = Vec::new();
        file.read_to_end(&mut tables)?;
        let mut replay = Self {
            file,
            tables_at,
            first_us: number(16) as i64,
            span_us: number(24),
            statements: number(32),
            classes: Vec::new(),
            texts: Vec::new(),
            sessions: Vec::new(),
        };
        replay.read_tables(&tables).ok_or(DAMAGED)?;
        if replay.sessions.len() as u64 != number(40) {
            return Err(DAMAGED);
        }
        Ok(replay)
    }

    fn read_tables(&mut self, mut tables: &[u8]) -> Option<()> {
        let data = &mut tables;
        for _ in 0..varint::take(data)? {
            self.classes.push(RecordedClass {
                text: varint::take_bytes(data)?.to_vec(),
                statements: varint::take(data)?,
                with_duration: varint::take(data)?,
                duration_us: varint::take(data)?,
            });
        }
        for _ in 0..varint::take(data)? {
            let class = u32::try_from(varint::take(data)?).ok()?;
            self.classes.get(class as usize)?;
            self.texts.push(RecordedText {
                class,
                text: varint::take_bytes(data)?.to_vec(),
            });
        }
        let mut names: Vec<Arc<[u8]>> = Vec::new();
        for _ in 0..varint::take(data)? {
            names.push(varint::take_bytes(data)?.into());
        }
        for _ in 0..varint::take(data)? {
            let statements = varint::take(data)?;
            let mut name = || {
                let number = usize::try_from(varint::take(data)?).ok()?;
                names.get(number).cloned()
            };
            let (user, database, application) = (name()?, name()?, name()?);
            let first_us = varint::take(data)?;
            let last_us = first_us.checked_add(varint::take(data)?)?;
            let (&flags, rest) = data.split_first()?;
            *data = rest;
            self.sessions.push(RecordedSession {
                statements,
                user,
                database,
                application,
                first_us,
                last_us,
                has_beginning: flags & HAS_BEGINNING > 0,
                has_end: flags & HAS_END > 0,
            });
        }
        data.is_empty().then_some(())
    }

    /// Its statements, in the order of time.
    pub fn statements(&self) -> Result<Statements, ReplayFileError> {
        let mut file = self.file.try_clone()?;
        // Positions are shared by clones: a file of its own for each reader.
        file = reopened(&file)?;
        file.seek(SeekFrom::Start(HEADER_BYTES as u64))?;
        Ok(Statements {
            file: BufReader::with_capacity(256 << 10, file),
            left_bytes: self.tables_at - HEADER_BYTES as u64,
            record: Vec::new(),
            now_us: 0,
        })
    }
}

/// Opens a file once more, whether or not it still has a name.
fn reopened(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Reads the statements of a replay file.
#[derive(Debug)]
pub struct Statements {
    file: BufReader<File>,
    left_bytes: u64,
    record: Vec<u8>,
    now_us: u64,
}

impl Statements {
    /// Returns the next statement; None at the end. `of` is the file that it is of.
    pub fn next<'a>(
        &'a mut self,
        of: &'a ReplayFile,
    ) -> Result<Option<RecordedStatement<'a>>, ReplayFileError> {
        if self.left_bytes == 0 {
            return Ok(None);
        }
        let length = self.length()?;
        self.record.resize(length, 0);
        self.file.read_exact(&mut self.record)?;
        self.left_bytes -= length as u64;
        let statement = read_record(&self.record, of, self.now_us).ok_or(DAMAGED)?;
        self.now_us = statement.start_us;
        Ok(Some(statement))
    }

    fn length(&mut self) -> Result<usize, ReplayFileError> {
        let mut length = 0_u64;
        for shift in (0..63).step_by(7) {
            let mut byte = [0];
            self.file.read_exact(&mut byte)?;
            self.left_bytes = self.left_bytes.checked_sub(1).ok_or(DAMAGED)?;
            length |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                if length > self.left_bytes.min(MAX_RECORD_BYTES) {
                    return Err(DAMAGED);
                }
                return usize::try_from(length).map_err(|_| DAMAGED);
            }
        }
        Err(DAMAGED)
    }
}

fn read_record<'a>(
    record: &'a [u8],
    of: &'a ReplayFile,
    before_us: u64,
) -> Option<RecordedStatement<'a>> {
    let mut data = record;
    let data = &mut data;
    let start_us = before_us.checked_add(varint::take(data)?)?;
    let session = u32::try_from(varint::take(data)?).ok()?;
    of.sessions.get(session as usize)?;
    let (&flags, rest) = data.split_first()?;
    *data = rest;
    let duration_us = match flags & HAS_DURATION {
        0 => None,
        _ => Some(varint::take(data)?),
    };
    let sqlstate = match flags & HAS_SQLSTATE {
        0 => None,
        _ => {
            let (code, rest) = data.split_first_chunk::<5>()?;
            *data = rest;
            Some(*code)
        }
    };
    let (text_number, class, text) = if flags & HAS_OWN_TEXT > 0 {
        let class = u32::try_from(varint::take(data)?).ok()?;
        of.classes.get(class as usize)?;
        (None, class, varint::take_bytes(data)?)
    } else {
        let number = u32::try_from(varint::take(data)?).ok()?;
        let text = of.texts.get(number as usize)?;
        (Some(number), text.class, &text.text[..])
    };
    let parameters = match flags & IS_EXTENDED {
        0 => None,
        _ => {
            let count = u16::try_from(varint::take(data)?).ok()?;
            let bytes = *data;
            for _ in 0..count {
                take_parameter(data)?;
            }
            Some((count, &bytes[..bytes.len() - data.len()]))
        }
    };
    data.is_empty().then_some(RecordedStatement {
        start_us,
        session,
        class,
        text_number,
        text,
        duration_us,
        has_failed: flags & HAS_FAILED > 0,
        sqlstate,
        is_prepared: flags & IS_PREPARED > 0,
        parameters,
    })
}

#[expect(
    clippy::option_option,
    reason = "a parameter may be NULL, and may be cut off"
)]
fn take_parameter<'a>(data: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let Some(length) = varint::take(data)?.checked_sub(1) else {
        return Some(None);
    };
    let (value, rest) = data.split_at_checked(usize::try_from(length).ok()?)?;
    *data = rest;
    Some(Some(value))
}

/// The parameters of a statement, of [`RecordedStatement::parameters`]; None is NULL.
pub fn parameters(mut bytes: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            None
        } else {
            take_parameter(&mut bytes)
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::assemble::{Place, SessionFacts};
    use crate::classifier::Classifier;

    #[derive(Clone, Debug, PartialEq)]
    struct Case {
        session: u32,
        start_us: i64,
        duration_us: Option<u64>,
        text: Vec<u8>,
        form: Form,
        parameters: Vec<Option<Vec<u8>>>,
        code: Option<[u8; 5]>,
    }

    fn written(cases: &[Case]) -> (tempfile::NamedTempFile, Written) {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::new(folder.path());
        let mut classifier = Classifier::default();
        for case in cases {
            let facts = SessionFacts {
                number: case.session,
                user: b"app".to_vec(),
                ..SessionFacts::default()
            };
            let parameters: Vec<Option<Bytes<'_>>> = case
                .parameters
                .iter()
                .map(|one| one.as_deref().map(Bytes::Borrowed))
                .collect();
            let class = classifier.classify(&case.text);
            let statement = Statement {
                session: &facts,
                start_us: case.start_us,
                duration_us: case.duration_us,
                form: case.form,
                text: &case.text,
                detail: b"",
                has_failed: case.code.is_some(),
                sqlstate: case.code,
                place: Place::default(),
                end_is_known: true,
            };
            let parameters = (case.form != Form::Simple).then_some(&parameters[..]);
            writer.statement(&statement, &class, parameters).unwrap();
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let written = writer.finish(file.as_file()).unwrap();
        (file, written)
    }

    fn read(path: &Path) -> Result<Vec<Case>, ReplayFileError> {
        let replay = ReplayFile::open(path)?;
        let mut statements = replay.statements()?;
        let mut cases = Vec::new();
        while let Some(one) = statements.next(&replay)? {
            let normalised = crate::normalise::normalise(one.text).text;
            assert!(normalised.starts_with(&replay.classes[one.class as usize].text));
            let bytes = one.parameters.map_or(&b""[..], |(_, bytes)| bytes);
            cases.push(Case {
                session: one.session,
                start_us: one.start_us as i64 + replay.first_us,
                duration_us: one.duration_us,
                text: one.text.to_vec(),
                form: match (one.parameters, one.is_prepared) {
                    (None, _) => Form::Simple,
                    (_, false) => Form::Extended,
                    (_, true) => Form::Prepared,
                },
                parameters: parameters(bytes)
                    .map(|one| one.map(<[u8]>::to_vec))
                    .collect(),
                code: one.sqlstate,
            });
        }
        Ok(cases)
    }

    fn any_case() -> impl Strategy<Value = Case> {
        let text = prop_oneof![
            Just(b"SELECT 1".to_vec()),
            Just(b"UPDATE t SET a = 5".to_vec()),
            Just(vec![b'x'; MAX_TEXT_BYTES + 1]),
            Just(vec![0xff, b'\'', 0x80]),
        ];
        let form = prop_oneof![
            Just(Form::Simple),
            Just(Form::Extended),
            Just(Form::Prepared)
        ];
        let values = proptest::collection::vec(
            proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200)),
            0..4,
        );
        (
            0_u32..4,
            -5_000_000_i64..5_000_000,
            proptest::option::of(0_u64..9_000_000),
            text,
            form,
            values,
            proptest::option::of(Just(*b"40001")),
        )
            .prop_map(
                |(session, start_us, duration_us, text, form, values, code)| Case {
                    session,
                    start_us,
                    duration_us,
                    text,
                    parameters: if form == Form::Simple {
                        Vec::new()
                    } else {
                        values
                    },
                    form,
                    code,
                },
            )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn statements_come_back_in_the_order_of_time(cases in proptest::collection::vec(any_case(), 0..30)) {
            let (file, written) = written(&cases);
            let mut expected = cases.clone();
            // Statements of a session keep their order.
            let mut latest = HashMap::new();
            for case in &mut expected {
                let latest_us = latest.entry(case.session).or_insert(case.start_us);
                *latest_us = case.start_us.max(*latest_us);
                case.start_us = *latest_us;
            }
            expected.sort_by_key(|case| (case.start_us, case.session));
            // Sessions without statements are left out, the others keep their order.
            let mut sessions: Vec<u32> = cases.iter().map(|case| case.session).collect();
            sessions.sort_unstable();
            sessions.dedup();
            for case in &mut expected {
                case.session = sessions.iter().position(|one| *one == case.session).unwrap() as u32;
            }
            prop_assert_eq!(read(file.path()).unwrap(), expected);
            prop_assert_eq!(written.sessions, sessions.len() as u64);
            prop_assert_eq!(written.size_bytes, file.as_file().metadata().unwrap().len());
        }

        #[test]
        fn a_damaged_file_is_refused_or_read(
            cases in proptest::collection::vec(any_case(), 1..5),
            at in any::<proptest::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<bool>(),
        ) {
            let (file, _) = written(&cases);
            let mut bytes = std::fs::read(file.path()).unwrap();
            let at = at.index(bytes.len());
            if cut {
                bytes.truncate(at);
            } else {
                bytes[at] = byte;
            }
            std::fs::write(file.path(), &bytes).unwrap();
            let opened = ReplayFile::open(file.path());
            prop_assert!(!cut || opened.is_err());
            if let Ok(replay) = opened {
                let mut statements = replay.statements().unwrap();
                while let Ok(Some(one)) = statements.next(&replay) {
                    if let Some((count, bytes)) = one.parameters {
                        prop_assert_eq!(parameters(bytes).count(), usize::from(count));
                    }
                }
            }
        }
    }

    #[test]
    fn two_readers_do_not_disturb_each_other() {
        let case = Case {
            session: 0,
            start_us: 5,
            duration_us: Some(7),
            text: b"SELECT 1".to_vec(),
            form: Form::Simple,
            parameters: Vec::new(),
            code: None,
        };
        let (file, _) = written(&[case.clone(), case]);
        let replay = ReplayFile::open(file.path()).unwrap();
        let (mut a, mut b) = (replay.statements().unwrap(), replay.statements().unwrap());
        for _ in 0..2 {
            assert!(a.next(&replay).unwrap().is_some());
            assert!(b.next(&replay).unwrap().is_some());
        }
        assert!(a.next(&replay).unwrap().is_none() && b.next(&replay).unwrap().is_none());
    }

    #[test]
    fn spans_that_touch_overlap() {
        let spans = [(0, 10), (5, 6), (6, 7), (11, 12)];
        assert_eq!(most_at_once(spans.into_iter()), 3);
        assert_eq!(most_at_once(std::iter::empty::<(i64, i64)>()), 0);
    }
}
