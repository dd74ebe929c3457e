//! Scripts made ready to run: each statement as the bytes to send.

use std::collections::BTreeMap;
use std::ops::Range;

use plinth_script::{Command, ParseError, Script, Symbols, Variables, lossless};
use plinth_wire::{EncodeError, statement_text};
use thiserror::Error;

use crate::commit_ledger;
use crate::compiled::{CompiledStatement, TransactionType};
use crate::config::Config;
use crate::protocol::Protocol;
use crate::report::{Labels, ScriptLabel};
use crate::source::TransactionSource;
use crate::statement::{Place, Statement};
use crate::workloads::{Found, Workloads};

/// Variables that the engine sets, unless the configuration does.
pub const AUTOMATIC_VARIABLES: [&str; 3] = ["client_id", "default_seed", "random_seed"];

/// Scripts that cannot be run.
#[derive(Debug, Error)]
pub enum ScriptError {
    /// The text is not pgbench's script language.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// A statement cannot be sent.
    #[error("{file}:{line}: {source}")]
    Statement {
        /// Name of the script.
        file: String,
        /// Line of the statement, counted from 1.
        line: usize,
        /// Why.
        source: EncodeError,
    },
}

/// One step of a script: its commands, with the statements put where they are at hand.
#[derive(Debug)]
pub(crate) enum Step {
    /// Index into [`Programs::statements`].
    Statement(usize),
    /// With the statements up to the first `\endpipeline` that follows.
    StartPipeline(Range<usize>),
    /// A transaction that is compiled in, whose statements the step before has prepared.
    Compiled(CompiledStep),
    /// Every other command.
    Meta(Command),
}

/// A transaction that is compiled in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompiledStep {
    /// Index into the client's states.
    pub(crate) workload: usize,
    /// Its type among those of the workload.
    pub(crate) transaction: usize,
    /// Index into [`Programs::statements`].
    pub(crate) first_statement: usize,
}

/// A script.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    /// Line of each step.
    pub(crate) lines: Vec<usize>,
    /// Whether an expression calls `debug()`.
    pub(crate) debugs: bool,
}

/// All scripts of a run, and the transactions that are compiled in.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) programs: Vec<Program>,
    pub(crate) weights: Vec<u64>,
    pub(crate) statements: Vec<Statement>,
    pub(crate) protocol: Protocol,
    pub(crate) symbols: Symbols,
    pub(crate) workloads: Workloads,
    /// The slot of the variable by which scripts insert into the ledger's tables.
    pub(crate) ledger_number: Option<usize>,
    keeps_ledger: bool,
    /// What every client's variables begin with.
    initial: Variables,
}

impl Programs {
    /// Parses and checks the scripts of a run, and puts them together with its compiled transactions.
    pub(crate) fn compile(
        config: &Config,
        workloads: Workloads,
        default_seed: Option<i64>,
    ) -> Result<Self, ScriptError> {
        let mut symbols = Symbols::new();
        let keeps_ledger = config.ledger.is_some();
        let mut scripts = parse_all(&config.scripts, keeps_ledger, &mut symbols)?;
        let in_sql = config.protocol != Protocol::Simple;
        if config.check_variables {
            let given = config.variables.keys().map(String::as_str);
            let of_ledger = [
                commit_ledger::CLIENT_VARIABLE,
                commit_ledger::NUMBER_VARIABLE,
            ];
            let of_ledger = of_ledger.into_iter().filter(|_| keeps_ledger);
            let known: Vec<_> = given.chain(AUTOMATIC_VARIABLES).chain(of_ledger).collect();
            plinth_script::check_variables(&scripts, &symbols, &known, in_sql)?;
        }
        if in_sql {
            plinth_script::check_parameters(&scripts)?;
        }
        let initial = initial_variables(&mut symbols, &config.variables, config.seed, default_seed);
        plinth_script::fold_constants(&mut scripts, &initial);
        let mut programs = Self {
            programs: Vec::new(),
            weights: config
                .scripts
                .iter()
                .map(|script| u64::from(script.weight))
                .collect(),
            statements: Vec::new(),
            protocol: config.protocol,
            ledger_number: symbols
                .find(commit_ledger::NUMBER_VARIABLE)
                .filter(|_| keeps_ledger),
            keeps_ledger,
            symbols,
            workloads,
            initial,
        };
        let mut scripts = scripts.into_iter();
        for place in 0..config.scripts.len() {
            match programs.workloads.find(place) {
                Some((found, transaction)) => programs.add_compiled(found, transaction)?,
                None => scripts
                    .next()
                    .map_or(Ok(()), |script| programs.add(script))?,
            }
        }
        Ok(programs)
    }

