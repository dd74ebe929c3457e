//! Statements that begin and end transaction blocks.

use crate::source::is_space;

/// The effect of a statement on its transaction block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockStatement {
    /// `BEGIN` or `START TRANSACTION`
    Begin,
    /// `COMMIT` or `END`
    Commit,
    /// `PREPARE TRANSACTION`, which ends a block, too
    Prepare,
    /// `COMMIT PREPARED`, which is outside of any block
    CommitPrepared,
    /// `ROLLBACK PREPARED`, which is outside of any block
    RollbackPrepared,
}

impl BlockStatement {
    /// What the statement with this text does, by its first words; `None` of all others, and of `ROLLBACK`.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let mut words = words(text);
        match words.next()?.to_ascii_lowercase().as_str() {
            "begin" | "start" => Some(Self::Begin),
            "end" => Some(Self::Commit),
            "commit" if next_is(&mut words, "prepared") => Some(Self::CommitPrepared),
            "commit" => Some(Self::Commit),
            "rollback" if next_is(&mut words, "prepared") => Some(Self::RollbackPrepared),
            "prepare" if next_is(&mut words, "transaction") => Some(Self::Prepare),
            _ => None,
        }
    }
}

fn next_is<'a>(words: &mut impl Iterator<Item = &'a str>, expected: &str) -> bool {
    words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case(expected))
}

/// The words of a statement up to the first that is none; without comments, which nest.
fn words(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        text = after_comments(text);
        let end = text
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        text = rest;
        (!word.is_empty()).then_some(word)
    })
}

fn after_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches(|c: char| u8::try_from(c).is_ok_and(is_space));
        text = if let Some(comment) = text.strip_prefix("--") {
            comment.split_once('\n').map_or("", |(_, rest)| rest)
        } else if text.starts_with("/*") {
            after_block_comment(text)
        } else {
            return text;
        };
    }
}

/// The text after the comment that `text` begins with.
fn after_block_comment(text: &str) -> &str {
    let (bytes, mut depth, mut at) = (text.as_bytes(), 0_usize, 0);
    while at < bytes.len() {
        match &bytes[at..bytes.len().min(at + 2)] {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return &text[at..];
                }
            }
            _ => at += 1,
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::BlockStatement::{Begin, Commit, CommitPrepared, Prepare, RollbackPrepared};
    use super::*;

    #[test]
    fn blocks_begin_and_end_by_their_first_words() {
        let cases = [
            ("BEGIN;", Some(Begin)),
            (
                "start transaction isolation level serializable;",
                Some(Begin),
            ),
            ("END;", Some(Commit)),
            ("commit", Some(Commit)),
            ("COMMIT AND CHAIN;", Some(Commit)),
            (
                "/* a /* nested */ one */ -- and a line\n  Commit work;",
                Some(Commit),
            ),
            ("COMMIT PREPARED 'x';", Some(CommitPrepared)),
            ("rollback /* it */ prepared 'x'", Some(RollbackPrepared)),
            ("PREPARE TRANSACTION 'x';", Some(Prepare)),
            ("PREPARE transaction_of AS SELECT 1", None),
            ("ROLLBACK;", None),
            ("committed();", None),
            ("SELECT 1; -- COMMIT", None),
            ("/* never ended", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(BlockStatement::of(text), expected, "{text}");
        }
    }
}
