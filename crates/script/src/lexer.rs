//! Splits expressions into tokens, as pgbench's `exprscan.l` does.

use crate::double::parse_double;
use crate::error::ParseError;
use crate::source::{Source, continuation_length, is_blank, is_name_part, is_name_start};

/// A token of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Token<'a> {
    /// The end of the command: of its line, and of all lines that continue it.
    End,
    Int(i64),
    /// 9223372036854775808: an integer only after a minus sign.
    IntMaxPlusOne,
    Double(f64),
    /// `:name`, without the colon
    Variable(&'a str),
    /// A word that is not a keyword: the name of a function.
    Name(&'a str),
    Keyword(Keyword),
    /// An operator, a bracket or a comma.
    Symbol(&'static str),
}

/// A keyword, in upper or lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    And,
    Or,
    Not,
    Is,
    IsNull,
    NotNull,
    Case,
    When,
    Then,
    Else,
    End,
    Null,
    True,
    False,
}

const KEYWORDS: [(&str, Keyword); 14] = [
    ("and", Keyword::And),
    ("or", Keyword::Or),
    ("not", Keyword::Not),
    ("is", Keyword::Is),
    ("isnull", Keyword::IsNull),
    ("notnull", Keyword::NotNull),
    ("case", Keyword::Case),
    ("when", Keyword::When),
    ("then", Keyword::Then),
    ("else", Keyword::Else),
    ("end", Keyword::End),
    ("null", Keyword::Null),
    ("true", Keyword::True),
    ("false", Keyword::False),
];

/// Longer ones first, since the longest match wins.
const SYMBOLS: [&str; 21] = [
    "<>", "!=", "<=", ">=", "<<", ">>", "<", ">", "=", "+", "-", "*", "/", "%", "|", "&", "#", "~",
    "(", ")", ",",
];

/// Reads tokens from a given offset.
#[derive(Debug, Clone)]
pub(crate) struct Lexer<'a> {
    source: Source<'a>,
    /// The start of the next token, or of the white space before it.
    offset: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: Source<'a>, offset: usize) -> Self {
        Self { source, offset }
    }

    /// The position at which reading continues.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// The next token and where it begins. At the end of the line, every further call returns the end token.
    pub(crate) fn next(&mut self) -> Result<(Token<'a>, usize), ParseError> {
        self.skip_blanks();
        let start = self.offset;
        let Some(first) = self.source.byte(start).filter(|&b| b != b'\n') else {
            return Ok((Token::End, start));
        };
        let token = if first.is_ascii_digit() || (first == b'.' && self.digit_at(start + 1)) {
            self.number()?
        } else if first == b':' && self.source.byte(start + 1).is_some_and(is_name_part) {
            self.variable()?
        } else if is_name_start(first) {
            self.word()
        } else {
            self.symbol()?
        };
        Ok((token, start))
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.source.bytes_from(self.offset);
            let blanks = rest.iter().take_while(|&&b| is_blank(b)).count();
            let skipped = blanks + continuation_length(&rest[blanks..]);
            if skipped == 0 {
                return;
            }
            self.offset += skipped;
        }
    }

    fn digit_at(&self, offset: usize) -> bool {
        self.source.byte(offset).is_some_and(|b| b.is_ascii_digit())
    }

    /// Consumes bytes while they are `wanted`, and returns them.
    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let start = self.offset;
        while self.source.byte(self.offset).is_some_and(&wanted) {
            self.offset += 1;
        }
        &self.source.text[start..self.offset]
    }

    fn number(&mut self) -> Result<Token<'a>, ParseError> {
        let start = self.offset;
        self.take_while(|b| b.is_ascii_digit());
        let mut is_double = false;
        if self.source.byte(self.offset) == Some(b'.') {
            is_double = true;
            self.offset += 1;
            self.take_while(|b| b.is_ascii_digit());
        }
        if matches!(self.source.byte(self.offset), Some(b'e' | b'E')) {
            let sign = matches!(self.source.byte(self.offset + 1), Some(b'+' | b'-'));
            let digits = self.offset + 1 + usize::from(sign);
            if self.digit_at(digits) {
                is_double = true;
                self.offset = digits;
                self.take_while(|b| b.is_ascii_digit());
            }
        }
        let text = &self.source.text[start..self.offset];
        if is_double {
            self.double(text, start)
        } else {
            self.integer(text, start)
        }
    }

    fn double(&self, text: &'a str, start: usize) -> Result<Token<'a>, ParseError> {
        parse_double(text).map(Token::Double).ok_or_else(|| {
            self.source
                .error(start, format!("double constant overflow ({text})"))
                .with_hint("doubles reach from 2.3e-308 to 1.7e308")
        })
    }

    fn integer(&self, text: &'a str, start: usize) -> Result<Token<'a>, ParseError> {
        if text == "9223372036854775808" {
            return Ok(Token::IntMaxPlusOne);
        }
        text.parse().map(Token::Int).map_err(|_| {
            self.source
                .error(start, format!("bigint constant overflow ({text})"))
                .with_hint(format!(
                    "{text}.0 is a double; integers end at 9223372036854775807"
                ))
        })
    }

    fn variable(&mut self) -> Result<Token<'a>, ParseError> {
        let start = self.offset;
        self.offset += 1;
        let name = self.take_while(is_name_part);
        if name.as_bytes()[0].is_ascii_digit() {
            return Err(self
                .source
                .error(start, format!("undefined variable \"{name}\""))
                .with_hint("names begin with a letter or an underscore"));
        }
        Ok(Token::Variable(name))
    }

    fn word(&mut self) -> Token<'a> {
        let word = self.take_while(is_name_part);
        KEYWORDS
            .iter()
            .find(|(text, _)| text.eq_ignore_ascii_case(word))
            .map_or(Token::Name(word), |(_, keyword)| Token::Keyword(*keyword))
    }

    fn symbol(&mut self) -> Result<Token<'a>, ParseError> {
        let rest = &self.source.text[self.offset..];
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            self.offset += symbol.len();
            return Ok(Token::Symbol(symbol));
        }
        let unexpected = rest.chars().next().unwrap_or_default();
        let error = self
            .source
            .error(self.offset, format!("unexpected character ({unexpected})"));
        Err(match unexpected {
            ':' => error.with_hint("a variable is written :name"),
            ';' => error.with_hint("a meta command ends with its line, not with a semicolon"),
            '\'' | '"' => error.with_hint("expressions have no strings, only numbers and booleans"),
            '\\' => error.with_hint("to continue a line, let the backslash be its last character"),
            '^' => error.with_hint("write power(a, b), or a # b for exclusive or"),
            '!' => error.with_hint("write NOT, or <> for unequal"),
            _ => error,
        })
    }
}
