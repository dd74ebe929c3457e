//! Expressions against the real pgbench: random ones, evaluated by both with the same seed.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::process::Output;

use plinth_script::{Command, EvalError, Prng, Seeds, Symbols, Value, Variables, parse};
use support::Server;

const SEED: u64 = 20_260_314;
const EXPRESSIONS: usize = 6_000;
/// Runs of pgbench for expressions that have no value, each on its own.
const FAILURES: usize = 60;

/// Variables given with -D, and what expressions read.
const DEFINED: [(&str, &str); 6] = [
    ("n", "12"),
    ("big", "9223372036854775807"),
    ("half", ".5"),
    ("yes", "tr"),
    ("nil", "null"),
    ("no", "of"),
];

#[test]
fn random_expressions_have_pgbenchs_values() {
    let server = Server::start();
    let mut generator = Generator {
        rng: Prng::seeded(SEED),
    };
    let mut plinth = Evaluator::new();
    let mut script = String::new();
    let mut expected = Vec::new();
    let mut failures = Vec::new();
    while expected.len() < EXPRESSIONS {
        let text = generator.expression(4);
        match plinth.evaluate(&text) {
            Ok(value) => {
                script.push_str(&format!("\\set x debug({text})\n"));
                expected.push((text, describe(value)));
            }
            Err(message) => failures.push((text, message)),
        }
    }

    let output = server.pgbench(&arguments(), &[(&script, 1)]);
    let values = debugged(&output);
    assert_eq!(values.len(), expected.len());
    for ((text, ours), theirs) in expected.iter().zip(values) {
        assert_eq!(*ours, theirs, "{text}");
    }

    // pgbench does not look at the type that abs() gets, and makes what it will of a boolean.
    failures.retain(|(text, _): &(String, Option<String>)| !text.contains("abs("));
    // as many kinds of failure as there are
    failures.sort_by_key(|(text, message)| (message.clone(), text.len()));
    let step = failures.len().div_ceil(FAILURES);
    for (text, message) in failures.iter().step_by(step) {
        let output = server.pgbench(&arguments(), &[(&format!("\\set x {text}\n"), 1)]);
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert!(!output.status.success(), "pgbench has a value for {text}");
        let wanted = message.as_deref().unwrap_or("syntax error");
        assert!(
            stderr.contains(wanted),
            "{text}\nours: {wanted}\npgbench: {stderr}"
        );
    }
}

#[test]
fn distributions_are_pgbenchs_over_a_million_draws() {
    let server = Server::start();
    let calls = [
        "random(-9223372036854775807, -1)",
        "random(1, 1000)",
        "random_gaussian(1, 1000000000, 2.0)",
        "random_gaussian(-100, 100, 6.5)",
        "random_exponential(0, 1000000000000, 0.001)",
        "random_exponential(1, 100, 20)",
        "random_zipfian(1, 1000000000, 1.001)",
        "random_zipfian(1, 100, 1.5)",
        "random_zipfian(-5, 5, 7)",
    ];
    // Each call's draws are folded into one hash, so that one wrong draw in many shows.
    let mut script = String::from("\\set sum 0\n");
    for _ in 0..100 {
        for call in calls {
            script.push_str(&format!("\\set sum hash({call}, :sum)\n"));
        }
    }
    script.push_str("\\set x debug(:sum)\n");
    let transactions = 1_000;
    let output = server.pgbench(
        &[
            "-c",
            "1",
            "-t",
            &transactions.to_string(),
            &format!("--random-seed={SEED}"),
        ],
        &[(&script, 1)],
    );
    let theirs = debugged(&output);

    let mut symbols = Symbols::new();
    let parsed = parse("sums", &script.replace("debug", ""), &mut symbols).expect("a script");
    let mut variables = Variables::new(&symbols);
    let mut rng = Seeds::new(SEED, 1, 1).clients[0];
    let ours: Vec<String> = (0..transactions)
        .map(|_| describe(run(&parsed.commands, &mut variables, &mut rng).expect("a value")))
        .collect();
    assert_eq!(ours, theirs);
}

fn arguments() -> Vec<&'static str> {
    let mut arguments = vec!["-c", "1", "-t", "1", "--random-seed=20260314"];
    for define in [
        "n=12",
        "big=9223372036854775807",
        "half=.5",
        "yes=tr",
        "nil=null",
        "no=of",
    ] {
        arguments.extend(["-D", define]);
    }
    arguments
}

/// What the `debug()` of pgbench's only client printed, value by value.
fn debugged(output: &Output) -> Vec<String> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let value = |line: &str| Some(line.strip_prefix("debug(")?.split_once("): ")?.1.to_owned());
    stderr.lines().filter_map(value).collect()
}

/// A value as `debug()` prints it.
fn describe(value: Value) -> String {
    let mut text = Vec::new();
    value.write_text(&mut text);
    match value {
        Value::Null => "null".to_owned(),
        _ => format!(
            "{} {}",
            value.type_name(),
            String::from_utf8(text).expect("text")
        ),
    }
}

/// Runs `\set` commands; yields the last value.
fn run(
    commands: &[Command],
    variables: &mut Variables,
    rng: &mut Prng,
) -> Result<Value, EvalError> {
    let mut last = Value::Null;
    for command in commands {
        let Command::Set { slot, expr, .. } = command else {
            panic!("not a \\set: {command:?}")
        };
        last = expr.eval(variables, rng)?;
        variables.set(*slot, last);
    }
    Ok(last)
}

