//! Expressions of `\set`: a tree, and its evaluation.

use crate::distributions::{self, MIN_GAUSSIAN, ZIPFIAN_RANGE};
use crate::error::{EvalError, EvalReason};
use crate::functions::{Function, MAX_ARGUMENTS};
use crate::hash;
use crate::prng::Prng;
use crate::value::Value;
use crate::variables::Variables;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A constant.
    Constant(Value),
    /// `:name`
    Variable {
        /// Slot of the variable.
        slot: usize,
        /// Its name, for errors.
        name: Box<str>,
    },
    /// A function or operator; all its arguments are evaluated, from left to right.
    Call(Function, Vec<Expr>),
    /// `a AND b`; `b` is not evaluated when `a` decides.
    And(Box<Expr>, Box<Expr>),
    /// `a OR b`; `b` is not evaluated when `a` decides.
    Or(Box<Expr>, Box<Expr>),
    /// `CASE WHEN condition THEN value ... ELSE otherwise END`
    Case {
        /// Conditions with their values.
        branches: Vec<(Expr, Expr)>,
        /// The value when no condition is true.
        otherwise: Box<Expr>,
    },
}

/// Called with every value that `debug()` is called with.
pub trait Observer: FnMut(Value) {}

impl<F: FnMut(Value)> Observer for F {}

impl Expr {
    /// The value of the expression, given a client's variables and its generator. Does not allocate, unless it fails.
    ///
    /// # Errors
    /// The error that pgbench reports while a script runs: see [`EvalReason`].
    #[inline]
    pub fn eval(&self, variables: &Variables, rng: &mut Prng) -> Result<Value, EvalError> {
        self.eval_observed(variables, rng, &mut |_| {})
    }

    /// [`Expr::eval`], which passes `observer` the values that calls of `debug()` have to show.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn eval_observed<O: Observer>(
        &self,
        variables: &Variables,
        rng: &mut Prng,
        observer: &mut O,
    ) -> Result<Value, EvalError> {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Variable { slot, name } => variables
                .get(*slot)
                .ok_or_else(|| variables.read_error(*slot, name)),
            Self::Call(function, arguments) => call(*function, arguments, variables, rng, observer),
            Self::And(a, b) => decide(a, b, false, variables, rng, observer),
            Self::Or(a, b) => decide(a, b, true, variables, rng, observer),
            Self::Case {
                branches,
                otherwise,
            } => {
                for (condition, value) in branches {
                    if condition.eval_observed(variables, rng, observer)?.is_true() {
                        return value.eval_observed(variables, rng, observer);
                    }
                }
                otherwise.eval_observed(variables, rng, observer)
            }
        }
    }

    /// Whether `debug()` is called anywhere in it.
    #[must_use]
    pub fn debugs(&self) -> bool {
        match self {
            Self::Constant(_) | Self::Variable { .. } => false,
            Self::Call(function, arguments) => {
                *function == Function::Debug || arguments.iter().any(Self::debugs)
            }
            Self::And(a, b) | Self::Or(a, b) => a.debugs() || b.debugs(),
            Self::Case {
                branches,
                otherwise,
            } => otherwise.debugs() || branches.iter().any(|(c, v)| c.debugs() || v.debugs()),
        }
    }

    /// [`Expr::eval_observed`], without the cost of a call for a constant or a variable.
    #[inline]
    fn argument<O: Observer>(
        &self,
        variables: &Variables,
        rng: &mut Prng,
        observer: &mut O,
    ) -> Result<Value, EvalError> {
        let leaf = match self {
            Self::Constant(value) => Some(*value),
            Self::Variable { slot, .. } => variables.get(*slot),
            _ => None,
        };
        match leaf {
            Some(value) => Ok(value),
            None => self.eval_observed(variables, rng, observer),
        }
    }
}

/// `a AND b` (decided by false) or `a OR b` (decided by true). Unlike in SQL, null on the left gives null for any
/// right side.
fn decide<O: Observer>(
    a: &Expr,
    b: &Expr,
    deciding: bool,
    variables: &Variables,
    rng: &mut Prng,
    observer: &mut O,
) -> Result<Value, EvalError> {
    let left = a.eval_observed(variables, rng, observer)?;
    if left == Value::Null || left.to_bool()? == deciding {
        return Ok(left);
    }
    match b.eval_observed(variables, rng, observer)? {
        Value::Null => Ok(Value::Null),
        right => Ok(Value::Bool(right.to_bool()?)),
    }
}

