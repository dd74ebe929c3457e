//! The pgbench script language: parser, evaluator, random numbers and distributions. Pure: no I/O, no clock.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod builtin;
mod distributions;
mod error;
mod expr;
mod functions;
mod grammar;
mod hash;
mod lexer;
mod meta;
mod parse;
mod prng;
mod scan;
mod script;
mod seeding;
mod source;
mod sql;
mod value;
mod variables;

pub use builtin::{BUILTINS, builtin};
pub use error::{EvalError, EvalReason, ParseError};
pub use expr::Expr;
pub use functions::Function;
pub use parse::{check_variables, parse};
pub use prng::Prng;
pub use script::{Command, Read, Script, Segment, SleepUnit, SqlCommand};
pub use seeding::{Seeds, ThreadSeeds, choose_script};
pub use value::Value;
pub use variables::{Symbols, Variables};
