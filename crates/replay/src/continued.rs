//! Whether a line of a plain log that looks like an entry may be a line of the statement before it: within a string, a quoted name
//! or a comment any line can stand, and some collectors take away the tab that tells it from an entry.

use memchr::{memchr, memmem};

use crate::normalise::{after_comment, after_line, after_quotes, after_string, is_of_name};

/// In what a text ends that goes on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Within {
    #[default]
    Nothing,
    /// A string, and whether a backslash escapes in it.
    String(bool),
    QuotedName,
    /// As many comments.
    Comment(usize),
    /// A string between these marks: `$$` or `$tag$`.
    Dollars(Vec<u8>),
}

impl Within {
    /// Returns in what it ends after more of the text.
    pub(crate) fn after(self, text: &[u8]) -> Self {
        let rest = match &self {
            Self::Nothing => Some(text),
            Self::String(has_backslashes) => after_string(text, *has_backslashes),
            Self::QuotedName => after_quotes(text),
            Self::Comment(depth) => match after_comment(text, *depth) {
                Ok(rest) => Some(rest),
                Err(depth) => return Self::Comment(depth),
            },
            Self::Dollars(marks) => after_dollars(text, marks),
        };
        match rest {
            Some(rest) => Self::of(rest),
            None => self,
        }
    }

    /// Returns in what a text ends that begins in nothing.
    fn of(text: &[u8]) -> Self {
        let mut at = 0;
        let is_mark = |byte: &u8| matches!(byte, b'\'' | b'"' | b'$' | b'-' | b'/');
        while let Some(found) = text[at..].iter().position(is_mark) {
            at += found;
            let rest = &text[at..];
            let after = match rest {
                [b'\'', string @ ..] => {
                    let has_backslashes = has_backslashes(&text[..at]);
                    match after_string(string, has_backslashes) {
                        Some(after) => after,
                        None => return Self::String(has_backslashes),
                    }
                }
                [b'"', name @ ..] => match after_quotes(name) {
                    Some(after) => after,
                    None => return Self::QuotedName,
                },
                [b'-', b'-', ..] => after_line(rest),
                [b'/', b'*', comment @ ..] => match after_comment(comment, 1) {
                    Ok(after) => after,
                    Err(depth) => return Self::Comment(depth),
                },
                [b'$', ..] if !text[..at].last().is_some_and(|&byte| is_of_name(byte)) => {
                    match marks(rest) {
                        Some(marks) => match after_dollars(&rest[marks.len()..], marks) {
                            Some(after) => after,
                            None => return Self::Dollars(marks.to_vec()),
                        },
                        None => &rest[1..],
                    }
                }
                _ => &rest[1..],
            };
            at = text.len() - after.len();
        }
        Self::Nothing
    }
}

/// Whether a string is of the form E'...', by what is before its mark.
fn has_backslashes(before: &[u8]) -> bool {
    match before {
        [rest @ .., b'e' | b'E'] => !rest.last().is_some_and(|&byte| is_of_name(byte)),
        _ => false,
    }
}

/// The marks of a string between dollars that begins here; a parameter, `$1`, is none.
fn marks(text: &[u8]) -> Option<&[u8]> {
    let tag = text[1..]
        .iter()
        .take_while(|&&byte| is_of_name(byte) && byte != b'$')
        .count();
    let is_tag = text.get(1 + tag) == Some(&b'$') && !text[1].is_ascii_digit();
    is_tag.then(|| &text[..tag + 2])
}

fn after_dollars<'a>(text: &'a [u8], marks: &[u8]) -> Option<&'a [u8]> {
    memmem::find(text, marks).map(|at| &text[at + marks.len()..])
}

/// Follows the statements of one file.
#[derive(Default)]
pub(crate) struct Continued {
    within: Within,
    /// Whether the entry that is read is of a statement.
    is_of_statement: bool,
    /// Whether a line has begun with a tab, as the further ones of an entry do, and one that is none has not.
    has_tabs: bool,
    has_others: bool,
}

impl Continued {
    /// Takes a record that looks like one of the server's: whether it may be part of the statement before it.
    pub(crate) fn may_be_part(&mut self, record: &[u8]) -> bool {
        self.has_tabs |= memchr(b'\n', record).is_some(); // which a tab follows
        let within = std::mem::take(&mut self.within);
        if within == Within::Nothing || (self.has_tabs && !self.has_others) {
            self.is_of_statement = false;
            return false;
        }
        self.within = within.after(record).after(b"\n");
        true
    }

    /// Takes the text of a statement, which is that of the record before.
    pub(crate) fn statement(&mut self, text: &[u8]) {
        self.is_of_statement = true;
        self.within = std::mem::take(&mut self.within).after(text).after(b"\n");
    }

    /// The server says that a string or a comment of the statement has no end: it came so.
    pub(crate) fn has_come_so(&mut self) {
        *self = Self {
            within: Within::Nothing,
            is_of_statement: false,
            ..*self
        };
    }

    /// Takes a line that is none of the server's, behind an entry.
    pub(crate) fn other_line(&mut self, line: &[u8]) {
        self.has_others = true;
        if self.is_of_statement {
            self.within = std::mem::take(&mut self.within).after(line).after(b"\n");
        }
    }
}
