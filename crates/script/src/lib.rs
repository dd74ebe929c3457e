//! The pgbench script language: parser, evaluator, random numbers and distributions. Pure: no I/O, no clock.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod builtin;
mod error;
mod expr;
mod parse;
mod prng;
mod script;
mod seeding;
mod value;
mod variables;

pub use builtin::{BUILTINS, builtin};
pub use error::{EvalError, ParseError};
pub use expr::Expr;
pub use parse::parse;
pub use prng::Prng;
pub use script::{Command, Script, Segment, SleepDuration, SleepUnit, SqlCommand};
pub use seeding::{Seeds, ThreadSeeds, choose_script};
pub use value::Value;
pub use variables::{Symbols, Variables};
