//! Scripts that are wrong: where, why, and what to do about it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use plinth_script::{ParseError, Symbols, check_variables, parse};

fn error_of(source: &str) -> ParseError {
    match parse("wrong.sql", source, &mut Symbols::new()) {
        Err(error) => error,
        Ok(script) => panic!("parsed {source:?} as {script:#?}"),
    }
}

/// A case of the table: a script, and the error it must give.
struct Case {
    script: String,
    error: ParseError,
}

/// Reads the table: see its first lines.
fn table() -> Vec<Case> {
    let text = include_str!("wrong_scripts.txt");
    let is_case = |paragraph: &&str| paragraph.starts_with("script: ");
    text.split("\n\n").filter(is_case).map(case).collect()
}

fn case(paragraph: &str) -> Case {
    let mut lines = paragraph.lines();
    let script = lines
        .next()
        .and_then(|line| line.strip_prefix("script: "))
        .expect(paragraph);
    let script = script
        .replace('⏎', "\n")
        .replace('␍', "\r")
        .replace('␀', "\0");
    let mut error = lines.next().expect(paragraph).splitn(3, ':');
    let mut number = || {
        error
            .next()
            .and_then(|text| text.parse().ok())
            .expect(paragraph)
    };
    let (line, column) = (number(), number());
    let message = error.next().expect(paragraph).trim_start().to_owned();
    let hint = lines
        .next()
        .map(|line| line.strip_prefix("hint: ").expect(paragraph).to_owned());
    Case {
        script,
        error: ParseError {
            file: "wrong.sql".to_owned(),
            line,
            column,
            message,
            hint,
        },
    }
}

#[test]
fn errors_name_place_reason_and_remedy() {
    let table = table();
    assert!(
        table.len() > 50,
        "the table was not read: {} cases",
        table.len()
    );
    for Case { script, error } in table {
        assert_eq!(error_of(&script), error, "{script}");
    }
}

#[test]
fn unknown_functions_without_a_near_miss_list_the_functions() {
    let hint = error_of("\\set x uuid()").hint.unwrap();
    assert!(
        hint.starts_with("functions are abs, double,") && hint.ends_with(", sqrt"),
        "{hint}"
    );
}

#[test]
fn an_error_is_printed_with_its_place() {
    assert_eq!(
        error_of("\n\\set x").to_string(),
        "wrong.sql:2:7: missing expression"
    );
}

#[test]
fn statements_have_at_most_255_variables() {
    let many = |n: usize| format!("SELECT {};", vec![":v"; n].join(", "));
    assert!(parse("many", &many(255), &mut Symbols::new()).is_ok());
    assert_eq!(
        error_of(&many(256)).message,
        "the statement has more than 255 variables"
    );
}

#[test]
fn deep_expressions_are_refused_before_they_exhaust_the_stack() {
    for deep in [
        format!("\\set x {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("\\set x {}1", "-".repeat(100_000)),
        format!("\\set x 1{}", " + 1".repeat(100_000)),
        format!("\\set x {}", "case when ".repeat(100_000)),
    ] {
        let error = error_of(&deep);
        assert_eq!(
            error.message,
            "the expression nests deeper than 100 operations"
        );
        assert_eq!(
            error.hint.as_deref(),
            Some("split it into several \\set commands")
        );
    }
    let long = format!("\\set x 1{}", " + 1".repeat(99));
    assert!(parse("long", &long, &mut Symbols::new()).is_ok());
}

#[test]
fn variables_that_nothing_sets_are_found() {
    // script, whether statements count, and the error if there is one
    type Undefined = (usize, usize, &'static str, &'static str);
    let table: [(&str, bool, Option<Undefined>); 8] = [
        ("\\set aid 1\nSELECT :aid;", true, None),
        ("SELECT :scale;", true, None),
        ("SELECT '{\"a\":true}';", false, None),
        (
            "SELECT 1; SELECT :x;",
            true,
            Some((1, 11, "x", "set it before: \\set x expression")),
        ),
        (
            "\\set aid 1\nSELECT :adi;",
            true,
            Some((2, 1, "adi", "did you mean :aid?")),
        ),
        (
            "\\set x random(1, :scael)",
            false,
            Some((1, 18, "scael", "did you mean :scale?")),
        ),
        (
            "\\sleep :pause ms",
            false,
            Some((1, 8, "pause", "set it before: \\set pause expression")),
        ),
        (
            "\\set x permute(1, 10)",
            false,
            Some((
                1,
                8,
                "default_seed",
                "set it before: \\set default_seed expression",
            )),
        ),
    ];
    for (source, in_sql, wanted) in table {
        let mut symbols = Symbols::new();
        let scripts = [parse("s.sql", source, &mut symbols).unwrap()];
        let found = check_variables(&scripts, &symbols, &["scale"], in_sql).err();
        let wanted = wanted.map(|(line, column, name, hint)| ParseError {
            file: "s.sql".to_owned(),
            line,
            column,
            message: format!("undefined variable \"{name}\""),
            hint: Some(hint.to_owned()),
        });
        assert_eq!(found, wanted, "{source}");
    }
}

#[test]
fn a_variable_that_another_script_sets_is_set() {
    let mut symbols = Symbols::new();
    let scripts = [
        parse("reads", "SELECT :a;", &mut symbols).unwrap(),
        parse("sets", "\\set a 1", &mut symbols).unwrap(),
    ];
    assert_eq!(check_variables(&scripts, &symbols, &[], true), Ok(()));
}
