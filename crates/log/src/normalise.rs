//! The class of a statement: its text without constants, comments and spacing, as pg_stat_statements groups statements
//! (which works on parse trees, and so also tells names in different schemas from one another). On the way it sees whether the
//! text can be whole.

/// The text of a class, and what was seen in the statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Normalised {
    /// Constants and parameters are `$1`, `$2`, ... in their order; of a list after IN, the first and dots.
    pub(crate) text: Vec<u8>,
    /// The highest N of `$N` in the statement; 0 without parameters.
    pub(crate) highest_parameter: u32,
    /// Whether the text cannot be whole: a string, a quoted name, a comment or a bracket has no end, or it ends with what no
    /// statement ends with. That it is false proves nothing: a statement without its WHERE clause is a statement, too.
    pub(crate) is_cut: bool,
}

/// Reserved words with which no statement ends, sorted.
const NEVER_LAST: [&[u8]; 22] = [
    b"and",
    b"as",
    b"case",
    b"distinct",
    b"else",
    b"except",
    b"from",
    b"group",
    b"having",
    b"in",
    b"intersect",
    b"into",
    b"limit",
    b"not",
    b"or",
    b"order",
    b"then",
    b"union",
    b"using",
    b"when",
    b"where",
    b"with",
];
/// What operators consist of that need an operand on their right. `*` may be last.
const NEEDS_OPERAND: &[u8] = b"+-/<>=~@#%^&|:";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Word,
    Constant,
    Open,
    Close,
    Comma,
    Semicolon,
    Dot,
    Cast,
    Operator,
}

#[derive(Default)]
struct Writer {
    normalised: Normalised,
    last: Option<Token>,
    constants: u32,
    /// Constants so far of a list after IN that has nothing but constants.
    list: Option<u32>,
    last_word_is_in: bool,
    last_word_is_as: bool,
    /// Brackets that are open; less than 0 where one is closed that was not opened.
    depth: i64,
    /// Where the last token begins in the normalised text, and whether it is a name by what is before it.
    last_begin: usize,
    is_last_name: bool,
}

/// Normalises the text of one or more statements.
pub(crate) fn normalise(text: &[u8]) -> Normalised {
    let mut writer = Writer::default();
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        rest = match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => &rest[1..],
            b'-' if rest.starts_with(b"--") => after_line(rest),
            b'/' if rest.starts_with(b"/*") => writer.closed(after_comment(&rest[2..], 1).ok()),
            b'\'' => {
                let after = writer.closed(after_string(&rest[1..], false));
                writer.constant(after)
            }
            b'"' => {
                let after = writer.closed(after_quotes(&rest[1..]));
                writer.word(&rest[..rest.len() - after.len()], false);
                after
            }
            b'$' => writer.dollar(rest),
            b'0'..=b'9' => writer.number(rest),
            b'.' if rest.get(1).is_some_and(u8::is_ascii_digit)
                && writer.last != Some(Token::Word) =>
            {
                writer.number(rest)
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => writer.name(rest),
            b'(' | b'[' => writer.one(Token::Open, rest),
            b')' | b']' => writer.one(Token::Close, rest),
            b',' => writer.one(Token::Comma, rest),
            b';' => writer.one(Token::Semicolon, rest),
            b'.' => writer.one(Token::Dot, rest),
            b':' if rest.starts_with(b"::") => {
                writer.push(Token::Cast, b"::");
                &rest[2..]
            }
            _ => writer.operator(rest),
        };
    }
    writer.normalised.is_cut |=
        writer.depth != 0 || writer.needs_more() || ends_with_a_mark_of_cutting(text);
    writer.normalised
}

/// Whether a text ends with what programs put where they have cut, or within a character.
fn ends_with_a_mark_of_cutting(text: &[u8]) -> bool {
    const MARKS: [&[u8]; 7] = [
        "\u{2026}".as_bytes(), // an ellipsis
        "\u{fffd}".as_bytes(), // for bytes that are no character
        b"truncated]",
        b"Truncated]",
        b"runcated...]",
        b"truncated>",
        b"truncated...>",
    ];
    let text = text.trim_ascii_end();
    MARKS.iter().any(|mark| text.ends_with(mark)) || ends_within_a_character(text)
}

/// Whether a text is UTF-8 but for its last character, whose bytes are not all there.
fn ends_within_a_character(text: &[u8]) -> bool {
    text.last().is_some_and(|byte| !byte.is_ascii())
        && std::str::from_utf8(text).is_err_and(|error| error.error_len().is_none())
}