    fn add(&mut self, script: Script) -> Result<(), ScriptError> {
        let mut steps: Vec<Step> = Vec::new();
        let first = self.statements.len();
        for command in script.commands {
            let next = self.statements.len();
            steps.push(match command {
                Command::Sql(sql) => {
                    let line = sql.line;
                    let place = self.place(next - first);
                    let statement = Statement::of_script(place, sql).map_err(|source| {
                        ScriptError::Statement {
                            file: script.name.clone(),
                            line,
                            source,
                        }
                    })?;
                    self.statements.push(statement);
                    Step::Statement(next)
                }
                Command::StartPipeline => Step::StartPipeline(next..next),
                other => Step::Meta(other),
            });
        }
        end_pipelines(&mut steps, self.statements.len());
        let name = self.unused_name(script.name);
        self.programs.push(Program {
            name,
            debugs: steps.iter().any(debugs),
            lines: script.written.iter().map(|written| written.line).collect(),
            steps,
        });
        Ok(())
    }

    /// Its statements are prepared as those of a pipeline are: before it begins, all at once.
    fn add_compiled(
        &mut self,
        found: Found,
        transaction: TransactionType,
    ) -> Result<(), ScriptError> {
        let first = self.statements.len();
        for (index, statement) in transaction.statements.into_iter().enumerate() {
            let CompiledStatement { sql, parameters } = statement;
            let mut place = self.place(index);
            place.keeps_ledger &= transaction.writes;
            let compiled = Statement::compiled(place, sql.into_owned(), parameters);
            let statement = compiled.map_err(|source| ScriptError::Statement {
                file: transaction.name.to_owned(),
                line: index + 1,
                source,
            })?;
            self.statements.push(statement);
        }
        let compiled = CompiledStep {
            workload: found.workload,
            transaction: found.transaction,
            first_statement: first,
        };
        let name = self.unused_name(transaction.name.to_owned());
        self.programs.push(Program {
            name,
            steps: vec![
                Step::StartPipeline(first..self.statements.len()),
                Step::Compiled(compiled),
            ],
            lines: vec![1, 1],
            debugs: false,
        });
        Ok(())
    }

    /// Of the next statement, which is the `index`th of its script.
    fn place(&self, index: usize) -> Place {
        Place {
            id: self.statements.len(),
            script: self.programs.len(),
            index,
            protocol: self.protocol,
            keeps_ledger: self.keeps_ledger,
        }
    }

    /// `name`, or with a number behind it if another script has it: results are distinguished by their names.
    fn unused_name(&self, name: String) -> String {
        let is_used = |name: &String| self.programs.iter().any(|program| program.name == *name);
        let numbered = (2..).map(|number| format!("{name} #{number}"));
        let mut candidates = std::iter::once(name.clone()).chain(numbered);
        candidates
            .find(|name| !is_used(name))
            .unwrap_or_else(|| unreachable!("there are more numbers than scripts"))
    }

    /// How many steps each script has.
    pub(crate) fn steps(&self) -> impl Iterator<Item = usize> {
        self.programs.iter().map(|program| program.steps.len())
    }

