//! A script as the load engine runs it: a list of commands over numbered variables.

use crate::expr::Expr;
use crate::shell::ShellCommand;
use crate::sleep::Sleep;

/// A parsed script.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Its file, or the name of a built-in.
    pub name: String,
    /// What a transaction does, in order and numbered as pgbench numbers them: every statement and every meta command,
    /// but `\gset` and `\aset`, which belong to their statements.
    pub commands: Vec<Command>,
    /// How the author wrote each of the commands.
    pub written: Vec<Written>,
    /// Every place where a variable is read, in order.
    pub reads: Vec<Read>,
}

impl Script {
    /// Slots of the variables that `\set` and `\setshell` give values to.
    pub fn sets(&self) -> impl Iterator<Item = usize> {
        self.commands.iter().filter_map(|command| match command {
            Command::Set { slot, .. } | Command::SetShell { slot, .. } => Some(*slot),
            _ => None,
        })
    }

    /// What the script keeps of its statements' results.
    pub fn keeps(&self) -> impl Iterator<Item = &Keep> {
        self.commands.iter().filter_map(|command| match command {
            Command::Sql(sql) => sql.keep.as_ref(),
            _ => None,
        })
    }
}

/// A command in the author's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Line of its first character, counted from 1.
    pub line: usize,
    /// The first line of a statement; a meta command with its backslash and all the lines that continue it.
    pub text: String,
}

/// A place where a variable is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Slot of the variable.
    pub slot: usize,
    /// Line of the place, or of the statement's beginning; counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Whether a statement reads it, rather than a meta command.
    pub in_sql: bool,
}

/// One step of a script.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Command {
    /// `\set name expression`
    Set {
        /// Slot of the variable that gets the value.
        slot: usize,
        /// What to evaluate.
        expr: Expr,
    },
    /// A statement to send.
    Sql(SqlCommand),
    /// `\sleep`
    Sleep(Sleep),
    /// `\if condition`
    If {
        /// What has to hold for the commands that follow.
        condition: Expr,
        /// Number of the `\elif`, `\else` or `\endif` to go to when it does not.
        otherwise: usize,
    },
    /// `\elif condition`. Who comes here from a condition that does not hold looks at this one; who has run the
    /// commands before it goes to the end.
    Elif {
        /// What has to hold for the commands that follow.
        condition: Expr,
        /// Number of the `\elif`, `\else` or `\endif` to go to when it does not.
        otherwise: usize,
        /// Number of the `\endif`.
        end: usize,
    },
    /// `\else`. Who comes here from a condition that does not hold goes on; who has run the commands before it goes
    /// to the end.
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
        /// Slot of the variable that gets the integer that the command prints.
        slot: usize,
        /// What to run.
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
    /// What kind of command it is, as pgbench's messages call it: `SQL`, or the meta command's name.
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
    /// The statement as written, with its semicolon if it has one, from behind `--` comments before it. White space behind it
    /// is sent, as pgbench does, but not kept here.
    pub text: String,
    /// Line of its first character, counted from 1.
    pub line: usize,
    /// The simple protocol: text pieces and variables in order. A variable that is unset stays as it was
    /// written (`:name`), for a colon may mean something else to SQL.
    pub segments: Vec<Segment>,
    /// The extended protocol: the statement with `$1`, `$2`, ... where variables stood.
    pub prepared_text: String,
    /// Slot of the variable behind `$1`, `$2`, ...; one for every place, also of the same name.
    pub params: Vec<usize>,
    /// What becomes of its results; nothing when it is neither followed by `\gset` nor by `\aset`.
    pub keep: Option<Keep>,
}

/// `\gset [prefix]` or `\aset [prefix]`: a result's columns become variables, under their names behind the prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// `\aset`: the last row of every result that has rows; otherwise `\gset`: the only row of the last result.
    pub all: bool,
    /// What the variables' names begin with.
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
    /// Goes to the server as it is.
    Text(String),
    /// Slot of a variable whose text goes here.
    Var(usize),
}
