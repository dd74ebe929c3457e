//! Writes a replay file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use super::{
    HAS_BEGINNING, HAS_DURATION, HAS_END, HAS_FAILED, HAS_OWN_TEXT, HAS_SQLSTATE, HEADER_BYTES,
    IS_EXTENDED, IS_PREPARED, MAGIC, VERSION,
};
use crate::classifier::Classified;
use crate::entry::Bytes;
use crate::sorted::{Key, Sorter};
use crate::spans::most_at_once;
use crate::statement::{Form, Statement};
use crate::varint;

/// How many bytes of texts are kept once each; further texts stand in their records.
const MAX_TEXTS_BYTES: usize = 64 << 20;
/// A text that is longer is hardly sent twice.
pub(super) const MAX_TEXT_BYTES: usize = 64 << 10;
/// How many classes there are, the last of which is that of all further statements.
const MAX_CLASSES: usize = 50_000;
/// How much is kept of the text of a class.
const MAX_CLASS_BYTES: usize = 10_000;
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
    pub(super) sessions: u64,
    /// The most at one time.
    sessions_at_once: u64,
    texts: u64,
    classes: u64,
    pub(super) size_bytes: u64,
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
    /// Returns the number of a text; None if the text is new and there is no room for it.
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
