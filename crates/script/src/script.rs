//! A script as the load engine runs it: a list of commands over numbered variables.

use crate::error::{EvalError, EvalReason, ParseError};
use crate::expr::Expr;
use crate::shell::ShellCommand;
use crate::sleep::Sleep;
use crate::variables::Read;

/// A parsed script.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Its file, or the name of a built-in.
    pub name: String,
    /// The commands of a transaction, in order and numbered as pgbench numbers them: every statement and every meta
    /// command, except `\gset` and `\aset`, which belong to their statements.
    pub commands: Vec<Command>,
    /// The source text of each command.
    pub written: Vec<Written>,
    /// Every place where a variable is read, in order.
    pub reads: Vec<Read>,
    /// The first name in `\set` or `\setshell`, or prefix in `\gset` or `\aset`, that no variable can have. As in pgbench, it
    /// ends the clients that reach it.
    pub invalid_name: Option<ParseError>,
}

impl Script {
    /// Slots of the variables that `\set` and `\setshell` give values to.
    pub fn sets(&self) -> impl Iterator<Item = usize> {
        self.commands.iter().filter_map(|command| match command {
            Command::Set { target, .. } | Command::SetShell { target, .. } => match target {
                Target::Slot(slot) => Some(*slot),
                Target::Invalid(_) => None,
            },
            _ => None,
        })
    }

    /// The `\gset` and `\aset` commands of the script.
    pub fn keeps(&self) -> impl Iterator<Item = &Keep> {
        self.commands.iter().filter_map(|command| match command {
            Command::Sql(sql) => sql.keep.as_ref(),
            _ => None,
        })
    }
}

/// The source text of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Offset of its first character in the script, in bytes.
    pub start: usize,
    /// Line of that, counted from 1.
    pub line: usize,
    /// The first line of a statement; a meta command with its backslash and all the lines that continue it.
    pub text: String,
}

/// The variable that `\set` or `\setshell` sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Slot of the variable.
    Slot(usize),
    /// A name that no variable can have.
    Invalid(Box<str>),
}

impl Target {
    /// Slot of the variable that `command` sets.
    ///
    /// # Errors
    /// When no variable can have the name.
    #[inline]
    pub fn slot(&self, command: &'static str) -> Result<usize, EvalError> {
        match self {
            Self::Slot(slot) => Ok(*slot),
            Self::Invalid(name) => Err(EvalReason::InvalidName {
                command,
                name: name.clone(),
            }
            .into()),
        }
    }
}

/// One step of a script.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Command {
    /// `\set name expression`
    Set {
        /// The variable that gets the value.
        target: Target,
        /// The expression to evaluate.
        expr: Expr,
    },
    /// A statement to send.
    Sql(SqlCommand),
    /// `\sleep`
    Sleep(Sleep),
    /// `\if condition`
    If {
        /// The condition for the commands that follow.
        condition: Expr,
        /// Number of the `\elif`, `\else` or `\endif` to jump to when it is false.
        otherwise: usize,
    },
    /// `\elif condition`. Reached by a jump from a false condition, it evaluates its own; reached after the commands
    /// before it, it jumps to the end.
    Elif {
        /// The condition for the commands that follow.
        condition: Expr,
        /// Number of the `\elif`, `\else` or `\endif` to jump to when it is false.
        otherwise: usize,
        /// Number of the `\endif`.
        end: usize,
    },
    /// `\else`. Reached by a jump from a false condition, execution continues; reached after the commands before it, it
    /// jumps to the end.
    Else {
        /// Number of the `\endif`.
        end: usize,
    },
    /// `\endif`
    EndIf,
    /// `\shell command`
    Shell(ShellCommand),
    /// `\setshell name command`
    SetShell {
        /// The variable that is set to the integer that the command prints.
        target: Target,
        /// The command to run.
        shell: ShellCommand,
    },
    /// `\startpipeline`
    StartPipeline,
    /// `\syncpipeline`
    SyncPipeline,
    /// `\endpipeline`
    EndPipeline,
}

impl Command {
    /// The kind of command, as in pgbench's messages: `SQL`, or the meta command's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Set { .. } => "set",
            Self::Sql(sql) => match &sql.keep {
                None => "SQL",
                Some(keep) => keep.command(),
            },
            Self::Sleep(_) => "sleep",
            Self::If { .. } => "if",
            Self::Elif { .. } => "elif",
            Self::Else { .. } => "else",
            Self::EndIf => "endif",
            Self::Shell(_) => "shell",
            Self::SetShell { .. } => "setshell",
            Self::StartPipeline => "startpipeline",
            Self::SyncPipeline => "syncpipeline",
            Self::EndPipeline => "endpipeline",
        }
    }
}

/// A statement, ready for each of the three protocols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlCommand {
    /// The statement as written, with its semicolon if it has one, without `--` comments before it. White space after
    /// it is sent, as by pgbench, but not included here.
    pub text: String,
    /// Line of its first character, counted from 1.
    pub line: usize,
    /// For the simple protocol: pieces of text and variables in order. A variable that is unset is sent as written
    /// (`:name`), since a colon may mean something else in SQL.
    pub segments: Vec<Segment>,
    /// For the extended protocol: the statement with `$1`, `$2`, ... in place of variables.
    pub prepared_text: String,
    /// Slots of the variables of `$1`, `$2`, ...; one for every position, also of the same name.
    pub params: Vec<usize>,
    /// The `\gset` or `\aset` that follows it, if any.
    pub keep: Option<Keep>,
}

/// `\gset [prefix]` or `\aset [prefix]`: a result's columns become variables, named by the prefix and the column's
/// name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// `\aset`: the last row of every result that has rows; otherwise `\gset`: the only row of the last result.
    pub all: bool,
    /// The prefix of the variables' names.
    pub prefix: String,
}

impl Keep {
    /// The command's name.
    #[must_use]
    pub fn command(&self) -> &'static str {
        if self.all { "aset" } else { "gset" }
    }
}

/// A piece of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Sent unchanged.
    Text(String),
    /// Slot of a variable whose text is inserted here.
    Var(usize),
}
