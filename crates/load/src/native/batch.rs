//! Statements that a transaction sends together.

use plinth_script::Value;

use crate::pipeline::Pipeline;
use crate::statement::Statement;

/// A parameter of a statement; it is sent as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parameter {
    Integer(i64),
}

impl Parameter {
    /// Appends its text; `false` for null.
    pub(crate) fn write(self, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Integer(number) => Value::Int(number).write_text(out),
        }
        true
    }
}

/// Statements that are sent together, with one `Sync` behind them.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    /// All statements of the run.
    pub(crate) statements: &'a [Statement],
    pub(crate) prepared: &'a [bool],
    pub(crate) pipeline: &'a mut Pipeline,
    /// The first statement of the transaction among all of the run.
    pub(crate) first_statement: usize,
    pub(crate) now_ns: u64,
    /// How many there are.
    pub(crate) len: usize,
    /// One of them ends a transaction block, and there is a ledger to record that.
    pub(crate) commits: bool,
    /// The number of the transaction in the ledger.
    pub(crate) ledger_number: u64,
}

impl Batch<'_> {
    /// Adds a statement, by its place among those of the transaction.
    pub(crate) fn add(&mut self, statement: usize, parameters: &[Parameter]) {
        let id = self.first_statement + statement;
        let out = self.pipeline.queue(id, self.now_ns);
        let prepare = !self.prepared[id];
        let write_parameter = |hole: usize, out: &mut Vec<u8>| parameters[hole].write(out);
        self.statements[id].write_queued(prepare, out, write_parameter);
        self.len += 1;
        self.commits |= self.statements[id].commits;
    }
}
