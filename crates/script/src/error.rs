//! Errors of scripts, before they run and while they run.

use thiserror::Error;

use crate::double::write_double;

/// A script that cannot be run, with the position of the error.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ParseError {
    /// Name of the script: its file, or the name of a built-in.
    pub file: String,
    /// Line of the offending text, counted from 1.
    pub line: usize,
    /// Column of the offending text in characters, counted from 1.
    pub column: usize,
    /// The error, with the text found and the allowed values.
    pub message: String,
    /// The likely intention of the author.
    pub hint: Option<String>,
    /// Number of the command, from 1, that is misplaced among the script's conditions: pgbench reports it instead of a
    /// line.
    pub condition: Option<usize>,
}

/// An expression that has no value. As small as a pointer, so that results are returned in registers.
#[derive(Debug, Clone, PartialEq, Error)]
#[error(transparent)]
pub struct EvalError(Box<EvalReason>);

impl EvalError {
    /// The reason why it has no value.
    #[must_use]
    pub fn reason(&self) -> &EvalReason {
        &self.0
    }
}

impl From<EvalReason> for EvalError {
    #[cold]
    fn from(reason: EvalReason) -> Self {
        Self(Box::new(reason))
    }
}

/// The reason why an expression has no value. The wording is pgbench's.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EvalReason {
    /// A variable was read before anything set it.
    #[error("undefined variable \"{0}\"")]
    UndefinedVariable(Box<str>),
    /// A variable holds text that is neither null, boolean, integer nor double.
    #[error("malformed variable \"{name}\" value: \"{text}\"")]
    MalformedVariable {
        /// Name of the variable.
        name: Box<str>,
        /// Its text.
        text: Box<str>,
    },
    /// A variable holds text that spells an integer of more than 64 bits.
    #[error("value \"{0}\" is out of range for type bigint")]
    OutOfRange(Box<str>),
    /// A value of one type is used where another is needed.
    #[error("cannot coerce {from} to {to}")]
    Coercion {
        /// Type of the value.
        from: &'static str,
        /// Type that the operator or function takes.
        to: &'static str,
    },
    /// A double beyond the limits of a 64-bit integer.
    #[error("double to int overflow for {}", fixed(*.0))]
    DoubleToInt(f64),
    /// Integer arithmetic beyond 64 bits.
    #[error("bigint {0} out of range")]
    IntOverflow(&'static str),
    /// Integer division or remainder by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// The lower bound of a random function is above its upper bound.
    #[error("empty range given to random")]
    EmptyRange,
    /// The bounds of a random function are too far apart for 64 bits.
    #[error("random range is too large")]
    RangeTooLarge,
    /// The parameter of `random_gaussian` is too small.
    #[error("gaussian parameter must be at least 2.000000 (not {})", fixed(*.0))]
    GaussianParameter(f64),
    /// The parameter of `random_exponential` is not positive.
    #[error("exponential parameter must be greater than zero (not {})", fixed(*.0))]
    ExponentialParameter(f64),
    /// The parameter of `random_zipfian` is outside its range.
    #[error("zipfian parameter must be in range [1.001, 1000] (not {})", fixed(*.0))]
    ZipfianParameter(f64),
    /// The size given to `permute` is not positive.
    #[error("permute size parameter must be greater than zero")]
    PermuteSize,
    /// A command sets a variable whose name no variable can have.
    #[error("{command}: invalid variable name: \"{name}\"")]
    InvalidName {
        /// Name of the command.
        command: &'static str,
        /// Name of the variable.
        name: Box<str>,
    },
    /// The variable of `\sleep` is not an integer.
    #[error("sleep: invalid sleep time \"{text}\" for variable \"{name}\"")]
    SleepTime {
        /// Name of the variable.
        name: Box<str>,
        /// Its text.
        text: Box<str>,
    },
    /// The variable of `\sleep` was read before anything set it.
    #[error("sleep: undefined variable \"{0}\"")]
    SleepVariable(Box<str>),
    /// A word of a shell command is a variable that nothing has set.
    #[error("{command}: undefined variable \":{name}\"")]
    ShellVariable {
        /// The shell command's first word.
        command: Box<str>,
        /// Name of the variable.
        name: Box<str>,
    },
    /// A shell command with its variables is longer than pgbench allows.
    #[error("{0}: shell command is too long")]
    ShellTooLong(Box<str>),
    /// A shell command could not be started, or failed.
    #[error("{0}: could not launch shell command")]
    ShellFailed(Box<str>),
    /// `\setshell`'s command printed nothing.
    #[error("{0}: could not read result of shell command")]
    ShellSilent(Box<str>),
    /// `\setshell`'s command printed something other than an integer.
    #[error("{command}: shell command must return an integer (not \"{output}\")")]
    ShellOutput {
        /// The shell command's first word.
        command: Box<str>,
        /// The first line that it printed.
        output: Box<str>,
    },
}

/// A double as PostgreSQL's `printf("%f")` writes it.
fn fixed(d: f64) -> String {
    if d.is_finite() {
        return format!("{d:.6}");
    }
    let mut text = Vec::new();
    write_double(d, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
