//! The pgbench script language: parser, evaluator, random numbers and distributions. Pure: no I/O, no clock.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod block;
mod builtin;
mod conditional;
pub mod distributions;
mod double;
mod error;
mod expr;
mod fold;
mod functions;
mod grammar;
mod hash;
mod lexer;
pub mod lossless;
mod meta;
mod options;
mod parse;
mod prng;
mod reader;
mod scan;
mod script;
mod seeding;
mod shell;
mod sleep;
mod source;
mod sql;
mod value;
mod variables;

pub use block::BlockStatement;
pub use builtin::{BUILTINS, Builtin, builtin};
pub use error::{EvalError, EvalReason, ParseError};
pub use expr::{Expr, Observer};
pub use fold::fold_constants;
pub use functions::Function;
pub use options::{OptionError, SeedOption, find_builtin, script_weight};
pub use parse::{check_parameters, check_variables, parse};
pub use prng::Prng;
pub use script::{Command, Keep, Script, Segment, SqlCommand, Target, Written};
pub use seeding::{Seeds, ThreadSeeds, choose_script};
pub use shell::{SHELL_OUTPUT_BYTES, ShellCommand};
pub use sleep::Sleep;
pub use source::is_name;
pub use value::Value;
pub use variables::{Read, Symbols, Variables};
