//! `\if`, `\elif`, `\else` and `\endif`: which step is next.

use plinth_script::{Command, EvalError, Expr, Value};

use crate::program::Step;

/// Where the condition at step `at` leads: behind it, or behind the next one that holds, or behind `\else` or `\endif`.
/// `evaluate` is also given the step that it evaluates for.
pub(crate) fn branch(
    steps: &[Step],
    mut at: usize,
    mut evaluate: impl FnMut(usize, &Expr) -> Result<Value, EvalError>,
) -> Result<usize, (usize, EvalError)> {
    while let Some(Step::Meta(
        Command::If {
            condition,
            otherwise,
        }
        | Command::Elif {
            condition,
            otherwise,
            ..
        },
    )) = steps.get(at)
    {
        let value = evaluate(at, condition).map_err(|error| (at, error))?;
        if value.is_true() {
            break;
        }
        at = *otherwise;
    }
    Ok(at + 1)
}