/// Plinth's side, with the generator that pgbench's only client has.
struct Evaluator {
    rng: Prng,
}

impl Evaluator {
    fn new() -> Self {
        Self {
            rng: Seeds::new(SEED, 1, 1).clients[0],
        }
    }

    /// The value, or the message of a failed evaluation, or nothing for a syntax error. A failure draws nothing.
    fn evaluate(&mut self, text: &str) -> Result<Value, Option<String>> {
        let mut symbols = Symbols::new();
        let script =
            parse("expression", &format!("\\set x {text}"), &mut symbols).map_err(|_| None)?;
        let mut rng = self.rng;
        let mut variables = Variables::new(&symbols);
        for (name, value) in DEFINED {
            if let Some(slot) = symbols.find(name) {
                variables.set_text(slot, value);
            }
        }
        if let Some(slot) = symbols.find("default_seed") {
            variables.set(slot, Value::Int(Seeds::new(SEED, 1, 1).default_seed));
        }
        let value =
            run(&script.commands, &mut variables, &mut rng).map_err(|e| Some(e.to_string()))?;
        self.rng = rng;
        Ok(value)
    }
}

/// Makes random expressions, with parentheses or without, so that precedences matter.
struct Generator {
    rng: Prng,
}

impl Generator {
    fn pick<'c>(&mut self, choices: &[&'c str]) -> &'c str {
        choices[self.rng.next_up_to(choices.len() as u64 - 1) as usize]
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.leaf();
        }
        match self.rng.next_up_to(11) {
            0 | 1 => self.leaf(),
            2 => format!("({})", self.expression(depth - 1)),
            3 => format!(
                "{} {}",
                self.pick(&["-", "+", "~", "not"]),
                self.expression(depth - 1)
            ),
            4 => {
                let test = [
                    "is null",
                    "is not null",
                    "is true",
                    "is not false",
                    "isnull",
                    "notnull",
                ];
                format!("{} {}", self.expression(depth - 1), self.pick(&test))
            }
            5 => self.case(depth),
            6 | 7 => self.call(depth),
            _ => {
                let operators = [
                    "+", "-", "*", "/", "%", "+", "-", "*", "=", "<>", "!=", "<", "<=", ">", ">=",
                    "&", "|", "#", "<<", ">>", "and", "or",
                ];
                let operator = self.pick(&operators);
                format!(
                    "{} {operator} {}",
                    self.expression(depth - 1),
                    self.expression(depth - 1)
                )
            }
        }
    }

    fn leaf(&mut self) -> String {
        let constants = [
            "0",
            "1",
            "2",
            "-3",
            "7",
            "63",
            "1000",
            "9223372036854775807",
            "-9223372036854775808",
            "0.5",
            "2.",
            ".25e1",
            "1e18",
            "-0.0",
            "1e-5",
            "123456.789",
            "1e300",
            "true",
            "false",
            "null",
            ":n",
            ":big",
            ":half",
            ":yes",
            ":nil",
            ":no",
        ];
        self.pick(&constants).to_owned()
    }

    fn case(&mut self, depth: usize) -> String {
        let (condition, value) = (self.expression(depth - 1), self.expression(depth - 1));
        let otherwise = self.expression(depth - 1);
        match self.rng.next_up_to(2) {
            0 => format!("CASE WHEN {condition} THEN {value} END"),
            1 => format!("case when {condition} then {value} else {otherwise} end"),
            _ => format!("CASE WHEN {condition} THEN 1 WHEN {value} THEN 2 ELSE {otherwise} END"),
        }
    }

    fn call(&mut self, depth: usize) -> String {
        let (a, b, c) = (
            self.expression(depth - 1),
            self.expression(depth - 1),
            self.expression(depth - 1),
        );
        let low = self.rng.next_up_to(20) as i64 - 10;
        let high = low + self.rng.next_up_to(1_000_000) as i64;
        match self.rng.next_up_to(11) {
            0 => format!(
                "{}({a})",
                self.pick(&["abs", "int", "double", "sqrt", "LN", "exp"])
            ),
            1 => format!(
                "{}({a}, {b})",
                self.pick(&["pow", "power", "mod", "hash", "hash_fnv1a", "hash_murmur2"])
            ),
            2 => format!("{}({a}, {b}, {c})", self.pick(&["least", "greatest"])),
            3 => format!(
                "{}({a})",
                self.pick(&["hash", "hash_fnv1a", "least", "greatest"])
            ),
            4 => format!("permute({a}, {high})"),
            5 => format!("permute({a}, {b}, {c})"),
            6 => "pi()".to_owned(),
            7 => format!("random({a}, {b})"),
            8 => format!("random({low}, {high})"),
            9 => format!(
                "random_gaussian({low}, {high}, {})",
                self.pick(&["2", "2.5", "1.9", ":n", "5.0"])
            ),
            10 => format!(
                "random_exponential({low}, {high}, {})",
                self.pick(&["0.1", "2.5", "-1", "0", "15"])
            ),
            _ => format!(
                "random_zipfian({low}, {high}, {})",
                self.pick(&["1.001", "1.5", "2", "1", "1001", "3.7"])
            ),
        }
    }
}
