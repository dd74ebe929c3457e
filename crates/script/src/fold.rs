//! Constant folding: computes once what is the same in every transaction, such as `100000 * :scale`.

use crate::expr::Expr;
use crate::functions::Function;
use crate::prng::Prng;
use crate::script::{Command, Script};
use crate::value::Value;
use crate::variables::{Symbols, Variables};

/// Computes the parts of the `\set` commands of a run's scripts that depend only on constants and on variables that are
/// given from outside (`initial`) and that no script sets. Draws no random numbers, and keeps expressions whose
/// evaluation fails.
pub fn fold_constants(scripts: &mut [Script], initial: &Variables) {
    // The columns of a result can have any name.
    if scripts.iter().any(|script| script.keeps().next().is_some()) {
        return;
    }
    let set: Vec<usize> = scripts.iter().flat_map(Script::sets).collect();
    let given = |slot: usize| initial.get(slot).filter(|_| !set.contains(&slot));
    for command in scripts.iter_mut().flat_map(|script| &mut script.commands) {
        if let Command::Set { expr, .. } = command {
            expr.fold(&given);
        }
    }
}

impl Function {
    /// Whether its value depends only on its arguments, and calling it has no side effect.
    fn is_constant(self) -> bool {
        !matches!(
            self,
            Self::Debug
                | Self::Random
                | Self::RandomExponential
                | Self::RandomGaussian
                | Self::RandomZipfian
        )
    }
}

impl Expr {
    fn fold(&mut self, given: &impl Fn(usize) -> Option<Value>) {
        match self {
            Self::Constant(_) => {}
            Self::Variable { slot, .. } => {
                if let Some(value) = given(*slot) {
                    *self = Self::Constant(value);
                }
            }
            Self::Call(function, arguments) => {
                arguments
                    .iter_mut()
                    .for_each(|argument| argument.fold(given));
                let is_known = |argument: &Self| matches!(argument, Self::Constant(_));
                if function.is_constant() && arguments.iter().all(is_known) {
                    // Neither is used: there are only constants, and no random function.
                    let no_variables = Variables::new(&Symbols::new());
                    let no_draws = &mut Prng::seeded(0);
                    if let Ok(value) = self.eval(&no_variables, no_draws) {
                        *self = Self::Constant(value);
                    }
                }
            }
            Self::And(a, b) | Self::Or(a, b) => {
                a.fold(given);
                b.fold(given);
            }
            Self::Case {
                branches,
                otherwise,
            } => {
                for (condition, value) in branches {
                    condition.fold(given);
                    value.fold(given);
                }
                otherwise.fold(given);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    fn folded(source: &str) -> Vec<Expr> {
        let mut symbols = Symbols::new();
        let scale = symbols.slot("scale");
        let mut scripts = [parse("s", source, &mut symbols).unwrap()];
        let mut initial = Variables::new(&symbols);
        initial.set(scale, Value::Int(50));
        fold_constants(&mut scripts, &initial);
        let [script] = scripts;
        let commands = script.commands.into_iter();
        commands
            .filter_map(|command| match command {
                Command::Set { expr, .. } => Some(expr),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn what_is_given_and_constant_is_worked_out() {
        for (source, value) in [
            ("\\set a 100000 * :scale\n", Value::Int(5_000_000)),
            ("\\set a hash_fnv1a(:scale, 7) % 1\n", Value::Int(0)),
            ("\\set a (1 + 2) / 2.0\n", Value::Double(1.5)),
        ] {
            assert_eq!(folded(source), [Expr::Constant(value)], "{source}");
        }
        let [Expr::Call(Function::Random, arguments)] =
            &folded("\\set a random(1, 2 * :scale)\n")[..]
        else {
            unreachable!("random numbers are never computed before");
        };
        assert_eq!(arguments[1], Expr::Constant(Value::Int(100)));
    }

    #[test]
    fn what_changes_fails_or_is_seen_stays() {
        for source in [
            "\\set a random(1, 1)\n",
            "\\set a debug(1)\n",
            "\\set a 1 / 0\n",
            "\\set a :unknown + 1\n",
            "\\set scale 2 * :scale\n",
            "select 1 as scale \\gset\n\\set a 2 * :scale\n",
        ] {
            assert!(
                !matches!(folded(source)[..], [Expr::Constant(_)]),
                "{source}"
            );
        }
    }
}
