//! Scripts with errors: the position, message and hint of each.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use plinth_script::{ParseError, Symbols, check_parameters, check_variables, parse};
use support::{newest_pgbench, refusal};

fn error_of(source: &str) -> ParseError {
    match parse("wrong.sql", source, &mut Symbols::new()) {
        Err(error) => error,
        Ok(script) => panic!("parsed {source:?} as {script:#?}"),
    }
}

/// A case of the table: a script, and its expected error.
struct Case {
    script: String,
    error: ParseError,
    /// pgbench's message; `None` when it is the same.
    pgbench: Option<String>,
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
    let mut rest = lines.peekable();
    let mut after = |key: &str| {
        let found = rest.next_if(|line| line.starts_with(key))?;
        Some(found[key.len()..].to_owned())
    };
    let (hint, pgbench) = (after("hint: "), after("pgbench: "));
    let condition = after("condition: ").map(|number| number.parse().expect(paragraph));
    assert_eq!(rest.next(), None, "{paragraph}");
    Case {
        script,
        pgbench,
        error: ParseError {
            file: "wrong.sql".to_owned(),
            line,
            column,
            message,
            hint,
            condition,
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
    for Case { script, error, .. } in table {
        assert_eq!(error_of(&script), error, "{script}");
    }
}

#[test]
fn pgbench_refuses_the_same_in_the_same_words() {
    let pgbench = newest_pgbench();
    for case in table() {
        let Case {
            script,
            error,
            pgbench: instead,
        } = case;
        let said = refusal(&pgbench, &script);
        match instead.as_deref() {
            Some("takes it") => assert_eq!(said, None, "{script}"),
            other => {
                let said = said.unwrap_or_else(|| panic!("pgbench takes {script}"));
                let wanted = other
                    .unwrap_or(&error.message)
                    .replace("wrong.sql", "script.sql");
                let wanted = match error.condition {
                    Some(number) => format!("command {number}: {wanted}"),
                    None => wanted,
                };
                assert!(said.contains(&wanted), "{script}\n{said}\n{wanted}");
            }
        }
    }
}

#[test]
fn unknown_functions_without_a_near_miss_list_the_functions() {
    let hint = error_of("\\set x uuid()").hint.unwrap();
    assert!(
        hint.starts_with("functions are abs, debug, double,") && hint.ends_with(", sqrt"),
        "{hint}"
    );
}

#[test]
fn an_error_is_printed_with_its_place() {
    assert_eq!(
        error_of("\n\\set x").to_string(),
        "wrong.sql:2:7: syntax error in command \"set\""
    );
}

#[test]
fn statements_have_at_most_255_parameters_where_they_are_parameters() {
    let check = |n: usize| {
        let source = format!("SELECT 1;\nSELECT {};", vec![":v"; n].join(", "));
        check_parameters(&[parse("many", &source, &mut Symbols::new()).unwrap()])
    };
    assert_eq!(check(255), Ok(()));
    assert_eq!(
        check(256).unwrap_err().to_string(),
        "many:2:1: statement has too many arguments (maximum is 255): 256"
    );
}

#[test]
fn deep_expressions_are_refused_before_they_exhaust_the_stack() {
    let nested = "expression is nested deeper than 100 operations in command \"set\"";
    let chained = "expression is nested deeper than 1000 operations in command \"set\"";
    for (deep, message) in [
        (
            format!("\\set x {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
            nested,
        ),
        (format!("\\set x {}1", "-".repeat(100_000)), nested),
        (format!("\\set x {}", "case when ".repeat(100_000)), nested),
        (format!("\\set x {}", "abs(".repeat(100_000)), nested),
        (format!("\\set x 1{}", " + 1".repeat(100_000)), chained),
    ] {
        let error = error_of(&deep);
        assert_eq!(error.message, message);
        assert_eq!(
            error.hint.as_deref(),
            Some("split it into several \\set commands")
        );
    }
    for long in [
        format!("\\set x 1{}", " + 1".repeat(999)),
        format!("\\set x {}1{}", "abs(".repeat(99), ")".repeat(99)),
    ] {
        assert!(parse("long", &long, &mut Symbols::new()).is_ok());
    }
}

#[test]
fn variables_that_nothing_sets_are_found() {
    // script, whether statements count, and the error if there is one
    type Undefined = (usize, usize, &'static str, &'static str);
    let table: [(&str, bool, Option<Undefined>); 14] = [
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
        ("SELECT 1 AS a \\gset\nSELECT :b;", true, None),
        ("SELECT 1 AS a \\aset p_\nSELECT :p_b;", true, None),
        (
            "SELECT 1 AS a \\gset p_\nSELECT :a;",
            true,
            Some((2, 1, "a", "set it before: \\set a expression")),
        ),
        ("\\setshell n echo 1\n\\sleep :n us", false, None),
        (
            "\\shell echo ::n :n",
            false,
            Some((1, 17, "n", "set it before: \\set n expression")),
        ),
        (
            "\\if :flag\n\\endif",
            false,
            Some((1, 5, "flag", "set it before: \\set flag expression")),
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
            condition: None,
        });
        assert_eq!(found, wanted, "{source}");
    }
}

#[test]
fn names_that_no_variable_can_have_are_found_by_the_check() {
    let name = "names are letters, digits and underscores, and do not begin with a digit";
    let prefix = "a prefix is letters, digits and underscores, and does not begin with a digit";
    let table = [
        (
            "\\set :x 1",
            6,
            ":x",
            "set",
            "to set it, write x without the colon",
        ),
        ("\\set 1x 1", 6, "1x", "set", name),
        ("\\set a-b :unset", 6, "a-b", "set", name),
        ("\\set a-b 1\n\\set c-d 1", 6, "a-b", "set", name),
        ("\\setshell 1x echo 1", 11, "1x", "setshell", name),
        ("SELECT 1 \\gset 1x", 16, "1x", "gset", prefix),
        ("SELECT 1 \\aset a-", 16, "a-", "aset", prefix),
    ];
    for (source, column, name, command, hint) in table {
        let mut symbols = Symbols::new();
        let scripts = [
            parse("right", "\\set x 1", &mut symbols).unwrap(),
            parse("wrong.sql", source, &mut symbols).unwrap(),
        ];
        for in_sql in [false, true] {
            let error = check_variables(&scripts, &symbols, &[], in_sql).unwrap_err();
            let message = format!(
                "wrong.sql:1:{column}: invalid variable name: \"{name}\" in command \"{command}\""
            );
            assert_eq!(error.to_string(), message, "{source}");
            assert_eq!(error.hint.as_deref(), Some(hint), "{source}");
        }
        let pgbench = newest_pgbench();
        assert_eq!(
            refusal(&pgbench, source),
            None,
            "pgbench finds it in the run"
        );
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
