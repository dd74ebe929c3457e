//! Meta commands, one by one: how they are parsed, and what can be checked without running them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use plinth_script::{Command, Expr, Keep, Prng, Script, Symbols, Value, Variables, parse};

fn parsed(source: &str) -> Script {
    parse("s", source, &mut Symbols::new()).unwrap()
}

#[test]
fn commands_are_numbered_and_named_as_pgbench_does() {
    let script = parsed(
        "\\set x 1 + \\\n  2\nSELECT 1,\n 2 \\gset\n\\IF :x\nSELECT 3;\n\\elif 0\n\\else\n\\endif\n\\sleep 1 us\n\
         \\shell true\n\\setshell y echo 1\n\\startpipeline\n\\syncpipeline\n\\endpipeline\nSELECT 4 \\; SELECT 5 \\aset p",
    );
    let listed: Vec<_> = script
        .commands
        .iter()
        .zip(&script.written)
        .map(|(command, written)| (command.name(), written.line, written.text.as_str()))
        .collect();
    assert_eq!(
        listed,
        [
            ("set", 1, "\\set x 1 + \\\n  2"),
            ("gset", 3, "SELECT 1,"),
            ("if", 5, "\\IF :x"),
            ("SQL", 6, "SELECT 3;"),
            ("elif", 7, "\\elif 0"),
            ("else", 8, "\\else"),
            ("endif", 9, "\\endif"),
            ("sleep", 10, "\\sleep 1 us"),
            ("shell", 11, "\\shell true"),
            ("setshell", 12, "\\setshell y echo 1"),
            ("startpipeline", 13, "\\startpipeline"),
            ("syncpipeline", 14, "\\syncpipeline"),
            ("endpipeline", 15, "\\endpipeline"),
            ("aset", 16, "SELECT 4 ; SELECT 5 "),
        ]
    );
    let kept: Vec<_> = script.keeps().collect();
    let keep = |all, prefix: &str| Keep {
        all,
        prefix: prefix.to_owned(),
    };
    assert_eq!(kept, [&keep(false, ""), &keep(true, "p")]);
}

#[test]
fn conditions_know_where_to_go() {
    let script = parsed(
        "\\if 1\n\\if 2\n\\else\n\\endif\n\\elif 3\nSELECT 1;\n\\elif 4\n\\else\nSELECT 2;\n\\endif\n",
    );
    let jumps: Vec<_> = script
        .commands
        .iter()
        .filter_map(|command| match command {
            Command::If { otherwise, .. } => Some((*otherwise, None)),
            Command::Elif { otherwise, end, .. } => Some((*otherwise, Some(*end))),
            Command::Else { end } => Some((usize::MAX, Some(*end))),
            _ => None,
        })
        .collect();
    assert_eq!(
        jumps,
        [
            (4, None),
            (2, None),
            (usize::MAX, Some(3)),
            (6, Some(9)),
            (7, Some(9)),
            (usize::MAX, Some(9)),
        ]
    );
}

/// The only command of a script, with variables `x`, `y` and an unset `z`.
fn alone(source: &str, x: &str, y: Value) -> (Command, Variables) {
    let mut symbols = Symbols::new();
    let slots = ["x", "y", "z"].map(|name| symbols.slot(name));
    let mut script = parse("s", source, &mut symbols).unwrap();
    let mut variables = Variables::new(&symbols);
    variables.set_text(slots[0], x);
    variables.set(slots[1], y);
    (script.commands.remove(0), variables)
}

#[test]
fn sleep_has_units_and_never_lasts_less_than_nothing() {
    let invalid = |text: &str, name: &str| {
        Err(format!(
            "sleep: invalid sleep time \"{text}\" for variable \"{name}\""
        ))
    };
    let table = [
        ("\\sleep 5", Ok(5_000_000)),
        ("\\sleep 5 US", Ok(5)),
        ("\\sleep 5ms", Ok(5_000)),
        ("\\sleep +5 s", Ok(5_000_000)),
        ("\\sleep -5 s", Ok(0)),
        ("\\sleep 9223372036854775807 s", Ok(u64::MAX)),
        ("\\sleep 99999999999999999999 us", Ok(i64::MAX as u64)),
        ("\\sleep :x ms", Ok(12_000)),
        ("\\sleep :y ms", Ok(1_000)),
        (
            "\\sleep :z",
            Err("sleep: undefined variable \"z\"".to_owned()),
        ),
    ];
    for (source, wanted) in table {
        // The integer at the start of a text counts, and the integer part of a double.
        let (command, variables) = alone(source, " 12 ms", Value::Double(1.9));
        let Command::Sleep(sleep) = command else {
            panic!("{command:?}")
        };
        let found = sleep.microseconds(&variables).map_err(|e| e.to_string());
        assert_eq!(found, wanted, "{source}");
    }
    for (x, y, source, wanted) in [
        ("soon", Value::Null, "\\sleep :x", invalid("soon", "x")),
        ("", Value::Null, "\\sleep :x", invalid("", "x")),
        ("-", Value::Null, "\\sleep :x", invalid("-", "x")),
        ("1", Value::Null, "\\sleep :y", invalid("NULL", "y")),
        ("1", Value::Bool(true), "\\sleep :y", invalid("true", "y")),
        ("1", Value::Double(-0.5), "\\sleep :y", invalid("-0.5", "y")),
        ("1", Value::Int(0), "\\sleep :y", Ok(0)),
        ("0", Value::Null, "\\sleep :x", Ok(0)),
    ] {
        let (command, variables) = alone(source, x, y);
        let Command::Sleep(sleep) = command else {
            panic!("{command:?}")
        };
        let found = sleep.microseconds(&variables).map_err(|e| e.to_string());
        assert_eq!(found, wanted, "{x:?} {y:?}");
    }
}

