//! The text of a script, and places in it.

use crate::error::ParseError;

/// A script's name and text. Places are byte offsets into the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

impl<'a> Source<'a> {
    /// The bytes from `offset` on.
    pub(crate) fn bytes_from(self, offset: usize) -> &'a [u8] {
        &self.text.as_bytes()[offset..]
    }

    /// The byte at `offset`; `None` at the end.
    pub(crate) fn byte(self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(offset).copied()
    }

    /// Line and column (in characters) of a place, both from 1.
    pub(crate) fn position(self, offset: usize) -> (usize, usize) {
        let before = &self.text.as_bytes()[..offset];
        let line_start = before
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |newline| newline + 1);
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        let is_character_start = |b: &&u8| !matches!(**b, 0x80..=0xBF);
        let column = 1 + before[line_start..]
            .iter()
            .filter(is_character_start)
            .count();
        (line, column)
    }

    /// Line of a place, from 1.
    pub(crate) fn line(self, offset: usize) -> usize {
        self.position(offset).0
    }

    /// An error at a place.
    pub(crate) fn error(self, offset: usize, message: impl Into<String>) -> ParseError {
        let (line, column) = self.position(offset);
        ParseError {
            file: self.name.to_owned(),
            line,
            column,
            message: message.into(),
            hint: None,
        }
    }
}

impl ParseError {
    /// The error with a hint.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Whether a variable's name may begin with this byte: letters, `_`, and all of other alphabets.
pub(crate) fn is_name_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80
}

/// Whether a variable's name may go on with this byte.
pub(crate) fn is_name_part(b: u8) -> bool {
    is_name_start(b) || b.is_ascii_digit()
}

/// Whether `name` can be a variable's.
pub(crate) fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(|&b| is_name_start(b)) && bytes.iter().all(|&b| is_name_part(b))
}

/// White space within a line of a meta command.
pub(crate) fn is_blank(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c')
}

/// White space between statements: C's isspace().
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

/// "did you mean ...?" for the candidate nearest to `word`, if one is near.
pub(crate) fn did_you_mean<'c>(
    word: &str,
    candidates: impl Iterator<Item = &'c str>,
    decorate: impl Fn(&str) -> String,
) -> Option<String> {
    let word = word.to_ascii_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| format!("did you mean {}?", decorate(candidate)))
}
