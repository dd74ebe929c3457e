//! The functions of expressions: their names, and how many arguments they take.

/// The function of an expression node. Operators are functions too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`
    Div,
    /// `a % b`, `mod(a, b)`
    Mod,
    /// `a = b`
    Eq,
    /// `a <> b`
    Ne,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// `a & b`
    BitAnd,
    /// `a | b`
    BitOr,
    /// `a # b`
    BitXor,
    /// `a << b`
    ShiftLeft,
    /// `a >> b`
    ShiftRight,
    /// `NOT a`
    Not,
    /// `a IS b`: same type and same value, null included
    Is,
    /// `abs(a)`
    Abs,
    /// `debug(a)`: its argument, which is also shown
    Debug,
    /// `double(a)`
    Double,
    /// `exp(a)`
    Exp,
    /// `greatest(a, ...)`
    Greatest,
    /// `hash_fnv1a(value [, seed])`
    HashFnv1a,
    /// `hash(value [, seed])`, `hash_murmur2(value [, seed])`
    HashMurmur2,
    /// `int(a)`
    Int,
    /// `least(a, ...)`
    Least,
    /// `ln(a)`
    Ln,
    /// `permute(value, size [, seed])`
    Permute,
    /// `pi()`
    Pi,
    /// `pow(a, b)`, `power(a, b)`
    Pow,
    /// `random(min, max)`
    Random,
    /// `random_exponential(min, max, parameter)`
    RandomExponential,
    /// `random_gaussian(min, max, parameter)`
    RandomGaussian,
    /// `random_zipfian(min, max, parameter)`
    RandomZipfian,
    /// `sqrt(a)`
    Sqrt,
}

/// Most arguments that a function takes: pgbench's limit.
pub(crate) const MAX_ARGUMENTS: usize = 16;

/// The number of arguments of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arity {
    Exactly(usize),
    /// One to [`MAX_ARGUMENTS`].
    AtLeastOne,
    /// This many, and then a seed; left out, it is the variable `default_seed`.
    ThenSeed(usize),
}

impl Arity {
    pub(crate) fn accepts(self, count: usize) -> bool {
        match self {
            Self::Exactly(n) => count == n,
            Self::AtLeastOne => (1..=MAX_ARGUMENTS).contains(&count),
            Self::ThenSeed(n) => count == n || count == n + 1,
        }
    }
}

/// A function that is called by name.
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) function: Function,
    pub(crate) arity: Arity,
    /// The notation of a call, for error messages.
    pub(crate) usage: &'static str,
}

const fn named(name: &'static str, function: Function, arity: Arity, usage: &'static str) -> Named {
    Named {
        name,
        function,
        arity,
        usage,
    }
}

/// All functions that are called by name.
pub(crate) const FUNCTIONS: [Named; 21] = {
    use Arity::{AtLeastOne, Exactly, ThenSeed};
    use Function as F;
    [
        named("abs", F::Abs, Exactly(1), "abs(number)"),
        named("debug", F::Debug, Exactly(1), "debug(value)"),
        named("double", F::Double, Exactly(1), "double(number)"),
        named("exp", F::Exp, Exactly(1), "exp(number)"),
        named("greatest", F::Greatest, AtLeastOne, "greatest(number, ...)"),
        named("hash", F::HashMurmur2, ThenSeed(1), "hash(value [, seed])"),
        named(
            "hash_fnv1a",
            F::HashFnv1a,
            ThenSeed(1),
            "hash_fnv1a(value [, seed])",
        ),
        named(
            "hash_murmur2",
            F::HashMurmur2,
            ThenSeed(1),
            "hash_murmur2(value [, seed])",
        ),
        named("int", F::Int, Exactly(1), "int(number)"),
        named("least", F::Least, AtLeastOne, "least(number, ...)"),
        named("ln", F::Ln, Exactly(1), "ln(number)"),
        named("mod", F::Mod, Exactly(2), "mod(dividend, divisor)"),
        named(
            "permute",
            F::Permute,
            ThenSeed(2),
            "permute(value, size [, seed])",
        ),
        named("pi", F::Pi, Exactly(0), "pi()"),
        named("pow", F::Pow, Exactly(2), "pow(base, exponent)"),
        named("power", F::Pow, Exactly(2), "power(base, exponent)"),
        named("random", F::Random, Exactly(2), "random(min, max)"),
        named(
            "random_exponential",
            F::RandomExponential,
            Exactly(3),
            "random_exponential(min, max, parameter)",
        ),
        named(
            "random_gaussian",
            F::RandomGaussian,
            Exactly(3),
            "random_gaussian(min, max, parameter)",
        ),
        named(
            "random_zipfian",
            F::RandomZipfian,
            Exactly(3),
            "random_zipfian(min, max, parameter)",
        ),
        named("sqrt", F::Sqrt, Exactly(1), "sqrt(number)"),
    ]
};

/// The function of that name, in any case.
pub(crate) fn find(name: &str) -> Option<&'static Named> {
    FUNCTIONS
        .iter()
        .find(|known| known.name.eq_ignore_ascii_case(name))
}
