//! Detects plain-log lines that look like entries but may belong to the statement before them. A string, a quoted name or a comment
//! can contain any line, and some collectors remove the tab that marks continuation lines.

use memchr::{memchr, memmem};

use crate::ends::statement_of;
use crate::normalise::{
    after_comment, after_line, after_quotes, after_string, is_of_name, normalise,
};
use crate::parameters;

/// A longer text may have been cut by a limit on the length of lines, which does not mean that lines are missing.
const SHORT_BYTES: usize = 900;

/// What is still open at the end of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Within {
    #[default]
    Nothing,
    /// A string; true if backslashes escape in it.
    String(bool),
    QuotedName,
    /// This many nested comments.
    Comment(usize),
    /// A string that ends with this mark: `$$` or `$tag$`.
    Dollars(Vec<u8>),
}

impl Within {
    /// Returns what is open after more of the text.
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

    /// Returns what is open at the end of a text that begins with nothing open.
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

/// Returns whether a string has the form E'...', given the text before its quotation mark.
fn has_backslashes(before: &[u8]) -> bool {
    match before {
        [rest @ .., b'e' | b'E'] => !rest.last().is_some_and(|&byte| is_of_name(byte)),
        _ => false,
    }
}

/// Returns the opening mark of a dollar-quoted string that begins here. A parameter such as `$1` is not one.
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

/// Detects files that grep has reduced to the first lines of entries: no statement has a continuation line, and some texts are cut.
#[derive(Default)]
pub(crate) struct FurtherLines {
    are_there: bool,
    statements: usize,
    cut: usize,
    /// Cut texts of statements that succeeded, which the server would have refused, and cut texts that the server itself wrote.
    ended_and_cut: usize,
}

impl FurtherLines {
    pub(crate) fn entry(&mut self, record: &[u8], message: &[u8]) {
        self.are_there |= memchr(b'\n', record).is_some();
        let Some(text) = statement_of(message).filter(|_| !self.are_there) else {
            return;
        };
        self.statements += 1;
        if text.len() < SHORT_BYTES && normalise(text).is_cut {
            self.cut += 1;
            self.ended_and_cut += usize::from(message.starts_with(b"duration: "));
        }
    }

    /// Takes a DETAIL. The server always ends the last parameter.
    pub(crate) fn detail(&mut self, record: &[u8], text: &[u8]) {
        self.are_there |= memchr(b'\n', record).is_some();
        let is_short = text.len() < SHORT_BYTES;
        self.ended_and_cut += usize::from(is_short && parameters::are_cut(text));
    }

    /// Takes a line that is not an entry. A continuation line that has lost its tab is one.
    pub(crate) fn other_line(&mut self) {
        self.are_there = true;
    }

    pub(crate) fn are_missing(&self) -> bool {
        !self.are_there && (self.ended_and_cut > 0 || self.cut * 20 > self.statements)
    }
}

/// Follows what is open in the statements of one file.
#[derive(Default)]
pub(crate) struct Continued {
    within: Within,
    /// Whether the current entry logs a statement.
    is_of_statement: bool,
    /// Whether a continuation line with a tab was seen, and whether a line that is neither that nor an entry was.
    has_tabs: bool,
    has_others: bool,
}

impl Continued {
    /// Takes a record that looks like an entry. Returns whether it may be part of the statement before it.
    pub(crate) fn may_be_part(&mut self, record: &[u8]) -> bool {
        self.has_tabs |= memchr(b'\n', record).is_some(); // the next line begins with a tab
        let within = std::mem::take(&mut self.within);
        if within == Within::Nothing || (self.has_tabs && !self.has_others) {
            self.is_of_statement = false;
            return false;
        }
        self.within = within.after(record).after(b"\n");
        true
    }

    /// Takes the text of the statement that the last record logs.
    pub(crate) fn statement(&mut self, text: &[u8]) {
        self.is_of_statement = true;
        self.within = std::mem::take(&mut self.within).after(text).after(b"\n");
    }

    /// The server reports that a string or a comment of the statement has no end: the client sent it this way.
    pub(crate) fn has_come_so(&mut self) {
        *self = Self {
            within: Within::Nothing,
            is_of_statement: false,
            ..*self
        };
    }

