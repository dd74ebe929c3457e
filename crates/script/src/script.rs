//! A script as the load engine runs it: a list of commands over numbered variables.

use crate::expr::Expr;

/// A parsed script.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Its file, or the name of a built-in.
    pub name: String,
    /// What a transaction does, in order.
    pub commands: Vec<Command>,
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
        /// Line of the command, counted from 1.
        line: usize,
    },
    /// A statement to send.
    Sql(SqlCommand),
    /// `\sleep`
    Sleep {
        /// How long, in `unit`.
        duration: SleepDuration,
        /// Unit of the duration.
        unit: SleepUnit,
        /// Line of the command, counted from 1.
        line: usize,
    },
}

/// A statement, ready for each of the three protocols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlCommand {
    /// The statement as written, without its semicolon.
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
}

/// A piece of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Goes to the server as it is.
    Text(String),
    /// Slot of a variable whose text goes here.
    Var(usize),
}

/// How long `\sleep` waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SleepDuration {
    /// A number in the script.
    Literal(i64),
    /// Slot of a variable.
    Var(usize),
}

/// Unit of `\sleep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SleepUnit {
    /// `us`
    Microseconds,
    /// `ms`
    Milliseconds,
    /// `s`, and the default.
    Seconds,
}