fn call<O: Observer>(
    function: Function,
    arguments: &[Expr],
    variables: &Variables,
    rng: &mut Prng,
    observer: &mut O,
) -> Result<Value, EvalError> {
    // Nearly all calls are like `random(1, 100000 * :scale)`, so this is the hot path.
    if let [a, b] = arguments {
        let a = a.argument(variables, rng, observer)?;
        let b = b.argument(variables, rng, observer)?;
        return match (function, a, b) {
            (Function::Random, Value::Int(min), Value::Int(max)) => uniform(min, max, rng),
            (Function::Mul, Value::Int(l), Value::Int(r)) => integer_arithmetic(function, l, r),
            _ => apply(function, &[a, b], rng, observer),
        };
    }
    let mut values = [Value::Null; MAX_ARGUMENTS];
    for (value, argument) in values.iter_mut().zip(arguments) {
        *value = argument.argument(variables, rng, observer)?;
    }
    apply(function, &values[..arguments.len()], rng, observer)
}

/// Applies a function to the right number of arguments. If one of them is null, the result is null, except of `IS` and
/// `debug`.
#[inline]
fn apply<O: Observer>(
    function: Function,
    args: &[Value],
    rng: &mut Prng,
    observer: &mut O,
) -> Result<Value, EvalError> {
    use Function as F;
    let takes_null = matches!(function, F::Is | F::Debug);
    if !takes_null && args.iter().any(|value| matches!(value, Value::Null)) {
        return Ok(Value::Null);
    }
    match function {
        F::Add | F::Sub | F::Mul | F::Div | F::Mod => arithmetic(function, args[0], args[1]),
        F::Eq | F::Ne | F::Lt | F::Le => compare(function, args[0], args[1]),
        F::BitAnd | F::BitOr | F::BitXor | F::ShiftLeft | F::ShiftRight => {
            bitwise(function, args[0].to_int()?, args[1].to_int()?)
        }
        F::Not => Ok(Value::Bool(!args[0].to_bool()?)),
        F::Is => Ok(Value::Bool(args[0] == args[1])),
        F::Pi => Ok(Value::Double(std::f64::consts::PI)),
        F::Abs => match args[0] {
            Value::Int(i) => Ok(Value::Int(i.wrapping_abs())),
            other => {
                let d = other.to_double()?;
                Ok(Value::Double(if d < 0.0 { -d } else { d })) // and not d.abs(): -0 stays -0
            }
        },
        F::Debug => {
            observer(args[0]);
            Ok(args[0])
        }
        F::Int => Ok(Value::Int(args[0].to_int()?)),
        F::Double => Ok(Value::Double(args[0].to_double()?)),
        F::Sqrt => Ok(Value::Double(args[0].to_double()?.sqrt())),
        F::Ln => Ok(Value::Double(args[0].to_double()?.ln())),
        F::Exp => Ok(Value::Double(args[0].to_double()?.exp())),
        F::Pow => Ok(Value::Double(
            args[0].to_double()?.powf(args[1].to_double()?),
        )),
        F::Least => extremum(args, |a, b| a < b, |a, b| a < b),
        F::Greatest => extremum(args, |a, b| a > b, |a, b| a > b),
        F::Random => uniform(args[0].to_int()?, args[1].to_int()?, rng),
        F::RandomGaussian | F::RandomExponential | F::RandomZipfian => {
            random(function, args, rng).map(Value::Int)
        }
        F::HashFnv1a => Ok(Value::Int(hash::fnv1a(
            args[0].to_int()?,
            args[1].to_int()?,
        ))),
        F::HashMurmur2 => Ok(Value::Int(hash::murmur2(
            args[0].to_int()?,
            args[1].to_int()?,
        ))),
        F::Permute => permute(args[0].to_int()?, args[1].to_int()?, args[2].to_int()?),
    }
}

fn is_double(value: Value) -> bool {
    matches!(value, Value::Double(_))
}

/// Computes with doubles if either side is one, else with integers; `%` always takes integers.
fn arithmetic(function: Function, left: Value, right: Value) -> Result<Value, EvalError> {
    use Function as F;
    if function != F::Mod && (is_double(left) || is_double(right)) {
        let (l, r) = (left.to_double()?, right.to_double()?);
        return Ok(Value::Double(match function {
            F::Add => l + r,
            F::Sub => l - r,
            F::Mul => l * r,
            _ => l / r,
        }));
    }
    integer_arithmetic(function, left.to_int()?, right.to_int()?)
}

