//! Expressions against the real pgbench, the distribution's and the newest: random ones, evaluated by both with the
//! same seed, with and without type errors and syntax errors.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;
use std::process::Output;

use plinth_script::{Command, EvalError, Prng, Seeds, Symbols, Value, Variables, parse};
use support::{Server, how_many, newest_pgbench, pgbenches, refusal};

const SEED: u64 = 20_260_314;
/// Number of clients that fail in one run of pgbench, each in an expression of its own.
const FAILING_AT_ONCE: usize = 30;

/// Variables given with -D, and their values in expressions.
const DEFINED: [(&str, &str); 10] = [
    ("n", "12"),
    ("big", "9223372036854775807"),
    ("half", ".5"),
    ("yes", "tr"),
    ("nil", "null"),
    ("no", "of"),
    ("inf", "Infinity"),
    ("nan", "NaN"),
    ("text", "12 monkeys"),
    ("huge", "9223372036854775808"),
];

#[test]
fn random_expressions_have_pgbenchs_values() {
    let server = Server::start();
    let mut generator = Generator {
        rng: Prng::seeded(SEED),
    };
    let mut plinth = Evaluator::new(1, 0);
    let mut script = String::new();
    let mut expected = Vec::new();
    let mut failing = Vec::new();
    let (values, failures) = (how_many(6_000), how_many(600));
    while expected.len() < values || failing.len() < failures {
        let text = generator.expression(4);
        match plinth.evaluate(&text) {
            Ok(value) if expected.len() < values => {
                script.push_str(&format!("\\set x debug({text})\n"));
                expected.push((text, describe(value)));
            }
            // pgbench does not check the type of the argument of abs(), so its result for a boolean is arbitrary.
            Err(Some(_)) if failing.len() < failures && !text.contains("abs(") => {
                failing.push(text)
            }
            _ => {}
        }
    }
    for pgbench in pgbenches() {
        let output = server.run_pgbench(&pgbench, &arguments(1), &[(&script, 1)]);
        let theirs = debugged(&output);
        assert_eq!(theirs.len(), expected.len());
        for ((text, ours), theirs) in expected.iter().zip(theirs) {
            assert_eq!(*ours, theirs, "{text}");
        }
        for texts in failing.chunks(FAILING_AT_ONCE) {
            check_failures(&server, &pgbench, texts);
        }
    }
}

/// Lets each of several clients evaluate an expression that fails, at least for the first client, and compares the
/// errors.
fn check_failures(server: &Server, pgbench: &Path, texts: &[String]) {
    let mut script = String::from("\\if false\n");
    for (client, text) in texts.iter().enumerate() {
        script.push_str(&format!(
            "\\elif :client_id = {client}\n\\set x debug({text})\n"
        ));
    }
    script.push_str("\\endif\n");
    let output = server.run_pgbench(pgbench, &arguments(texts.len()), &[(&script, 1)]);
    let said = String::from_utf8_lossy(&output.stderr);
    let mut lines = said.lines();
    for (client, text) in texts.iter().enumerate() {
        // With one thread, the clients print one after another; the last line of each reports that it aborted.
        let mut theirs = String::new();
        let gives_up = format!("client {client} aborted");
        let ours = Evaluator::new(texts.len(), client).evaluate(text);
        for line in lines.by_ref() {
            theirs.push_str(line);
            if line.contains(&gives_up) || (ours.is_ok() && line.starts_with("debug(")) {
                break;
            }
        }
        let wanted = match ours {
            Ok(value) => describe(value),
            Err(message) => message.expect("it was parsed before"),
        };
        // For two kinds of text that spell no value, pgbench has another message, or none.
        let is_same = theirs.contains(&wanted)
            || (wanted.contains(":huge") || wanted.contains("\"huge\""))
                && theirs.contains("aborted");
        assert!(is_same, "{text}\nours: {wanted}\npgbench: {theirs}");
    }
}