    pub(crate) fn labels(&self) -> Labels<'_> {
        let scripts = self.programs.iter().zip(&self.weights);
        Labels {
            scripts: scripts
                .map(|(program, &weight)| ScriptLabel {
                    name: &program.name,
                    weight,
                    lines: &program.lines,
                })
                .collect(),
            statements: &self.statements,
        }
    }

    /// Whether a connection needs to prepare a statement only once.
    pub(crate) fn keeps_prepared(&self) -> bool {
        self.protocol == Protocol::Prepared
    }

    /// The variables of a client before its first transaction.
    pub(crate) fn variables(&self, client: usize) -> Variables {
        let mut variables = self.initial.clone();
        if let Some(slot) = self.symbols.find("client_id")
            && !variables.is_set(slot)
        {
            variables.set(slot, plinth_script::Value::Int(client as i64));
        }
        if let Some(slot) = self.symbols.find(commit_ledger::CLIENT_VARIABLE)
            && self.keeps_ledger
        {
            variables.set(slot, plinth_script::Value::Int(client as i64));
        }
        variables
    }

    /// Appends the messages that run a statement; with `prepare`, also those that prepare it.
    #[inline]
    pub(crate) fn write(
        &self,
        statement: usize,
        prepare: bool,
        variables: &Variables,
        out: &mut Vec<u8>,
    ) {
        self.statements[statement].write(self.protocol, prepare, variables, &self.symbols, out);
    }

    /// The text that runs or prepares a statement.
    pub(crate) fn sent(&self, statement: usize, variables: &Variables) -> Option<String> {
        let mut messages = Vec::new();
        self.statements[statement].write_prepare(&mut messages);
        if messages.is_empty() {
            self.write(statement, false, variables, &mut messages);
        }
        statement_text(&messages).map(|text| lossless::from_bytes(text).into_owned())
    }
}

/// Tells each `\startpipeline` which statements follow up to the next `\endpipeline`, or to the script's end, behind
/// which statement `end` would be.
fn end_pipelines(steps: &mut [Step], mut end: usize) {
    let mut next = end;
    for step in steps.iter_mut().rev() {
        match step {
            Step::Statement(id) => next = *id,
            Step::StartPipeline(statements) => statements.end = end,
            Step::Meta(Command::EndPipeline) => end = next,
            Step::Meta(_) | Step::Compiled(_) => {}
        }
    }
}

fn debugs(step: &Step) -> bool {
    match step {
        Step::Meta(
            Command::Set { expr, .. }
            | Command::If {
                condition: expr, ..
            }
            | Command::Elif {
                condition: expr, ..
            },
        ) => expr.debugs(),
        _ => false,
    }
}

fn parse_all(
    sources: &[TransactionSource],
    keeps_ledger: bool,
    symbols: &mut Symbols,
) -> Result<Vec<Script>, ParseError> {
    sources
        .iter()
        .filter_map(|one| one.source.as_ref().map(|source| (&one.name, source)))
        .map(|(name, source)| {
            if keeps_ledger {
                let source = commit_ledger::with_ledger(name, source)?;
                return plinth_script::parse(name, &source, symbols);
            }
            plinth_script::parse(name, source, symbols)
        })
        .collect()
}

fn initial_variables(
    symbols: &mut Symbols,
    given: &BTreeMap<String, String>,
    seed: u64,
    default_seed: Option<i64>,
) -> Variables {
    let given: Vec<_> = given
        .iter()
        .map(|(name, text)| (symbols.slot(name), text))
        .collect();
    let mut variables = Variables::new(symbols);
    for (slot, text) in given {
        variables.set_text(slot, lossless::to_bytes(text));
    }
    for (name, value) in [
        ("random_seed", Some(seed as i64)),
        ("default_seed", default_seed),
    ] {
        if let (Some(slot), Some(value)) = (symbols.find(name), value)
            && !variables.is_set(slot)
        {
            variables.set(slot, plinth_script::Value::Int(value));
        }
    }
    variables
}

#[cfg(test)]
mod tests;
