//! Reads replay files.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use super::{
    HAS_BEGINNING, HAS_DURATION, HAS_END, HAS_FAILED, HAS_OWN_TEXT, HAS_SQLSTATE, HEADER_BYTES,
    IS_EXTENDED, IS_PREPARED, MAGIC, VERSION,
};
use crate::varint;

/// No statement is longer: PostgreSQL takes messages of 1 GiB.
const MAX_RECORD_BYTES: u64 = 2 << 30;

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
    /// Its parameters, for [`parameters`]; None with the simple protocol.
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
