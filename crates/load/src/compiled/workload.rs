//! What every compiled workload is: types of transactions, and the state of each client.

use std::borrow::Cow;
use std::fmt;

use plinth_script::Prng;

use super::answers::{AnswerError, Answers};
use super::batch::Batch;

/// A workload, with its parameters. All clients share it.
pub(crate) trait Workload: fmt::Debug + Send + Sync {
    /// The types of its transactions, in the order that `begin` numbers them in.
    fn transactions(&self) -> Vec<TransactionType>;

    /// Command-line options that its sessions need of the server, as libpq's `options`.
    fn session_options(&self) -> Option<&'static str> {
        None
    }

    /// The state of a client, by its number among all.
    fn client(&self, number: usize) -> Box<dyn WorkloadClient>;
}

/// What a client of a workload keeps, from one transaction to the next too.
pub(crate) trait WorkloadClient: fmt::Debug + Send {
    /// Draws what a transaction needs. A transaction that is tried again begins again with `random` as it was, and so
    /// with the same inputs.
    fn begin(&mut self, transaction: usize, random: &mut Prng);

    /// Adds the next statements; when it adds none, the transaction is over. `answers` are those to the batch before.
    ///
    /// # Errors
    /// Answers that make no sense, with which the client ends.
    fn next(&mut self, answers: &Answers, batch: &mut Batch<'_>) -> Result<(), AnswerError>;
}

/// A type of transaction.
#[derive(Debug)]
pub(crate) struct TransactionType {
    /// How the configuration and results name it.
    pub(crate) name: &'static str,
    /// What it sends: prepared before its first transaction, all at once. A batch names them by their places in this list.
    pub(crate) statements: Vec<CompiledStatement>,
    /// Whether its commits are looked for by a ledger; those of a transaction that writes nothing leave no trace.
    pub(crate) writes: bool,
}

impl TransactionType {
    /// One that writes.
    pub(crate) fn writing(name: &'static str, statements: Vec<CompiledStatement>) -> Self {
        let writes = true;
        Self {
            name,
            statements,
            writes,
        }
    }

    /// One that only reads.
    pub(crate) fn reading(name: &'static str, statements: Vec<CompiledStatement>) -> Self {
        let writes = false;
        Self {
            name,
            statements,
            writes,
        }
    }
}

/// A statement in SQL.
#[derive(Debug)]
pub(crate) struct CompiledStatement {
    pub(crate) sql: Cow<'static, str>,
    /// How many `$1`, `$2`, ... it has.
    pub(crate) parameters: usize,
}

impl CompiledStatement {
    pub(crate) fn new(sql: impl Into<Cow<'static, str>>, parameters: usize) -> Self {
        let sql = sql.into();
        Self { sql, parameters }
    }
}