impl Writer {
    /// Whether the last token can be no statement's last.
    fn needs_more(&self) -> bool {
        let text = &self.normalised.text[self.last_begin..];
        match self.last {
            Some(Token::Comma | Token::Dot | Token::Cast) => true,
            Some(Token::Operator) => text.iter().all(|byte| NEEDS_OPERAND.contains(byte)),
            // Words are names, too: `SELECT t.order AS group`.
            Some(Token::Word) => !self.is_last_name && NEVER_LAST.binary_search(&text).is_ok(),
            None | Some(Token::Constant | Token::Open | Token::Close | Token::Semicolon) => false,
        }
    }

    /// Returns what follows something that has an end; nothing where there is none.
    fn closed<'a>(&mut self, after: Option<&'a [u8]>) -> &'a [u8] {
        self.normalised.is_cut |= after.is_none();
        after.unwrap_or_default()
    }

    fn push(&mut self, token: Token, text: &[u8]) {
        self.depth += match token {
            Token::Open => 1,
            Token::Close => -1,
            _ => 0,
        };
        self.normalised.is_cut |= self.depth < 0;
        self.is_last_name = self.last == Some(Token::Dot) || self.last_word_is_as;
        if token == Token::Comma && self.list.is_some_and(|count| count > 1) {
            return; // of constants for which the dots stand
        }
        if token == Token::Open {
            self.list = self.last_word_is_in.then_some(0);
        } else if !matches!(token, Token::Constant | Token::Comma) {
            self.list = None;
        }
        self.last_word_is_in = false;
        self.last_word_is_as = token == Token::Word && text == b"as";
        let out = &mut self.normalised.text;
        let is_joined = matches!(
            (self.last, token),
            (None | Some(Token::Open | Token::Dot | Token::Cast), _)
                | (
                    _,
                    Token::Close | Token::Comma | Token::Semicolon | Token::Dot | Token::Cast
                )
                | (Some(Token::Word), Token::Open)
        );
        if !is_joined {
            out.push(b' ');
        }
        self.last_begin = out.len();
        out.extend_from_slice(text);
        self.last = Some(token);
    }

    fn one<'a>(&mut self, token: Token, rest: &'a [u8]) -> &'a [u8] {
        self.push(token, &rest[..1]);
        &rest[1..]
    }

    fn word(&mut self, text: &[u8], is_in: bool) {
        self.push(Token::Word, text);
        self.last_word_is_in = is_in;
    }

    /// Writes a constant, which ends before `after`.
    fn constant<'a>(&mut self, after: &'a [u8]) -> &'a [u8] {
        if let Some(count) = &mut self.list {
            *count += 1;
            if *count == 2 {
                self.normalised.text.extend_from_slice(b" ...");
            }
            if *count >= 2 {
                self.last = Some(Token::Constant);
                return after;
            }
        }
        self.constants += 1;
        let text = format!("${}", self.constants);
        self.push(Token::Constant, text.as_bytes());
        after
    }

    /// A sign belongs to a number where no value can be before it.
    fn number<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let mut at = 1;
        while let Some(&byte) = rest.get(at) {
            let is_sign_of_exponent = matches!(byte, b'+' | b'-')
                && matches!(rest[at - 1], b'e' | b'E')
                && !rest.starts_with(b"0x")
                && !rest.starts_with(b"0X");
            if !byte.is_ascii_alphanumeric() && !matches!(byte, b'.' | b'_') && !is_sign_of_exponent
            {
                break;
            }
            at += 1;
        }
        self.constant(&rest[at..])
    }

    fn dollar<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let digits = rest[1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits > 0 {
            let number = crate::entry::number(&rest[1..=digits]).unwrap_or(u32::MAX);
            self.normalised.highest_parameter = self.normalised.highest_parameter.max(number);
            return self.constant(&rest[1 + digits..]);
        }
        let tag = rest[1..]
            .iter()
            .take_while(|&&byte| is_of_name(byte) && byte != b'$')
            .count();
        if rest.get(1 + tag) != Some(&b'$') {
            return self.operator(rest);
        }
        let (mark, body) = rest.split_at(tag + 2);
        let found = memchr::memmem::find(body, mark);
        let after = self.closed(found.map(|at| &body[at + mark.len()..]));
        self.constant(after)
    }

    fn name<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let length = rest.iter().take_while(|&&byte| is_of_name(byte)).count();
        let (name, after) = rest.split_at(length);
        match (name, after) {
            ([b'e' | b'E'], [b'\'', text @ ..]) => {
                let after = self.closed(after_string(text, true));
                return self.constant(after);
            }
            ([b'b' | b'B' | b'x' | b'X' | b'n' | b'N'], [b'\'', text @ ..])
            | ([b'u' | b'U'], [b'&', b'\'', text @ ..]) => {
                let after = self.closed(after_string(text, false));
                return self.constant(after);
            }
            _ => {}
        }
        let lower = name.to_ascii_lowercase();
        self.word(&lower, lower == b"in");
        after
    }

    /// Writes an operator; the sign of a number is left out.
    fn operator<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        const OPERATORS: &[u8] = b"+-*/<>=~!@#%^&|`?";
        let is_sign = matches!(rest[0], b'+' | b'-')
            && matches!(
                self.last,
                Some(Token::Open | Token::Comma | Token::Operator)
            )
            && rest
                .get(1)
                .is_some_and(|&byte| byte.is_ascii_digit() || byte == b'.');
        if is_sign {
            return &rest[1..];
        }
        let mut length = 1;
        while OPERATORS.contains(&rest[0])
            && rest
                .get(length)
                .is_some_and(|byte| OPERATORS.contains(byte))
            && !rest[length..].starts_with(b"--")
            && !rest[length..].starts_with(b"/*")
            && !matches!(rest[length], b'+' | b'-')
        {
            length += 1;
        }
        self.push(Token::Operator, &rest[..length]);
        &rest[length..]
    }
}

