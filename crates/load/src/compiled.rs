//! Compiled workloads: workloads that are part of the engine, as opposed to scripts.
//!
//! A [`Workload`] has types of transactions. Each has a weight in the configuration, as a script has, and the run chooses
//! among all by weight. A client goes through a transaction in batches: it asks its [`WorkloadClient`] for statements,
//! sends them together, and comes back with the rows that they gave. Preparing, pipelining, `ROLLBACK` after an error,
//! tries, schedule and figures are the engine's, as of scripts.

mod account_mix;
mod answers;
mod batch;
mod commit_ledger;
mod keys;
mod tpcc;
mod workload;

use std::collections::BTreeMap;

use plinth_config::ConfigError;
use serde::Deserialize;

pub(crate) use account_mix::AccountMix;
pub(crate) use answers::Answers;
pub(crate) use batch::Batch;
pub(crate) use commit_ledger::LedgerCommits;
pub use tpcc::PROCEDURES as TPCC_PROCEDURES;
pub(crate) use tpcc::Tpcc;
pub(crate) use workload::{CompiledStatement, TransactionType, Workload, WorkloadClient};

/// The name of a workload, and its parameters.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "workload", rename_all = "kebab-case")]
pub enum CompiledWorkload {
    /// Lookups and transfers among pgbench's accounts.
    AccountMix(AccountMix),
    /// Transactions that the commit ledger is compared with.
    Ledger(LedgerCommits),
    /// The transactions of the TPC-C-derived workload.
    Tpcc(Tpcc),
}

/// Whether transactions leave rows that a commit ledger can be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LedgerRows {
    Never,
    IfAsked,
    Always,
}

impl CompiledWorkload {
    /// Checks the parameters. `variables` are those of the run, such as `scale`; whether the run has a commit ledger.
    pub(crate) fn make(
        &self,
        variables: &BTreeMap<String, String>,
        keeps_ledger: bool,
    ) -> Result<Box<dyn Workload>, ConfigError> {
        match self {
            Self::AccountMix(parameters) => parameters.make(variables),
            Self::Ledger(parameters) => Ok(Box::new(*parameters)),
            Self::Tpcc(parameters) => parameters.make(variables, keeps_ledger),
        }
    }

    /// Whether its transactions leave what a ledger can be compared with.
    pub(crate) fn ledger_rows(&self) -> LedgerRows {
        match self {
            Self::AccountMix(_) => LedgerRows::Never,
            Self::Ledger(_) => LedgerRows::Always,
            Self::Tpcc(_) => LedgerRows::IfAsked,
        }
    }
}
