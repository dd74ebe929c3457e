//! Properties that hold for every text as a script. Shared with the fuzz target in `fuzz/`.

use plinth_script::{
    Command, Prng, Script, Segment, Symbols, Variables, check_parameters, check_variables, parse,
};

/// Parses a text, and does with the script what can be done without a server. Panics when a property does not hold.
pub(crate) fn exercise(source: &str) {
    let mut symbols = Symbols::new();
    match parse("any", source, &mut symbols) {
        Ok(script) => run(source, &script, &symbols),
        Err(error) => {
            let lines: Vec<&str> = source.split('\n').collect();
            assert!((1..=lines.len()).contains(&error.line), "{error}");
            let width = lines[error.line - 1].chars().count();
            assert!((1..=width + 1).contains(&error.column), "{error}");
        }
    }
}

fn run(source: &str, script: &Script, symbols: &Symbols) {
    assert_eq!(script.written.len(), script.commands.len());
    let scripts = std::slice::from_ref(script);
    let lines = source.split('\n').count();
    assert!(
        script
            .reads
            .iter()
            .all(|read| (1..=lines).contains(&read.line))
    );
    for in_sql in [false, true] {
        let _ = check_variables(scripts, symbols, &["scale"], in_sql);
    }
    let _ = check_parameters(scripts);
    let mut variables = Variables::new(symbols);
    let mut rng = Prng::seeded(1);
    for (at, command) in script.commands.iter().enumerate() {
        match command {
            Command::Sql(sql) => statement(sql, symbols),
            Command::Set { target, expr } => {
                let value = expr.eval(&variables, &mut rng);
                if let (Ok(slot), Ok(value)) = (target.slot("set"), value) {
                    variables.set(slot, value);
                }
            }
            Command::If {
                condition,
                otherwise,
            } => {
                let _ = condition.eval(&variables, &mut rng);
                assert!(at < *otherwise && is_branch(&script.commands[*otherwise]));
            }
            Command::Elif { otherwise, end, .. } => {
                assert!(at < *otherwise && otherwise <= end);
                assert!(is_branch(&script.commands[*otherwise]));
                assert_eq!(&script.commands[*end], &Command::EndIf);
            }
            Command::Else { end } => {
                assert!(at < *end);
                assert_eq!(&script.commands[*end], &Command::EndIf);
            }
            Command::Sleep(sleep) => {
                let _ = sleep.microseconds(&variables);
            }
            Command::Shell(shell) | Command::SetShell { shell, .. } => {
                let mut text = Vec::new();
                if shell.write(&variables, &mut text).is_ok() {
                    assert!(text.len() < 256);
                }
                let _ = shell.integer(source.as_bytes());
            }
            _ => {}
        }
    }
}

fn is_branch(command: &Command) -> bool {
    matches!(
        command,
        Command::Elif { .. } | Command::Else { .. } | Command::EndIf
    )
}

/// The segments of a statement, with variables by name, are the statement and the white space after it.
fn statement(sql: &plinth_script::SqlCommand, symbols: &Symbols) {
    let named: String = sql
        .segments
        .iter()
        .map(|segment| match segment {
            Segment::Text(text) => text.clone(),
            Segment::Var(slot) => format!(":{}", symbols.name(*slot)),
        })
        .collect();
    let spaces = named.strip_prefix(&sql.text).expect("the statement");
    assert!(spaces.bytes().all(|b| b" \t\n\x0b\x0c\r".contains(&b)));
    assert!(sql.text.bytes().any(|b| !b" \t\n\x0b\x0c\r".contains(&b)));
    let slots = sql.segments.iter().filter_map(|segment| match segment {
        Segment::Var(slot) => Some(*slot),
        Segment::Text(_) => None,
    });
    assert_eq!(slots.collect::<Vec<_>>(), sql.params);
}
