//! Parses source text into a [`Script`].

use crate::conditional;
use crate::error::ParseError;
use crate::meta::{Meta, meta_command};
use crate::scan::{Ending, Scanner, Statement};
use crate::script::{Command, Keep, Script, Written};
use crate::source::{Source, Tracker, did_you_mean};
use crate::sql::sql_command;
use crate::variables::{Read, Symbols};

/// Parses a script. Variables get slots in `symbols`, which all scripts of a run share.
///
/// # Errors
/// The first syntax error in `source`, with its position.
pub fn parse(name: &str, source: &str, symbols: &mut Symbols) -> Result<Script, ParseError> {
    let tracker = Tracker::default();
    let source = Source::new(name, source, &tracker);
    if let Some(nul) = source.text.find('\0') {
        return Err(source.error(nul, "a script cannot have NUL characters"));
    }
    let mut draft = Draft {
        source,
        starts: Vec::new(),
        script: Script {
            name: name.to_owned(),
            commands: Vec::new(),
            written: Vec::new(),
            reads: Vec::new(),
            invalid_name: None,
        },
    };
    let mut scanner = Scanner::new(source);
    loop {
        let statement = scanner.next()?;
        let ending = statement.ending;
        if !statement.text.is_empty() {
            draft.statement(statement, symbols);
        }
        match ending {
            Ending::Semicolon => {}
            Ending::End => break,
            Ending::Backslash(offset) => scanner.offset = draft.meta_command(offset, symbols)?,
        }
    }
    draft.finish()
}

/// A script being parsed.
struct Draft<'a> {
    source: Source<'a>,
    /// The position of each command.
    starts: Vec<usize>,
    script: Script,
}

impl Draft<'_> {
    fn add(&mut self, command: Command, start: usize, line: usize, text: &str) {
        self.starts.push(start);
        self.script.commands.push(command);
        let text = text.to_owned();
        self.script.written.push(Written { start, line, text });
    }

    fn statement(&mut self, statement: Statement, symbols: &mut Symbols) {
        let (line, column) = self.source.position(statement.start);
        let first_line = statement.text.split(['\n', '\r']).next();
        let first_line = first_line.unwrap_or_default().to_owned();
        let command = sql_command(&statement.text, line, symbols);
        let reads = command.params.iter().map(|&slot| Read {
            slot,
            line,
            column,
            in_sql: true,
        });
        self.script.reads.extend(reads);
        self.add(Command::Sql(command), statement.start, line, &first_line);
    }

    /// Parses the meta command after the backslash before `offset`. Returns the offset of its end.
    fn meta_command(&mut self, offset: usize, symbols: &mut Symbols) -> Result<usize, ParseError> {
        let start = offset - 1;
        let line = self.source.line(start);
        let (meta, end) = meta_command(self.source, offset, symbols, &mut self.script)?;
        match meta {
            None => {}
            Some(Meta::Command(command)) => {
                let text = self.source.text[start..end].trim_end_matches(['\n', '\r']);
                self.add(command, start, line, text);
            }
            Some(Meta::Keep(keep)) => self.keep(keep, start)?,
        }
        Ok(end)
    }

    /// `\gset` or `\aset` belongs to the statement before it.
    fn keep(&mut self, keep: Keep, start: usize) -> Result<(), ParseError> {
        match self.script.commands.last_mut() {
            Some(Command::Sql(sql)) if sql.keep.is_none() => {
                sql.keep = Some(keep);
                Ok(())
            }
            before => {
                let mut message = format!("\\{} must follow an SQL command", keep.command());
                let has_one = matches!(before, Some(Command::Sql(_)));
                if let Some(written) = self.script.written.last().filter(|_| !has_one) {
                    message = format!("{message} ({})", written.text);
                }
                let error = self.source.error(start, message);
                Err(if has_one {
                    error.with_hint("a statement has one \\gset or \\aset")
                } else {
                    error
                })
            }
        }
    }

    fn finish(mut self) -> Result<Script, ParseError> {
        if self.script.commands.is_empty() {
            let message = format!("empty command list for script \"{}\"", self.script.name);
            return Err(self.source.error(0, message).with_hint(
                "a script is SQL statements, each with a semicolon, and meta commands",
            ));
        }
        conditional::link(self.source, &mut self.script.commands, &self.starts)?;
        Ok(self.script)
    }
}

/// Checks that every name is one that a variable can have, and that every variable that is read is `known` from outside or
/// set by one of the scripts. What `\gset` and `\aset` set is known only after their statements have run, so every name with
/// their prefix counts as set.
///
/// With `in_sql`, variables that only statements read are checked too. The simple protocol does not need that: it sends
/// an unset `:name` as written, which may be intended, for example in JSON.
///
/// # Errors
/// The first invalid name; else the first variable that nothing sets, at the position where it is read.
pub fn check_variables(
    scripts: &[Script],
    symbols: &Symbols,
    known: &[&str],
    in_sql: bool,
) -> Result<(), ParseError> {
    if let Some(error) = scripts
        .iter()
        .find_map(|script| script.invalid_name.clone())
    {
        return Err(error);
    }
    let mut is_set_by_script = vec![false; symbols.names().len()];
    for slot in scripts.iter().flat_map(Script::sets) {
        is_set_by_script[slot] = true;
    }
    let prefixes: Vec<&str> = scripts
        .iter()
        .flat_map(Script::keeps)
        .map(|keep| keep.prefix.as_str())
        .collect();
    let is_set = |slot: usize| {
        let name = symbols.name(slot);
        is_set_by_script[slot]
            || known.contains(&name)
            || prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    for script in scripts {
        let unset = script
            .reads
            .iter()
            .find(|read| (in_sql || !read.in_sql) && !is_set(read.slot));
        if let Some(read) = unset {
            let name = symbols.name(read.slot);
            let candidates = (0..symbols.names().len())
                .filter(|&slot| is_set_by_script[slot])
                .map(|slot| symbols.name(slot))
                .chain(known.iter().copied());
            return Err(ParseError {
                file: script.name.clone(),
                line: read.line,
                column: read.column,
                message: format!("undefined variable \"{name}\""),
                hint: did_you_mean(name, candidates, |near| format!(":{near}"))
                    .or_else(|| Some(format!("set it before: \\set {name} expression"))),
                condition: None,
            });
        }
    }
    Ok(())
}

/// The maximum number of parameters of a statement in the extended and the prepared protocol: pgbench's limit.
const MAX_PARAMETERS: usize = 255;

/// Checks the limit that only the extended and the prepared protocol have: the number of variables in one statement.
///
/// # Errors
/// The first statement that has too many.
pub fn check_parameters(scripts: &[Script]) -> Result<(), ParseError> {
    for script in scripts {
        for command in &script.commands {
            let Command::Sql(sql) = command else { continue };
            if sql.params.len() > MAX_PARAMETERS {
                let count = sql.params.len();
                return Err(ParseError {
                    file: script.name.clone(),
                    line: sql.line,
                    column: 1,
                    message: format!(
                        "statement has too many arguments (maximum is {MAX_PARAMETERS}): {count}"
                    ),
                    hint: Some("the simple protocol has no limit".to_owned()),
                    condition: None,
                });
            }
        }
    }
    Ok(())
}