#[test]
fn shell_commands_are_words_with_variables_as_words() {
    let long = format!("\\shell {}", "x".repeat(256));
    let longest = "x".repeat(254);
    let table = [
        ("\\shell echo a  b\t'c  d'", Ok("echo a b 'c d'")),
        ("\\shell echo :x :y ::x x:x", Ok("echo it's 7 :x x:x")),
        ("\\shell :::x", Ok("::x")),
        (
            "\\shell echo \\\n  :y \\\n :z",
            Err("echo: undefined variable \":z\""),
        ),
        (long.as_str(), Err("COMMAND: shell command is too long")),
        (&long[..long.len() - 2], Ok(longest.as_str())),
        (
            &long[..long.len() - 1],
            Err("COMMAND: shell command is too long"),
        ),
    ];
    for (source, wanted) in table {
        let (command, variables) = alone(source, "it's", Value::Int(7));
        let Command::Shell(shell) = command else {
            panic!("{command:?}")
        };
        let mut text = Vec::new();
        let written = shell.write(&variables, &mut text);
        let found = match &written {
            Ok(()) => Ok(String::from_utf8(text).unwrap()),
            Err(error) => Err(error.to_string()),
        };
        let command = source.split_whitespace().nth(1).unwrap();
        let wanted = wanted
            .map(str::to_owned)
            .map_err(|message| message.replace("COMMAND", command));
        assert_eq!(found, wanted, "{source}");
    }
    let words = |n: usize| format!("\\setshell v{}", " a".repeat(n));
    assert!(parse("s", &words(254), &mut Symbols::new()).is_ok());
    let error = parse("s", &words(255), &mut Symbols::new()).unwrap_err();
    assert_eq!(error.message, "too many arguments in command \"setshell\"");
}

#[test]
fn setshell_takes_an_integer_of_the_first_line() {
    let (command, _) = alone("\\setshell x cmd", "", Value::Null);
    let Command::SetShell { shell, .. } = command else {
        panic!("{command:?}")
    };
    let not_an_integer = |text: &str| {
        Err(format!(
            "cmd: shell command must return an integer (not \"{text}\")"
        ))
    };
    let digits = "9".repeat(70);
    let blanks = format!("{}7x", " ".repeat(62));
    let table = [
        ("7\n", Ok(7)),
        ("7", Ok(7)),
        (" -12 \t\n", Ok(-12)),
        ("+3\nfoo", Ok(3)),
        ("\n5\n", Ok(0)),
        ("  \n", Ok(0)),
        ("2147483648\n", Ok(-2_147_483_648)),
        ("4294967295\n", Ok(-1)),
        (digits.as_str(), Ok(-1)),
        (blanks.as_str(), Ok(7)),
        (
            "",
            Err("cmd: could not read result of shell command".to_owned()),
        ),
        ("abc\n", not_an_integer("abc\n")),
        ("1.5\n", not_an_integer("1.5\n")),
        ("1 2\n", not_an_integer("1 2\n")),
        ("-\n", not_an_integer("-\n")),
    ];
    for (output, wanted) in table {
        let found = shell.integer(output.as_bytes()).map_err(|e| e.to_string());
        assert_eq!(found, wanted, "{output:?}");
    }
}

#[test]
fn operators_over_constants_are_computed_once_unless_they_fail() {
    let constant = |text: &str| match parsed(&format!("\\set x {text}")).commands.remove(0) {
        Command::Set {
            expr: Expr::Constant(value),
            ..
        } => Some(value),
        _ => None,
    };
    assert_eq!(constant("-5000"), Some(Value::Int(-5000)));
    assert_eq!(constant("~0 > 3 * (2 - 7)"), Some(Value::Bool(true)));
    assert_eq!(
        constant("-9223372036854775807 - 1"),
        Some(Value::Int(i64::MIN))
    );
    assert_eq!(constant("1 / 0"), None);
    assert_eq!(constant("9223372036854775807 + 1"), None);
    assert_eq!(constant("1 + :y"), None);
}

#[test]
fn debug_shows_values_and_yields_them() {
    let mut symbols = Symbols::new();
    let script = parse(
        "s",
        "\\set x debug(debug(1) + debug(null)) is null or debug(2) = 2",
        &mut symbols,
    )
    .unwrap();
    let Command::Set { expr, .. } = &script.commands[0] else {
        panic!("{script:?}")
    };
    let mut shown = Vec::new();
    let value = expr.eval_observed(
        &Variables::new(&symbols),
        &mut Prng::seeded(0),
        &mut |value| {
            shown.push(value);
        },
    );
    assert_eq!(value.unwrap(), Value::Bool(true));
    assert_eq!(shown, [Value::Int(1), Value::Null, Value::Null]);
    assert!(expr.debugs());
    let Command::Set { expr, .. } = &parsed("\\set x case when 1 then abs(2) end").commands[0]
    else {
        panic!("not a \\set")
    };
    assert!(!expr.debugs());
}