pub(crate) fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// Skips the rest of a line.
pub(crate) fn after_line(text: &[u8]) -> &[u8] {
    memchr::memchr(b'\n', text).map_or(&[], |at| &text[at + 1..])
}

/// Skips a comment, which may hold others: `depth` of them are open. As an error, how many still are at the end of the text.
pub(crate) fn after_comment(text: &[u8], mut depth: usize) -> Result<&[u8], usize> {
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'/', b'*', rest) {
        rest = &rest[at..];
        if let Some(inner) = rest.strip_prefix(b"/*") {
            depth += 1;
            rest = inner;
        } else if let Some(outer) = rest.strip_prefix(b"*/") {
            depth -= 1;
            rest = outer;
            if depth == 0 {
                return Ok(rest);
            }
        } else {
            rest = &rest[1..];
        }
    }
    Err(depth)
}

/// Skips a string up to its closing mark; a doubled mark is part of it. None without its end.
pub(crate) fn after_string(text: &[u8], has_backslashes: bool) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        let at = memchr::memchr2(b'\'', b'\\', rest)?;
        let is_escaped = rest[at] == b'\\';
        let after = &rest[at + 1..];
        if is_escaped {
            rest = if has_backslashes {
                after.get(1..).unwrap_or_default()
            } else {
                after
            };
        } else if let Some(further) = after.strip_prefix(b"'") {
            rest = further;
        } else {
            return Some(after);
        }
    }
}

