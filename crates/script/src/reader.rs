//! The words of a meta command.

use crate::error::ParseError;
use crate::source::{Source, continuation_length, is_blank};
use crate::variables::{Read, Symbols};

/// A word of a meta command, and where it begins.
#[derive(Clone, Copy)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    pub(crate) start: usize,
}

/// Reads the words of a meta command.
pub(crate) struct Reader<'a, 'p> {
    pub(crate) source: Source<'a>,
    /// The position at which reading continues.
    pub(crate) offset: usize,
    pub(crate) symbols: &'p mut Symbols,
    /// The places of the script where a variable is read.
    pub(crate) reads: &'p mut Vec<Read>,
    /// The first name of the script that no variable can have.
    pub(crate) invalid_name: &'p mut Option<ParseError>,
}

impl<'a> Reader<'a, '_> {
    /// The next word before the end of the line.
    pub(crate) fn word(&mut self) -> Option<Word<'a>> {
        let source = self.source;
        let continues = |at: usize| continuation_length(source.bytes_from(at));
        loop {
            let skipped = match source.byte(self.offset)? {
                b'\n' => return None,
                b if is_blank(b) => 1,
                _ => continues(self.offset),
            };
            if skipped == 0 {
                break;
            }
            self.offset += skipped;
        }
        let start = self.offset;
        while source
            .byte(self.offset)
            .is_some_and(|b| !is_blank(b) && b != b'\n')
            && continues(self.offset) == 0
        {
            self.offset += 1;
        }
        Some(Word {
            text: &source.text[start..self.offset],
            start,
        })
    }

    /// Slot of a variable that is read at `start`.
    pub(crate) fn read(&mut self, name: &str, start: usize) -> usize {
        let slot = self.symbols.slot(name);
        let (line, column) = self.source.position(start);
        self.reads.push(Read {
            slot,
            line,
            column,
            in_sql: false,
        });
        slot
    }

    /// The error of a command that ends too early.
    pub(crate) fn missing(&self, message: &str, usage: &str) -> ParseError {
        self.source
            .error(self.offset, message)
            .with_hint(format!("write {usage}"))
    }

    /// The error of a surplus word.
    pub(crate) fn too_many(&self, extra: Word<'_>, usage: &str) -> ParseError {
        self.source
            .error(extra.start, "too many arguments")
            .with_hint(format!("write {usage}"))
    }
}