fn integer_arithmetic(function: Function, l: i64, r: i64) -> Result<Value, EvalError> {
    use Function as F;
    if r == 0 && matches!(function, F::Div | F::Mod) {
        return Err(EvalReason::DivisionByZero.into());
    }
    let (result, name) = match function {
        F::Add => (l.checked_add(r), "add"),
        F::Sub => (l.checked_sub(r), "sub"),
        F::Mul => (l.checked_mul(r), "mul"),
        F::Div => (l.checked_div(r), "div"),
        _ => (Some(l.wrapping_rem(r)), "mod"),
    };
    result
        .map(Value::Int)
        .ok_or_else(|| EvalReason::IntOverflow(name).into())
}

fn compare(function: Function, left: Value, right: Value) -> Result<Value, EvalError> {
    if is_double(left) || is_double(right) {
        Ok(Value::Bool(holds(
            function,
            left.to_double()?,
            right.to_double()?,
        )))
    } else {
        Ok(Value::Bool(holds(
            function,
            left.to_int()?,
            right.to_int()?,
        )))
    }
}

fn holds<T: PartialOrd>(function: Function, left: T, right: T) -> bool {
    match function {
        Function::Eq => left == right,
        Function::Ne => left != right,
        Function::Lt => left < right,
        _ => left <= right,
    }
}

/// Shifts use the lowest six bits of their distance, as the processors do on which pgbench relies.
fn bitwise(function: Function, left: i64, right: i64) -> Result<Value, EvalError> {
    Ok(Value::Int(match function {
        Function::BitAnd => left & right,
        Function::BitOr => left | right,
        Function::BitXor => left ^ right,
        Function::ShiftLeft => left.wrapping_shl(right as u32),
        _ => left.wrapping_shr(right as u32),
    }))
}

/// `least` and `greatest`: compares doubles if any argument is one. `*_wins` returns whether its first argument wins.
fn extremum(
    args: &[Value],
    double_wins: fn(f64, f64) -> bool,
    int_wins: fn(i64, i64) -> bool,
) -> Result<Value, EvalError> {
    if args.iter().copied().any(is_double) {
        let mut best = args[0].to_double()?;
        for value in &args[1..] {
            let value = value.to_double()?;
            best = if double_wins(best, value) {
                best
            } else {
                value
            };
        }
        return Ok(Value::Double(best));
    }
    let mut best = args[0].to_int()?;
    for value in &args[1..] {
        let value = value.to_int()?;
        best = if int_wins(best, value) { best } else { value };
    }
    Ok(Value::Int(best))
}

fn uniform(min: i64, max: i64, rng: &mut Prng) -> Result<Value, EvalError> {
    check_range(min, max)?;
    Ok(Value::Int(distributions::uniform(rng, min, max)))
}

fn check_range(min: i64, max: i64) -> Result<(), EvalError> {
    if min > max {
        return Err(EvalReason::EmptyRange.into());
    }
    match max.checked_sub(min).and_then(|width| width.checked_add(1)) {
        Some(_) => Ok(()),
        None => Err(EvalReason::RangeTooLarge.into()),
    }
}

/// The random functions that take a parameter.
fn random(function: Function, args: &[Value], rng: &mut Prng) -> Result<i64, EvalError> {
    let (min, max) = (args[0].to_int()?, args[1].to_int()?);
    check_range(min, max)?;
    let parameter = args[2].to_double()?;
    match function {
        Function::RandomGaussian if parameter < MIN_GAUSSIAN || parameter.is_nan() => {
            Err(EvalReason::GaussianParameter(parameter).into())
        }
        Function::RandomGaussian => Ok(distributions::gaussian(rng, min, max, parameter)),
        Function::RandomZipfian if !ZIPFIAN_RANGE.contains(&parameter) => {
            Err(EvalReason::ZipfianParameter(parameter).into())
        }
        Function::RandomZipfian => Ok(distributions::zipfian(rng, min, max, parameter)),
        _ if parameter <= 0.0 || parameter.is_nan() => {
            Err(EvalReason::ExponentialParameter(parameter).into())
        }
        _ => Ok(distributions::exponential(rng, min, max, parameter)),
    }
}

fn permute(value: i64, size: i64, seed: i64) -> Result<Value, EvalError> {
    if size <= 0 {
        return Err(EvalReason::PermuteSize.into());
    }
    Ok(Value::Int(hash::permute(value, size, seed)))
}