/// Skips a quoted name. None without its end.
pub(crate) fn after_quotes(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    loop {
        let at = memchr::memchr(b'"', rest)?;
        let after = &rest[at + 1..];
        match after.strip_prefix(b"\"") {
            Some(further) => rest = further,
            None => return Some(after),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn class(text: &str) -> String {
        String::from_utf8(normalise(text.as_bytes()).text).unwrap()
    }

    #[test]
    fn texts_have_no_constants_comments_and_spacing() {
        let cases = [
            (
                "SELECT abalance FROM pgbench_accounts WHERE aid = 4711;",
                "select abalance from pgbench_accounts where aid = $1;",
            ),
            (
                "select  abalance\nFROM pgbench_accounts where aid=$1 ;",
                "select abalance from pgbench_accounts where aid = $1;",
            ),
            (
                "UPDATE t SET a = a + -17, b='it''s' WHERE c = 1.5e-3",
                "update t set a = a + $1, b = $2 where c = $3",
            ),
            (
                "UPDATE t SET a = a + 17, b=E'\\'' WHERE c = .5",
                "update t set a = a + $1, b = $2 where c = $3",
            ),
            ("SELECT a - 1, -2", "select a - $1, $2"),
            (
                "SELECT $$it's$$, $x$ $$ $x$, B'01', U&'d'",
                "select $1, $2, $3, $4",
            ),
            (
                "SELECT 1 /* a /* b */ c */ + 2 -- d\n, 3",
                "select $1 + $2, $3",
            ),
            (
                "SELECT \"A\"\"b\".c, t1.x2, a$1 FROM \"T\"",
                "select \"A\"\"b\".c, t1.x2, a$1 from \"T\"",
            ),
            (
                "SELECT '1'::int, now()::date, a[1]",
                "select $1::int, now()::date, a[$2]",
            ),
            (
                "SELECT count(*) FROM t WHERE a IN (1, 2, 3) AND b IN (1)",
                "select count(*) from t where a in($1, ...) and b in($2)",
            ),
            (
                "SELECT * FROM t WHERE a IN (1, b)",
                "select * from t where a in($1, b)",
            ),
            (
                "INSERT INTO t (a, b) VALUES ($2, $1)",
                "insert into t(a, b) values($1, $2)",
            ),
            (
                "SELECT a FROM t WHERE b->>'c' <> '' AND d @> '{}'",
                "select a from t where b ->> $1 <> $2 and d @> $3",
            ),
            ("SELECT 0xFF, 1_000, 'unterminated", "select $1, $2, $3"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(class(text), expected, "{text}");
        }
    }

    #[test]
    fn parameters_are_counted_outside_of_strings_only() {
        for (text, highest) in [
            ("SELECT 1", 0),
            ("SELECT $1, $12, $2", 12),
            ("SELECT '$3', \"$4\", a$5, $$ $6 $$ -- $7", 0),
            ("SELECT $99999999999", u32::MAX),
        ] {
            assert_eq!(
                normalise(text.as_bytes()).highest_parameter,
                highest,
                "{text}"
            );
        }
    }

    #[test]
    fn a_text_that_cannot_be_whole_is_cut() {
        for text in [
            "SELECT 'a",
            "SELECT 'it''s",
            "SELECT 'it''",
            "SELECT E'it\\'",
            "SELECT U&'a",
            "SELECT B'01",
            "SELECT \"a",
            "SELECT $$a",
            "SELECT $x$a$$",
            "SELECT 1 /* a",
            "SELECT 1 /* a /* b */",
            "SELECT 1 /",
            "SELECT (1",
            "SELECT a[1",
            "SELECT 1)",
            "SELECT ) 1 (",
            "SELECT 1,",
            "SELECT a.",
            "SELECT a::",
            "SELECT a =",
            "SELECT a ||",
            "DELETE FROM t WHERE",
            "DELETE FROM t WHERE a = 1 AND -- more",
            "UPDATE t SET a = 1 WHERE b in",
            "SELECT a...",
            "SELECT a\u{2026}",
            "SELECT a\u{fffd}",
            "SELECT a [truncated]",
            "SELECT a [Truncated...]",
        ] {
            assert!(normalise(text.as_bytes()).is_cut, "{text}");
        }
        assert!(normalise(b"SELECT \xc3").is_cut, "within a character");
    }

    #[test]
    fn a_text_that_may_be_whole_is_not_cut() {
        for text in [
            "",
            ";",
            "SELECT",
            "SELECT *",
            "SELECT t.*",
            "SELECT 5 !",
            "SELECT 'it''s', E'\\'', U&'\\0061', B'1', X'F', $$'$$, $x$ $$ $x$, \"a\"\"(\"",
            "SELECT 1 /* (' /* \" */ */",
            "SELECT 1 -- ('",
            "SELECT a[1:2], b->>'c', '(', ARRAY[ARRAY[1], ARRAY[2]]",
            "SET enable_seqscan = on",
            "INSERT INTO t DEFAULT VALUES",
            "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)",
            "SELECT $1::int IN (1, 2, 3);",
            "FETCH ALL",
            "SELECT t.order",
            "SELECT 1 AS group",
            "BEGIN; COMMIT;",
            "SELECT 1 AS ä",
        ] {
            assert!(!normalise(text.as_bytes()).is_cut, "{text}");
        }
        assert!(
            !normalise(b"SELECT '\xe4' AS \xe4").is_cut,
            "of another encoding"
        );
    }

    #[test]
    fn the_words_that_are_never_last_are_sorted() {
        assert!(NEVER_LAST.is_sorted());
    }

    proptest! {
        #[test]
        fn constants_of_other_values_are_in_the_same_class(number in 0_u32.., text in "[a-z' ]{0,20}") {
            let text = text.replace('\'', "''");
            prop_assert_eq!(
                class(&format!("SELECT a FROM t WHERE b = {number} AND c = '{text}'")),
                "select a from t where b = $1 and c = $2"
            );
        }

        #[test]
        fn any_bytes_end(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            normalise(&text);
        }

        #[test]
        fn any_text_of_marks_ends(text in "['\"$/*a1.:;()\\\\ -]{0,60}") {
            normalise(text.as_bytes());
        }
    }
}
