//! Splits a script into statements and meta commands, as `psqlscan.l` does for psql and pgbench: a statement ends at a
//! semicolon or before a backslash, unless these are in a quotation, a comment or parentheses.

use crate::error::ParseError;
use crate::source::{Source, is_name_part, is_name_start, is_space};

/// The token that ended a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Semicolon,
    /// A meta command begins; the offset is after its backslash.
    Backslash(usize),
    End,
}

/// A statement, without `--` comments before it, but with white space after it; empty when there is nothing else before
/// its ending.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) text: String,
    /// The offset of its first character.
    pub(crate) start: usize,
    pub(crate) ending: Ending,
}

/// Reads one statement after another.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    source: Source<'a>,
    pub(crate) offset: usize,
}

/// The statement being read.
#[derive(Default)]
struct Pending {
    text: Vec<u8>,
    start: Option<usize>,
    /// The offset of each open parenthesis.
    parentheses: Vec<usize>,
    routine: RoutineBody,
}

impl Pending {
    fn push(&mut self, bytes: &[u8], at: usize) {
        if self.start.is_none() && bytes.iter().all(|&b| is_space(b)) {
            return;
        }
        self.start.get_or_insert(at);
        self.text.extend_from_slice(bytes);
    }
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(source: Source<'a>) -> Self {
        Self { source, offset: 0 }
    }

    /// The next statement, with its ending.
    pub(crate) fn next(&mut self) -> Result<Statement, ParseError> {
        let mut pending = Pending::default();
        loop {
            let at = self.offset;
            let Some(first) = self.source.byte(at) else {
                return self.finish(pending, Ending::End);
            };
            let rest = self.source.bytes_from(at);
            match first {
                b';' if pending.parentheses.is_empty() && !pending.routine.is_open() => {
                    pending.push(b";", at);
                    self.offset += 1;
                    return self.finish(pending, Ending::Semicolon);
                }
                b'\\' => match rest.get(1) {
                    // psql's escapes for these two characters
                    Some(escaped @ (b';' | b':')) => {
                        pending.push(&[*escaped], at);
                        self.offset += 2;
                    }
                    _ => {
                        self.offset += 1;
                        return self.finish(pending, Ending::Backslash(at + 1));
                    }
                },
                b'-' if rest.starts_with(b"--") => {
                    self.offset += line_length(rest);
                    if pending.start.is_some() {
                        pending.push(self.between(at), at);
                    }
                }
                _ => {
                    self.offset += self.piece_length(first, rest, &mut pending)?;
                    pending.push(self.between(at), at);
                }
            }
        }
    }

    fn between(&self, start: usize) -> &'a [u8] {
        &self.source.text.as_bytes()[start..self.offset]
    }

    /// Length of the token at the start of `rest`: a quotation, a comment, a word, or a character.
    fn piece_length(
        &self,
        first: u8,
        rest: &[u8],
        pending: &mut Pending,
    ) -> Result<usize, ParseError> {
        let unterminated = |what| {
            self.source
                .error(self.offset, format!("unterminated {what}"))
        };
        match first {
            b'/' if rest.starts_with(b"/*") => {
                comment_length(rest).ok_or_else(|| unterminated("/* comment"))
            }
            b'\'' => string_length(rest, false).ok_or_else(|| unterminated("quoted string")),
            b'e' | b'E' if rest.get(1) == Some(&b'\'') => string_length(&rest[1..], true)
                .map(|length| length + 1)
                .ok_or_else(|| unterminated("quoted string")),
            b'"' => quoted_length(rest, b'"').ok_or_else(|| unterminated("quoted identifier")),
            b'$' => match dollar_tag(rest) {
                Some(tag) => dollar_quoted_length(rest, tag)
                    .ok_or_else(|| unterminated("dollar-quoted string")),
                None => Ok(1),
            },
            b'(' => {
                pending.parentheses.push(self.offset);
                Ok(1)
            }
            b')' => {
                pending.parentheses.pop();
                Ok(1)
            }
            _ if is_name_start(first) => {
                let word = identifier(rest);
                pending.routine.note(word, pending.parentheses.is_empty());
                Ok(word.len())
            }
            _ => Ok(1),
        }
    }

    fn finish(&self, pending: Pending, ending: Ending) -> Result<Statement, ParseError> {
        if let Some(&parenthesis) = pending.parentheses.last() {
            return Err(self
                .source
                .error(parenthesis, "unclosed parenthesis in a statement"));
        }
        // Only ASCII characters delimit tokens, so tokens consist of whole characters.
        let text = String::from_utf8(pending.text)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok(Statement {
            text,
            start: pending.start.unwrap_or(self.offset),
            ending,
        })
    }
}