#[test]
fn broken_expressions_are_refused_in_pgbenchs_words() {
    let pgbench = newest_pgbench();
    let mut generator = Generator {
        rng: Prng::seeded(SEED + 1),
    };
    let mut refused = 0;
    for _ in 0..how_many(400) {
        let text = generator.broken();
        if text.contains("( ,") {
            continue; // pgbench's grammar accepts a leading comma.
        }
        let script = format!("\\set x {text}\n");
        let ours = parse("script.sql", &script, &mut Symbols::new());
        let theirs = refusal(&pgbench, &script);
        match (&ours, &theirs) {
            (Ok(_), None) => {}
            (Err(error), Some(theirs)) => {
                refused += 1;
                let is_same = theirs.contains(&error.message);
                // After an error pgbench reads to the end of the line, and reports a character there that it cannot
                // read instead.
                let reads_on =
                    theirs.contains("unexpected character") || theirs.contains("overflow");
                assert!(is_same || reads_on, "{text}\n{error}\n{theirs}");
            }
            _ => panic!("{text}\nours: {ours:?}\npgbench: {theirs:?}"),
        }
    }
    assert!(refused > how_many(400) / 4, "only {refused}");
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
    // All draws of a call are combined into one hash, so that a single wrong draw is detected.
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
    let mut rng = Seeds::new(SEED, 1, 1, true).clients[0];
    let ours: Vec<String> = (0..transactions)
        .map(|_| describe(run(&parsed.commands, &mut variables, &mut rng).expect("a value")))
        .collect();
    assert_eq!(ours, theirs);
}

fn arguments(clients: usize) -> Vec<&'static str> {
    let mut arguments = vec!["-t", "1", "--random-seed=20260314", "-c"];
    arguments.push(match clients {
        1 => "1",
        // The seeds of the first clients do not depend on the number of clients.
        _ => "30",
    });
    for define in [
        "n=12",
        "big=9223372036854775807",
        "half=.5",
        "yes=tr",
        "nil=null",
        "no=of",
        "inf=Infinity",
        "nan=NaN",
        "text=12 monkeys",
        "huge=9223372036854775808",
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

/// Runs `\set` commands; returns the last value.
fn run(
    commands: &[Command],
    variables: &mut Variables,
    rng: &mut Prng,
) -> Result<Value, EvalError> {
    let mut last = Value::Null;
    for command in commands {
        let Command::Set { target, expr } = command else {
            panic!("not a \\set: {command:?}")
        };
        last = expr.eval(variables, rng)?;
        variables.set(target.slot("set")?, last);
    }
    Ok(last)
}

/// Plinth's side, with the generator of one of pgbench's clients.
struct Evaluator {
    rng: Prng,
    default_seed: i64,
}

impl Evaluator {
    fn new(clients: usize, client: usize) -> Self {
        let clients = if clients == 1 { 1 } else { FAILING_AT_ONCE };
        let seeds = Seeds::new(SEED, clients, 1, true);
        Self {
            rng: seeds.clients[client],
            default_seed: seeds.default_seed.unwrap(),
        }
    }

    /// The value, or the message of a failed evaluation, or nothing for a syntax error. A failed evaluation draws no
    /// random numbers.
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
            variables.set(slot, Value::Int(self.default_seed));
        }
        let value =
            run(&script.commands, &mut variables, &mut rng).map_err(|e| Some(e.to_string()))?;
        self.rng = rng;
        Ok(value)
    }
}

/// Generates random expressions, with and without parentheses, so that precedences matter.
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
            "9007199254740993",
            "-9223372036854775807",
            "4611686018427387904",
            "9.2233720368547758e18",
            "-9.3e18",
            "1.7e308",
            "2.3e-308",
            "64",
            "-1",
            "true",
            "false",
            "null",
            ":inf",
            ":nan",
            ":text",
            ":huge",
            ":unset",
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

    /// An expression with a word or a character removed, doubled, inserted or replaced.
    fn broken(&mut self) -> String {
        let mut words: Vec<String> = self
            .expression(3)
            .replace('(', " ( ")
            .replace(')', " ) ")
            .replace(',', " , ")
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        for _ in 0..=self.rng.next_up_to(1) {
            let at = self.rng.next_up_to(words.len() as u64 - 1) as usize;
            let pieces = [
                "+",
                "*",
                ")",
                "(",
                "1",
                ":n",
                "end",
                "when",
                "is",
                "null",
                "abs",
                "foo",
                "else",
                "]",
                ";",
                "!",
                "99999999999999999999",
                "1e400",
                "case",
                "=",
                "not",
                "::n",
                ".",
                "1.5.5",
                "\\",
                "'",
                "@",
            ];
            let piece = self.pick(&pieces).to_owned();
            match self.rng.next_up_to(3) {
                0 if words.len() > 1 => drop(words.remove(at)),
                1 => words.insert(at, words[at].clone()),
                2 => words[at] = piece,
                _ => words.insert(at, piece),
            }
        }
        words.join(" ")
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
