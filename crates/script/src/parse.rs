//! Source text to [`Script`].

use crate::error::ParseError;
use crate::meta::meta_command;
use crate::scan::{Ending, Scanner};
use crate::script::{Command, Read, Script};
use crate::source::{Source, did_you_mean};
use crate::sql::sql_command;
use crate::variables::Symbols;

/// Parses a script. Variables get slots in `symbols`, which all scripts of a run share.
///
/// # Errors
/// The first thing in `source` that is not pgbench's script language, with its place.
pub fn parse(name: &str, source: &str, symbols: &mut Symbols) -> Result<Script, ParseError> {
    let source = Source { name, text: source };
    if let Some(nul) = source.text.find('\0') {
        return Err(source.error(nul, "a script cannot have NUL characters"));
    }
    let mut script = Script {
        name: name.to_owned(),
        commands: Vec::new(),
        reads: Vec::new(),
    };
    let mut scanner = Scanner::new(source);
    loop {
        let statement = scanner.next()?;
        if !statement.text.is_empty() {
            let command = sql_command(source, statement.text, statement.start, symbols)?;
            let (line, column) = source.position(statement.start);
            let reads = command.params.iter().map(|&slot| Read {
                slot,
                line,
                column,
                in_sql: true,
            });
            script.reads.extend(reads);
            script.commands.push(Command::Sql(command));
        }
        match statement.ending {
            Ending::Semicolon => {}
            Ending::End => break,
            Ending::Backslash(offset) => {
                let mut note_read = |slot, at| {
                    let (line, column) = source.position(at);
                    script.reads.push(Read {
                        slot,
                        line,
                        column,
                        in_sql: false,
                    });
                };
                let (command, end) = meta_command(source, offset, symbols, &mut note_read)?;
                script.commands.extend(command);
                scanner.offset = end;
            }
        }
    }
    if script.commands.is_empty() {
        return Err(source
            .error(0, "the script has no commands")
            .with_hint("a script is SQL statements, each with a semicolon, and meta commands"));
    }
    Ok(script)
}

/// Checks that every variable that is read is `known` from outside or set by one of the scripts.
///
/// With `in_sql`, those that only statements read are checked too. The simple protocol does not need it: it sends
/// a statement with an unset `:name` as it was written, which may be what was meant (in JSON, say).
///
/// # Errors
/// The first variable that nothing sets, where it is read.
pub fn check_variables(
    scripts: &[Script],
    symbols: &Symbols,
    known: &[&str],
    in_sql: bool,
) -> Result<(), ParseError> {
    let is_set_by_script = |wanted: usize| {
        let mut commands = scripts.iter().flat_map(|script| &script.commands);
        commands.any(|command| matches!(command, Command::Set { slot, .. } if *slot == wanted))
    };
    let is_set = |slot: usize| known.contains(&symbols.name(slot)) || is_set_by_script(slot);
    for script in scripts {
        let unset = script
            .reads
            .iter()
            .find(|read| (in_sql || !read.in_sql) && !is_set(read.slot));
        if let Some(read) = unset {
            let name = symbols.name(read.slot);
            let candidates = (0..symbols.names().len())
                .filter(|&slot| is_set_by_script(slot))
                .map(|slot| symbols.name(slot))
                .chain(known.iter().copied());
            return Err(ParseError {
                file: script.name.clone(),
                line: read.line,
                column: read.column,
                message: format!("undefined variable \"{name}\""),
                hint: did_you_mean(name, candidates, |near| format!(":{near}"))
                    .or_else(|| Some(format!("set it before: \\set {name} expression"))),
            });
        }
    }
    Ok(())
}
