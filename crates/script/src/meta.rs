//! Meta commands: `\set` and others.

use crate::error::ParseError;
use crate::expr::Expr;
use crate::grammar::parse_expression;
use crate::reader::{Reader, Word};
use crate::script::{Command, Keep, Script, Target};
use crate::source::{Source, did_you_mean, is_name};
use crate::variables::Symbols;
use crate::{shell, sleep};

/// All meta commands.
const COMMANDS: [&str; 13] = [
    "set",
    "sleep",
    "if",
    "elif",
    "else",
    "endif",
    "gset",
    "aset",
    "shell",
    "setshell",
    "startpipeline",
    "syncpipeline",
    "endpipeline",
];

/// A parsed meta command.
pub(crate) enum Meta {
    /// A command of its own.
    Command(Command),
    /// A part of the statement before it.
    Keep(Keep),
}

/// Parses the meta command after the backslash before `offset`. Returns it, unless the line is empty, and the offset of
/// its end.
pub(crate) fn meta_command(
    source: Source<'_>,
    offset: usize,
    symbols: &mut Symbols,
    script: &mut Script,
) -> Result<(Option<Meta>, usize), ParseError> {
    let mut reader = Reader {
        source,
        offset,
        symbols,
        reads: &mut script.reads,
        invalid_name: &mut script.invalid_name,
    };
    let Some(name) = reader.word() else {
        return Ok((None, reader.offset));
    };
    reader.source = source.in_command(name.text);
    let meta = reader.command(name)?;
    Ok((Some(meta), reader.offset))
}

impl Reader<'_, '_> {
    fn command(&mut self, name: Word<'_>) -> Result<Meta, ParseError> {
        let known = COMMANDS
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(name.text));
        Ok(Meta::Command(match known {
            Some("set") => self.set()?,
            Some("sleep") => Command::Sleep(sleep::parse(self)?),
            Some("if") => Command::If {
                condition: self.expression()?,
                otherwise: 0,
            },
            Some("elif") => Command::Elif {
                condition: self.expression()?,
                otherwise: 0,
                end: 0,
            },
            Some("gset") => return Ok(Meta::Keep(self.keep(false)?)),
            Some("aset") => return Ok(Meta::Keep(self.keep(true)?)),
            Some("shell") => {
                const USAGE: &str = "\\shell command";
                Command::Shell(shell::parse(self, 1, "missing command", USAGE)?)
            }
            Some("setshell") => {
                const USAGE: &str = "\\setshell name command";
                let target = self.target(USAGE)?;
                let shell = shell::parse(self, 2, "missing argument", USAGE)?;
                Command::SetShell { target, shell }
            }
            Some("else") => self.alone(Command::Else { end: 0 })?,
            Some("endif") => self.alone(Command::EndIf)?,
            Some("startpipeline") => self.alone(Command::StartPipeline)?,
            Some("syncpipeline") => self.alone(Command::SyncPipeline)?,
            Some("endpipeline") => self.alone(Command::EndPipeline)?,
            _ => return Err(self.unknown(name)),
        }))
    }

    fn unknown(&self, name: Word<'_>) -> ParseError {
        let near = did_you_mean(name.text, COMMANDS.into_iter(), |near| format!("\\{near}"));
        self.source
            .error(name.start - 1, "invalid command")
            .with_hint(
                near.unwrap_or_else(|| format!("meta commands are \\{}", COMMANDS.join(", \\"))),
            )
    }

    fn alone(&mut self, command: Command) -> Result<Command, ParseError> {
        match self.word() {
            None => Ok(command),
            Some(extra) => Err(self.source.error(extra.start, "unexpected argument")),
        }
    }

    /// The variable that the command sets.
    fn target(&mut self, usage: &str) -> Result<Target, ParseError> {
        let Some(name) = self.word() else {
            return Err(self.missing("missing argument", usage));
        };
        if is_name(name.text) {
            return Ok(Target::Slot(self.symbols.slot(name.text)));
        }
        let hint = match name.text.strip_prefix(':') {
            Some(bare) if is_name(bare) => format!("to set it, write {bare} without the colon"),
            _ => "names are letters, digits and underscores, and do not begin with a digit"
                .to_owned(),
        };
        self.invalid_name(name, hint);
        Ok(Target::Invalid(name.text.into()))
    }

    /// Records a name that no variable can have, or the prefix of such names.
    fn invalid_name(&mut self, name: Word<'_>, hint: impl Into<String>) {
        let source = self.source;
        self.invalid_name.get_or_insert_with(|| {
            let message = format!("invalid variable name: \"{}\"", name.text);
            source.error(name.start, message).with_hint(hint)
        });
    }

    fn set(&mut self) -> Result<Command, ParseError> {
        let target = self.target("\\set name expression")?;
        let expr = self.expression()?;
        Ok(Command::Set { target, expr })
    }

    /// The rest of the line.
    fn expression(&mut self) -> Result<Expr, ParseError> {
        let (source, offset) = (self.source, self.offset);
        let mut resolve = |name: &str, start: usize| self.read(name, start);
        let (expr, end) = parse_expression(source, offset, &mut resolve)?;
        self.offset = end;
        Ok(expr)
    }

    fn keep(&mut self, all: bool) -> Result<Keep, ParseError> {
        let prefix = self.word();
        if let Some(extra) = self.word() {
            return Err(self.too_many(extra, "\\gset [prefix] or \\aset [prefix]"));
        }
        if let Some(prefix) = prefix.filter(|prefix| !is_name(prefix.text)) {
            self.invalid_name(
                prefix,
                "a prefix is letters, digits and underscores, and does not begin with a digit",
            );
        }
        let prefix = prefix.map_or_else(String::new, |prefix| prefix.text.to_owned());
        Ok(Keep { all, prefix })
    }
}