/// Length of a line without its end.
fn line_length(rest: &[u8]) -> usize {
    rest.iter()
        .position(|b| matches!(b, b'\n' | b'\r'))
        .unwrap_or(rest.len())
}

/// Length of a `/* */` comment; they nest.
fn comment_length(rest: &[u8]) -> Option<usize> {
    let mut depth = 0;
    let mut length = 0;
    loop {
        match rest.get(length..)? {
            [b'/', b'*', ..] => {
                depth += 1;
                length += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                length += 2;
                if depth == 0 {
                    return Some(length);
                }
            }
            [] => return None,
            _ => length += 1,
        }
    }
}

/// Length of a quotation in which a doubled quote is one quote.
fn quoted_length(rest: &[u8], quote: u8) -> Option<usize> {
    let mut length = 1;
    loop {
        length += rest.get(length..)?.iter().position(|&b| b == quote)? + 1;
        if rest.get(length) != Some(&quote) {
            return Some(length);
        }
        length += 1;
    }
}

/// Length of a string with all its parts: SQL joins strings with a newline between them.
fn string_length(rest: &[u8], escapes: bool) -> Option<usize> {
    let mut length = 0;
    loop {
        let part = &rest[length..];
        length += if escapes {
            escaped_length(part)?
        } else {
            quoted_length(part, b'\'')?
        };
        match to_next_part(&rest[length..]) {
            Some(gap) => length += gap,
            None => return Some(length),
        }
    }
}

/// Length of a quotation in which a backslash escapes what follows.
fn escaped_length(rest: &[u8]) -> Option<usize> {
    let mut length = 1;
    loop {
        match rest.get(length..)? {
            [b'\\', _, ..] | [b'\'', b'\'', ..] => length += 2,
            [b'\'', ..] => return Some(length + 1),
            [] => return None,
            _ => length += 1,
        }
    }
}

/// Length of white space with a newline in it, if another quote follows.
fn to_next_part(rest: &[u8]) -> Option<usize> {
    let mut length = 0;
    let mut newline = false;
    loop {
        match rest.get(length..)? {
            [b'\'', ..] => return newline.then_some(length),
            [b'-', b'-', ..] => length += line_length(&rest[length..]),
            [b @ (b' ' | b'\t' | b'\n' | b'\r' | b'\x0c'), ..] => {
                newline |= matches!(b, b'\n' | b'\r');
                length += 1;
            }
            _ => return None,
        }
    }
}

/// The opening `$tag$` of a dollar-quoted string.
fn dollar_tag(rest: &[u8]) -> Option<&[u8]> {
    let name = rest[1..].iter().take_while(|&&b| is_name_part(b)).count();
    let starts_well = name == 0 || is_name_start(rest[1]);
    (starts_well && rest.get(1 + name) == Some(&b'$')).then(|| &rest[..name + 2])
}

fn dollar_quoted_length(rest: &[u8], tag: &[u8]) -> Option<usize> {
    let body = &rest[tag.len()..];
    body.windows(tag.len())
        .position(|window| window == tag)
        .map(|end| end + 2 * tag.len())
}

/// A word of SQL, which may contain dollar signs.
fn identifier(rest: &[u8]) -> &[u8] {
    let length = rest
        .iter()
        .take_while(|&&b| is_name_part(b) || b == b'$')
        .count();
    &rest[..length]
}

/// Detects whether a semicolon is inside BEGIN ATOMIC ... END of CREATE FUNCTION or PROCEDURE, by psql's heuristic:
/// after CREATE [OR REPLACE] FUNCTION, count BEGIN and CASE against END.
#[derive(Default)]
struct RoutineBody {
    /// First letters of the statement's first words; 0 for a word that does not matter.
    words: Vec<u8>,
    /// BEGIN and CASE whose END has not come yet.
    depth: usize,
}

impl RoutineBody {
    fn is_open(&self) -> bool {
        self.depth > 0
    }

    fn note(&mut self, word: &[u8], outside_parentheses: bool) {
        let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
        if self.words.len() < 4 {
            let known = ["create", "or", "replace", "function", "procedure"]
                .into_iter()
                .any(is);
            self.words.push(if known {
                word[0].to_ascii_lowercase()
            } else {
                0
            });
        }
        let creates_routine = matches!(
            self.words.as_slice(),
            [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p', ..]
        );
        if !creates_routine || !outside_parentheses {
            return;
        }
        if is("begin") || (is("case") && self.depth > 0) {
            self.depth += 1;
        } else if is("end") {
            self.depth = self.depth.saturating_sub(1);
        }
    }
}
