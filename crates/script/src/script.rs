//! A script as the load engine runs it: a list of commands over numbered variables.

use crate::error::EvalError;
use crate::expr::Expr;
use crate::value::Value;

/// A parsed script.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Its file, or the name of a built-in.
    pub name: String,
    /// What a transaction does, in order.
    pub commands: Vec<Command>,
    /// Every place where a variable is read, in order.
    pub reads: Vec<Read>,
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
        /// Line of the command, counted from 1.
        line: usize,
    },
    /// A statement to send.
    Sql(SqlCommand),
    /// `\sleep`
    Sleep {
        /// How long, in `unit`: a constant or a variable.
        duration: Expr,
        /// Unit of the duration.
        unit: SleepUnit,
        /// Line of the command, counted from 1.
        line: usize,
    },
}

/// A statement, ready for each of the three protocols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlCommand {
    /// The statement as written, with its semicolon if it has one, from behind `--` comments before it.
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

impl SleepUnit {
    /// How long to sleep for `duration` of this unit, in microseconds; a negative duration is none.
    ///
    /// # Errors
    /// [`EvalError`] when `duration` is no number.
    pub fn to_microseconds(self, duration: Value) -> Result<u64, EvalError> {
        let whole = match duration {
            Value::Double(d) => d as i64, // without its fraction, as pgbench reads it
            other => other.to_int()?,
        };
        let factor = match self {
            Self::Microseconds => 1,
            Self::Milliseconds => 1_000,
            Self::Seconds => 1_000_000,
        };
        Ok((whole.max(0) as u64).saturating_mul(factor))
    }
}
