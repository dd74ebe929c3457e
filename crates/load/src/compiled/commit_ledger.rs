//! `ledger`: transactions that leave one row each, and change one, for the commit ledger to be compared with.
//!
//! All of a transaction is one round trip: nothing slows it but the commit. A client's numbers ascend, so its changed row says
//! how many rows it has left; a transaction of which only a part survived shows as a difference of the two.

use serde::Deserialize;

use super::answers::{AnswerError, Answers};
use super::batch::{Batch, Parameter::Integer};
use super::workload::{CompiledStatement, TransactionType, Workload, WorkloadClient};
use plinth_script::Prng;

const BEGIN: usize = 0;
const INSERT: usize = 1;
const UPDATE: usize = 2;
const COMMIT: usize = 3;

/// What each transaction leaves, by the numbers of client and transaction.
pub(super) fn statements() -> [CompiledStatement; 2] {
    let insert = "INSERT INTO plinth_ledger_commits (client, number) VALUES ($1, $2)";
    let update = "UPDATE plinth_ledger_clients SET last_number = $2 WHERE client = $1";
    [insert, update].map(|sql| CompiledStatement::new(sql, 2))
}

/// Adds one of them, at its place among those of the transaction.
pub(super) fn add(statement: usize, client: usize, batch: &mut Batch<'_>) {
    let row = [client as i64, batch.ledger_number as i64];
    batch.add(statement, &row.map(Integer));
}

/// The parameters of `ledger`: there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerCommits {}

impl Workload for LedgerCommits {
    fn transactions(&self) -> Vec<TransactionType> {
        let [insert, update] = statements();
        let statements = vec![
            CompiledStatement::new("BEGIN", 0),
            insert,
            update,
            CompiledStatement::new("COMMIT", 0),
        ];
        vec![TransactionType::writing("ledger", statements)]
    }

    fn client(&self, number: usize) -> Box<dyn WorkloadClient> {
        Box::new(LedgerClient {
            number,
            is_over: false,
        })
    }
}

#[derive(Debug)]
struct LedgerClient {
    number: usize,
    is_over: bool,
}

impl WorkloadClient for LedgerClient {
    fn begin(&mut self, _transaction: usize, _random: &mut Prng) {
        self.is_over = false;
    }

    fn next(&mut self, _answers: &Answers, batch: &mut Batch<'_>) -> Result<(), AnswerError> {
        if !std::mem::replace(&mut self.is_over, true) {
            batch.add(BEGIN, &[]);
            add(INSERT, self.number, batch);
            add(UPDATE, self.number, batch);
            batch.add(COMMIT, &[]);
        }
        Ok(())
    }
}
