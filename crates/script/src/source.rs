//! The text of a script, and positions in it.

use std::cell::Cell;

use crate::error::ParseError;

/// The last offset whose line and column were computed. The next one mostly follows it, so that one pass over a script
/// is enough for all of them.
#[derive(Debug, Default)]
pub(crate) struct Tracker(Cell<(usize, usize, usize)>);

/// A script's name and text. Offsets are in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    /// The meta command being read, which error messages name.
    command: Option<&'a str>,
    tracker: &'a Tracker,
}

impl<'a> Source<'a> {
    pub(crate) fn new(name: &'a str, text: &'a str, tracker: &'a Tracker) -> Self {
        Self {
            name,
            text,
            command: None,
            tracker,
        }
    }

    /// The same source while a meta command is read.
    pub(crate) fn in_command(self, command: &'a str) -> Self {
        Self {
            command: Some(command),
            ..self
        }
    }

    /// The bytes from `offset` to the end.
    pub(crate) fn bytes_from(self, offset: usize) -> &'a [u8] {
        &self.text.as_bytes()[offset..]
    }

    /// The byte at `offset`; `None` at the end.
    pub(crate) fn byte(self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(offset).copied()
    }

    /// Line and column (in characters) of an offset, both counted from 1.
    pub(crate) fn position(self, offset: usize) -> (usize, usize) {
        let (mut start, mut line, mut column) = self.tracker.0.get();
        if offset < start || line == 0 {
            (start, line, column) = (0, 1, 1);
        }
        for &b in &self.text.as_bytes()[start..offset] {
            if b == b'\n' {
                line += 1;
                column = 1;
            } else {
                let is_character_start = !matches!(b, 0x80..=0xBF);
                column += usize::from(is_character_start);
            }
        }
        self.tracker.0.set((offset, line, column));
        (line, column)
    }

    /// Line of an offset, counted from 1.
    pub(crate) fn line(self, offset: usize) -> usize {
        self.position(offset).0
    }

    /// An error at an offset.
    pub(crate) fn error(self, offset: usize, message: impl Into<String>) -> ParseError {
        let (line, column) = self.position(offset);
        let mut message = message.into();
        if let Some(command) = self.command {
            message = format!("{message} in command \"{command}\"");
        }
        ParseError {
            file: self.name.to_owned(),
            line,
            column,
            message,
            hint: None,
            condition: None,
        }
    }

    /// The syntax error at an offset.
    pub(crate) fn syntax_error(self, offset: usize, hint: impl Into<String>) -> ParseError {
        self.error(offset, "syntax error").with_hint(hint)
    }
}

impl ParseError {
    /// Adds a hint to the error.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Marks the error as one of the script's conditions, found at this command, counted from 0.
    pub(crate) fn of_condition(mut self, command: usize) -> Self {
        self.condition = Some(command + 1);
        self
    }
}

/// Whether a variable's name may begin with this byte: ASCII letters, `_`, and every byte that is not ASCII.
pub(crate) fn is_name_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80
}

/// Whether a variable's name may contain this byte after the first.
pub(crate) fn is_name_part(b: u8) -> bool {
    is_name_start(b) || b.is_ascii_digit()
}

/// Whether `name` can be the name of a variable: letters, digits, underscores and all characters beyond ASCII, not
/// beginning with a digit.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(|&b| is_name_start(b)) && bytes.iter().all(|&b| is_name_part(b))
}

/// White space within a line of a meta command.
pub(crate) fn is_blank(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c')
}

/// White space between statements: C's `isspace()`.
pub(crate) fn is_space(b: u8) -> bool {
    is_blank(b) || b == b'\n'
}

/// Length of the line continuation (a backslash before the line's end) at the start of `bytes`; 0 if there is none.
pub(crate) fn continuation_length(bytes: &[u8]) -> usize {
    match bytes {
        [b'\\', b'\n', ..] => 2,
        [b'\\', b'\r', b'\n', ..] => 3,
        _ => 0,
    }
}

/// Longer words are not compared, since the time is proportional to the product of the lengths.
const LONGEST_COMPARED_BYTES: usize = 64;

/// "did you mean ...?" for the candidate most similar to `word`, if one is similar enough.
pub(crate) fn did_you_mean<'c>(
    word: &str,
    candidates: impl Iterator<Item = &'c str>,
    decorate: impl Fn(&str) -> String,
) -> Option<String> {
    let is_short = |word: &str| word.len() <= LONGEST_COMPARED_BYTES;
    if !is_short(word) {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .filter(|candidate| is_short(candidate))
        .map(|candidate| (strsim::damerau_levenshtein(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| format!("did you mean {}?", decorate(candidate)))
}
