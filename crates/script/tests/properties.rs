//! What holds for every text.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use plinth_script::{Command, Prng, Segment, Symbols, Variables, parse};
use proptest::prelude::*;

/// Pieces that mean something to the parser, so that their jumble gets further than random characters do.
fn jumble() -> impl Strategy<Value = String> {
    let pieces = [
        "\\set ",
        "\\set x ",
        "\\sleep ",
        "\\",
        "\n",
        "\\\n",
        "\\\r\n",
        " ",
        ";",
        "'",
        "''",
        "\"",
        "E'",
        "\\'",
        "$$",
        "$a$",
        "$1",
        "--",
        "/*",
        "*/",
        "(",
        ")",
        ":",
        "::",
        ":x",
        ":größe",
        ":1",
        "x",
        "random",
        "random(1, 2)",
        ",",
        "1",
        "9223372036854775808",
        "1e5",
        ".5",
        "+",
        "-",
        "*",
        "/",
        "%",
        "<",
        "<=",
        "<>",
        "=",
        "and",
        "or",
        "not",
        "is null",
        "case when ",
        " then ",
        " else ",
        " end",
        "true",
        "null",
        "~",
        "#",
        "ms",
        "10ms",
        "SELECT ",
        "create function ",
        "begin ",
        "end ",
        "ü",
        "\u{a0}",
        "\t",
        "hash(",
        "permute(:x, 5, 6)",
    ];
    let piece = prop_oneof![
        20 => proptest::sample::select(pieces.to_vec()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Every statement's pieces, with variables by name, are the statement.
fn check(source: &str) -> Result<(), TestCaseError> {
    let mut symbols = Symbols::new();
    let script = match parse("any", source, &mut symbols) {
        Ok(script) => script,
        Err(error) => {
            let lines: Vec<&str> = source.split('\n').collect();
            prop_assert!((1..=lines.len()).contains(&error.line), "{}", error);
            let width = lines[error.line - 1].chars().count();
            prop_assert!(
                (1..=width + 1).contains(&error.column),
                "{} in {:?}",
                error,
                source
            );
            return Ok(());
        }
    };
    let mut variables = Variables::new(&symbols);
    let mut rng = Prng::seeded(1);
    for command in &script.commands {
        match command {
            Command::Sql(sql) => {
                let named: String = sql
                    .segments
                    .iter()
                    .map(|segment| match segment {
                        Segment::Text(text) => text.clone(),
                        Segment::Var(slot) => format!(":{}", symbols.name(*slot)),
                    })
                    .collect();
                prop_assert_eq!(&named, &sql.text);
                prop_assert!(sql.text.bytes().any(|b| !b" \t\n\x0b\x0c\r".contains(&b)));
                let slots = sql.segments.iter().filter_map(|segment| match segment {
                    Segment::Var(slot) => Some(*slot),
                    Segment::Text(_) => None,
                });
                prop_assert_eq!(slots.collect::<Vec<_>>(), sql.params.clone());
            }
            Command::Set { slot, expr, .. } => {
                if let Ok(value) = expr.eval(&variables, &mut rng) {
                    variables.set(*slot, value);
                }
            }
            Command::Sleep { duration, unit, .. } => {
                let _ = duration
                    .eval(&variables, &mut rng)
                    .and_then(|d| unit.to_microseconds(d));
            }
            other => prop_assert!(false, "unexpected {:?}", other),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn any_text_is_parsed_or_refused_at_a_place_in_it(source: String) {
        check(&source)?;
    }

    #[test]
    fn any_jumble_is_parsed_or_refused_at_a_place_in_it(source in jumble()) {
        check(&source)?;
    }

    #[test]
    fn any_expression_of_a_jumble_is_evaluated_or_refused(source in jumble()) {
        check(&format!("\\set x {source}"))?;
    }

    #[test]
    fn permute_is_a_bijection(size in 1_i64..200, seed: i64) {
        let mut symbols = Symbols::new();
        let source = format!("\\set p permute(:i, {size}, {seed})");
        let script = parse("permute", &source, &mut symbols).unwrap();
        let Command::Set { expr, .. } = &script.commands[0] else { panic!("not a \\set") };
        let mut variables = Variables::new(&symbols);
        let mut images: Vec<i64> = (0..size)
            .map(|i| {
                variables.set(symbols.find("i").unwrap(), plinth_script::Value::Int(i));
                expr.eval(&variables, &mut Prng::seeded(0)).unwrap().to_int().unwrap()
            })
            .collect();
        images.sort_unstable();
        prop_assert_eq!(images, (0..size).collect::<Vec<_>>());
    }
}
