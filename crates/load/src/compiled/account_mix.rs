//! `account-mix`: lookups and transfers among pgbench's accounts.
//!
//! A transfer reads both balances, works out the new ones, and writes them, as an application would. Their sum stays, which
//! is what a trial checks; so it also shows that results are read right and that transactions are whole.

use std::collections::BTreeMap;

use plinth_config::ConfigError;
use plinth_script::{Prng, distributions::uniform};
use serde::Deserialize;

use super::answers::{AnswerError, Answers};
use super::batch::{Batch, Parameter::Integer};
use super::keys::{Choice, Keys};
use super::workload::{CompiledStatement, TransactionType, Workload, WorkloadClient};

const LOOKUP: usize = 0;

/// Statements of a transfer.
const BEGIN: usize = 0;
const LOCK: usize = 1;
const UPDATE: usize = 2;
const COMMIT: usize = 3;
const ROLLBACK: usize = 4;

const GREATEST_AMOUNT: i64 = 5000;
/// One transfer in so many is rolled back once it has written.
const TRANSFERS_PER_ROLLBACK: i64 = 100;

/// The parameters of `account-mix`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountMix {
    /// How accounts are chosen.
    keys: Keys,
}

impl AccountMix {
    pub(crate) fn make(
        self,
        variables: &BTreeMap<String, String>,
    ) -> Result<Box<dyn Workload>, ConfigError> {
        let accounts = self.keys.of_accounts(variables, 2)?;
        Ok(Box::new(Accounts { accounts }))
    }
}

#[derive(Debug)]
struct Accounts {
    accounts: Choice,
}

impl Workload for Accounts {
    fn transactions(&self) -> Vec<TransactionType> {
        let select = "SELECT abalance FROM pgbench_accounts WHERE aid = $1";
        let lookup = vec![CompiledStatement::new(select, 1)];
        let transfer = vec![
            CompiledStatement::new("BEGIN", 0),
            CompiledStatement::new(format!("{select} FOR UPDATE"), 1),
            CompiledStatement::new(
                "UPDATE pgbench_accounts SET abalance = $1 WHERE aid = $2",
                2,
            ),
            CompiledStatement::new("COMMIT", 0),
            CompiledStatement::new("ROLLBACK", 0),
        ];
        vec![
            TransactionType::reading("lookup", lookup),
            TransactionType::writing("transfer", transfer),
        ]
    }

    fn client(&self, _number: usize) -> Box<dyn WorkloadClient> {
        Box::new(AccountsClient {
            accounts: self.accounts,
            next: Next::Over,
        })
    }
}

#[derive(Debug)]
struct AccountsClient {
    accounts: Choice,
    next: Next,
}

/// The batch that comes next.
#[derive(Debug, Clone, Copy)]
enum Next {
    Lookup(i64),
    Lock(Transfer),
    Write(Transfer),
    Over,
}

#[derive(Debug, Clone, Copy)]
struct Transfer {
    /// In ascending order, so that two transfers do not wait for each other.
    accounts: [i64; 2],
    /// What the first gets and the second gives.
    amount: i64,
    is_rolled_back: bool,
}

impl AccountsClient {
    fn transfer(&self, random: &mut Prng) -> Transfer {
        let one = self.accounts.draw(random);
        let other = self.accounts.draw(random);
        let other = if other == one {
            one % self.accounts.rows + 1
        } else {
            other
        };
        let amount = uniform(random, 1, GREATEST_AMOUNT);
        Transfer {
            accounts: [one.min(other), one.max(other)],
            amount: if one < other { amount } else { -amount },
            is_rolled_back: uniform(random, 1, TRANSFERS_PER_ROLLBACK) == 1,
        }
    }
}

impl WorkloadClient for AccountsClient {
    fn begin(&mut self, transaction: usize, random: &mut Prng) {
        self.next = if transaction == LOOKUP {
            Next::Lookup(self.accounts.draw(random))
        } else {
            Next::Lock(self.transfer(random))
        };
    }

    fn next(&mut self, answers: &Answers, batch: &mut Batch<'_>) -> Result<(), AnswerError> {
        self.next = match self.next {
            Next::Lookup(account) => {
                batch.add(LOOKUP, &[Integer(account)]);
                Next::Over
            }
            Next::Lock(transfer) => {
                batch.add(BEGIN, &[]);
                for account in transfer.accounts {
                    batch.add(LOCK, &[Integer(account)]);
                }
                Next::Write(transfer)
            }
            Next::Write(transfer) => {
                let [one, other] = transfer.accounts;
                let balance = |statement| answers.row(statement)?.integer(0);
                let (first, second) = (balance(1)?, balance(2)?);
                batch.add(UPDATE, &[Integer(first + transfer.amount), Integer(one)]);
                batch.add(UPDATE, &[Integer(second - transfer.amount), Integer(other)]);
                if transfer.is_rolled_back {
                    batch.roll_back(ROLLBACK);
                } else {
                    batch.add(COMMIT, &[]);
                }
                Next::Over
            }
            Next::Over => Next::Over,
        };
        Ok(())
    }
}
