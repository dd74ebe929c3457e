//! `\shell command` and `\setshell name command`: the command to run, and the meaning of its output. The engine runs
//! it.

use crate::error::{EvalError, EvalReason, ParseError};
use crate::lossless;
use crate::reader::Reader;
use crate::sleep::leading_integer;
use crate::source::is_space;
use crate::variables::Variables;

/// The maximum number of words of a meta command, its name included: pgbench's limit.
const MAX_WORDS: usize = 256;

/// pgbench's limit for a command's text.
const MAX_COMMAND_BYTES: usize = 255;

/// The number of bytes of a command's output that `\setshell` reads: the beginning of its first line.
pub const SHELL_OUTPUT_BYTES: usize = 63;

/// A command for the shell, with variables in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    /// The first word, for errors.
    name: Box<str>,
    words: Vec<ShellWord>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ShellWord {
    Text(Box<str>),
    /// A word that is `:name`.
    Variable {
        slot: usize,
        name: Box<str>,
    },
}

impl ShellCommand {
    /// Appends the command's text: its words separated by spaces, with variables replaced by their text.
    ///
    /// # Errors
    /// When a variable is unset, or when the text is longer than pgbench allows.
    pub fn write(&self, variables: &Variables, out: &mut Vec<u8>) -> Result<(), EvalError> {
        let start = out.len();
        for (number, word) in self.words.iter().enumerate() {
            if number > 0 {
                out.push(b' ');
            }
            match word {
                ShellWord::Text(text) => out.extend_from_slice(&lossless::to_bytes(text)),
                ShellWord::Variable { slot, name } => {
                    if !variables.write_text(*slot, out) {
                        let (command, name) = (self.name.clone(), name.clone());
                        return Err(EvalReason::ShellVariable { command, name }.into());
                    }
                }
            }
            if out.len() - start >= MAX_COMMAND_BYTES {
                return Err(EvalReason::ShellTooLong(self.name.clone()).into());
            }
        }
        Ok(())
    }

    /// The value of `\setshell` when the command's output begins with `output`, of which at most [`SHELL_OUTPUT_BYTES`]
    /// count: a 32-bit integer, with nothing but white space around it on the line.
    ///
    /// # Errors
    /// When there is no such integer.
    pub fn integer(&self, output: &[u8]) -> Result<i64, EvalError> {
        let output = &output[..output.len().min(SHELL_OUTPUT_BYTES)];
        let line = output
            .iter()
            .position(|&b| b == b'\n')
            .map_or(output, |newline| &output[..=newline]);
        if line.is_empty() {
            return Err(EvalReason::ShellSilent(self.name.clone()).into());
        }
        let digits = line.iter().copied().skip_while(|&b| is_space(b));
        let mut rest = digits.peekable();
        rest.next_if(|b| matches!(b, b'+' | b'-'));
        let mut has_digit = false;
        while rest.next_if(u8::is_ascii_digit).is_some() {
            has_digit = true;
        }
        let is_blank = line.iter().all(|&b| is_space(b));
        let is_integer = has_digit && rest.all(is_space);
        if !(is_blank || is_integer) {
            return Err(EvalReason::ShellOutput {
                command: self.name.clone(),
                output: lossless::from_bytes(line).into(),
            }
            .into());
        }
        Ok(i64::from(leading_integer(line) as i32))
    }

    /// The error of a command that could not be started, or of a `\shell` command that failed.
    #[must_use]
    pub fn failed(&self) -> EvalError {
        EvalReason::ShellFailed(self.name.clone()).into()
    }
}

/// Parses what follows `\shell`, or `\setshell name`; `taken` words of the command were read before.
pub(crate) fn parse(
    reader: &mut Reader<'_, '_>,
    taken: usize,
    missing: &str,
    usage: &str,
) -> Result<ShellCommand, ParseError> {
    let Some(first) = reader.word() else {
        return Err(reader.missing(missing, usage));
    };
    let mut shell = ShellCommand {
        name: first.text.into(),
        words: Vec::new(),
    };
    let mut next = Some(first);
    while let Some(word) = next {
        if taken + shell.words.len() == MAX_WORDS {
            return Err(reader.source.error(word.start, "too many arguments"));
        }
        let parsed = match word.text.strip_prefix(':') {
            None => ShellWord::Text(word.text.into()),
            Some(escaped) if escaped.starts_with(':') => ShellWord::Text(escaped.into()),
            Some(name) => ShellWord::Variable {
                slot: reader.read(name, word.start),
                name: name.into(),
            },
        };
        shell.words.push(parsed);
        next = reader.word();
    }
    Ok(shell)
}