    /// Takes a line that follows an entry and is not one itself.
    pub(crate) fn other_line(&mut self, line: &[u8]) {
        self.has_others = true;
        if self.is_of_statement {
            self.within = std::mem::take(&mut self.within).after(line).after(b"\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(text: &str) -> Within {
        Within::Nothing.after(text.as_bytes())
    }

    #[test]
    fn a_text_ends_within_what_is_open() {
        let dollars = |marks: &str| Within::Dollars(marks.as_bytes().to_vec());
        for (text, expected) in [
            (
                "SELECT 'a', \"b\", $$c$$, $x$ $$ $x$, $1 /* d /* e */ */ -- 'f",
                Within::Nothing,
            ),
            ("SELECT a$b, 'it''s', E'it\\'s', 1 - 2 / 3", Within::Nothing),
            ("SELECT 'it''", Within::String(false)),
            ("SELECT E'it\\'", Within::String(true)),
            ("SELECT name'a\\'", Within::Nothing),
            ("SELECT -- it's\n'a", Within::String(false)),
            ("SELECT \"a'", Within::QuotedName),
            ("SELECT /* a /* b */", Within::Comment(1)),
            ("SELECT $$ '", dollars("$$")),
            ("SELECT $x$ $$", dollars("$x$")),
        ] {
            assert_eq!(within(text), expected, "{text}");
        }
        assert_eq!(
            within("SELECT 'a").after(b"b'; SELECT \"c"),
            Within::QuotedName
        );
        assert_eq!(within("SELECT /* a").after(b"/* b */"), Within::Comment(1));
        assert_eq!(within("SELECT $x$ a").after(b"$x$"), Within::Nothing);
    }

    #[test]
    fn a_line_of_an_open_string_may_be_part_of_it_until_it_is_closed() {
        let mut lines = Continued::default();
        assert!(!lines.may_be_part(b"LOG:  statement: INSERT INTO t VALUES ('"));
        lines.statement(b"INSERT INTO t VALUES ('");
        assert!(lines.may_be_part(b"LOG:  statement: DROP TABLE t"));
        lines.other_line(b"')");
        assert!(!lines.may_be_part(b"LOG:  statement: SELECT 1"));
    }

    #[test]
    fn a_string_may_be_opened_by_a_line_that_has_lost_its_tab() {
        let mut lines = Continued::default();
        lines.statement(b"INSERT INTO t");
        lines.other_line(b"VALUES ('");
        assert!(lines.may_be_part(b"LOG:  statement: DROP TABLE t"));
    }

    #[test]
    fn where_further_lines_have_tabs_no_entry_is_part_of_another() {
        let mut lines = Continued::default();
        assert!(!lines.may_be_part(b"LOG:  statement: SELECT\n\t1"));
        lines.statement(b"SELECT 'a");
        assert!(!lines.may_be_part(b"LOG:  statement: SELECT 1"));
    }

    #[test]
    fn a_statement_that_came_without_the_end_of_a_comment_does_not_swallow_the_rest() {
        let mut lines = Continued::default();
        lines.statement(b"SELECT /* a");
        assert!(lines.may_be_part(b"ERROR:  unterminated /* comment at or near \"/* a\""));
        lines.has_come_so();
        assert!(!lines.may_be_part(b"LOG:  statement: SELECT 1"));
    }

    #[test]
    fn further_lines_are_missing_where_short_texts_are_cut() {
        let are_missing = |messages: &[&str]| {
            let mut lines = FurtherLines::default();
            for message in messages {
                lines.entry(message.as_bytes(), message.as_bytes());
            }
            lines.are_missing()
        };
        let whole = ["duration: 1.0 ms  statement: SELECT 1"; 30];
        assert!(!are_missing(&whole));
        let with = |one| [&whole[..], &[one]].concat();
        assert!(are_missing(&with("duration: 1.0 ms  statement: SELECT a,")));
        let mut lines = FurtherLines::default();
        lines.entry(b"", b"duration: 1.0 ms  execute x: SELECT $1");
        lines.detail(b"", b"parameters: $1 = '1'");
        assert!(!lines.are_missing());
        lines.detail(b"", b"parameters: $1 = '1', $2 = 'it''s");
        assert!(lines.are_missing());
        assert!(
            !are_missing(&with("statement: SELECT a,")),
            "of one alone, it may be an error"
        );
        let long = format!(
            "duration: 1.0 ms  statement: SELECT '{}",
            "x".repeat(SHORT_BYTES)
        );
        assert!(!are_missing(&with(&long)));
        let several = with("duration: 1.0 ms  statement: SELECT 1\n\t");
        assert!(!are_missing(
            &[&several[..], &["duration: 1.0 ms  statement: SELECT a,"]].concat()
        ));
    }
}
