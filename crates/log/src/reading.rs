//! Reads the files of a log: passes its statements and sessions to a sink, and notes what the files contain.

use std::path::PathBuf;

use crate::assemble::Assembler;
use crate::entry::{Entry, Place};
use crate::error::LogError;
use crate::reader::{self, Content, Entries, Progress, Source, Unread};
use crate::statement::Sink;
use crate::timestamp::Zones;

/// How many different reasons are kept for records that are not entries.
const MAX_UNREAD_REASONS: usize = 100;
/// Longest part of a text that is shown.
const MAX_SHOWN_BYTES: usize = 2_000;

/// A log that is being read into a sink.
pub(crate) struct Reading<S> {
    assembler: Assembler,
    sink: S,
    log: Log,
}

/// What the files of a log contain apart from statements and sessions.
pub(crate) struct Log {
    pub(crate) sources: Vec<Source>,
    pub(crate) contents: Vec<Content>,
    pub(crate) zones: Zones,
    pub(crate) last_us: i64,
    pub(crate) steps_back: u64,
    pub(crate) has_fraction: bool,
    pub(crate) unread: Vec<(Option<String>, u64, Place, String)>,
}

impl<S: Sink> Reading<S> {
    /// Reads all files.
    pub(crate) fn of(
        files: &[PathBuf],
        prefix: Option<&str>,
        sink: S,
        keep_going: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Self, LogError> {
        let sources = reader::sources(files, prefix)?;
        let mut zones = Zones::default();
        let mut reading = Self {
            assembler: Assembler::default(),
            sink,
            log: Log {
                sources: Vec::new(),
                contents: Vec::new(),
                zones: Zones::default(),
                last_us: i64::MIN,
                steps_back: 0,
                has_fraction: false,
                unread: Vec::new(),
            },
        };
        let mut before_bytes = 0;
        for (number, source) in sources.iter().enumerate() {
            let mut ask = |read_bytes| {
                keep_going(Progress {
                    content_bytes: before_bytes + read_bytes,
                    file: number + 1,
                    files: sources.len(),
                })
            };
            let content = reader::read(source, number, &mut zones, &mut reading, &mut ask)?;
            before_bytes += content.content_bytes;
            reading.log.contents.push(content);
        }
        reading.assembler.finish(&mut reading.sink);
        reading.log.sources = sources;
        reading.log.zones = zones;
        Ok(reading)
    }

    pub(crate) fn finish(self) -> (Log, S) {
        (self.log, self.sink)
    }
}

impl<S: Sink> Entries for Reading<S> {
    fn entry(&mut self, entry: &Entry<'_>, place: Place) {
        let log = &mut self.log;
        log.has_fraction |= entry.time_us % 1_000_000 != 0;
        log.steps_back += u64::from(entry.time_us.saturating_add(1_000_000) < log.last_us);
        log.last_us = entry.time_us;
        self.assembler.entry(entry, place, &mut self.sink);
    }

    fn unread(&mut self, unread: &Unread<'_>) {
        let all = &mut self.log.unread;
        let known = all.iter().position(|(reason, ..)| *reason == unread.reason);
        if let Some(known) = known {
            all[known].1 += 1;
        } else if all.len() < MAX_UNREAD_REASONS {
            let beginning = shown(unread.beginning);
            all.push((unread.reason.clone(), 1, unread.place, beginning));
        }
    }

    fn wants_more(&self) -> bool {
        self.sink.wants_more()
    }
}

/// Returns the beginning of a text in any encoding.
pub(crate) fn shown(text: &[u8]) -> String {
    let cut = &text[..text.len().min(MAX_SHOWN_BYTES)];
    String::from_utf8_lossy(cut).into_owned()
}
