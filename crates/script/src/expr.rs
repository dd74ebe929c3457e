//! Expressions of `\set`, as a tree.

use crate::error::EvalError;
use crate::prng::Prng;
use crate::value::Value;
use crate::variables::Variables;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A constant.
    Constant(Value),
}

impl Expr {
    /// The value of the expression, given a client's variables and its generator.
    ///
    /// # Errors
    /// What pgbench reports while a script runs: see [`EvalError`].
    pub fn eval(&self, _variables: &Variables, _rng: &mut Prng) -> Result<Value, EvalError> {
        match self {
            Self::Constant(value) => Ok(*value),
        }
    }
}
