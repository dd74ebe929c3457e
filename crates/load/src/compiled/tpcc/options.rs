//! The parameters of `tpcc`.

use std::collections::BTreeMap;

use plinth_config::ConfigError;
use plinth_tpcc::Constants;
use serde::Deserialize;

use super::Transactions;
use super::inputs::{Draws, Home};
use crate::compiled::Workload;

/// The parameters of `tpcc`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tpcc {
    form: SentForm,
    isolation: Isolation,
    home: Home,
    /// Of the form `statements`: those that do not depend on an earlier answer are sent together.
    pipeline: bool,
    /// Share of order lines that another warehouse supplies.
    remote_line_share: f64,
    /// Share of payments by a customer of another warehouse.
    remote_payment_share: f64,
    /// Share of new orders that are rolled back for an unused item.
    rollback_share: f64,
}

/// What a transaction is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SentForm {
    /// SQL of the client.
    Statements,
    /// One call of a procedure in the server.
    Procedures,
}

/// How a transaction is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One statement a round trip.
    Statements,
    /// Statements that do not depend on an earlier answer together.
    Pipelined,
    /// One call.
    Procedures,
}

/// The isolation of each transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Isolation {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    /// The statement that begins a transaction.
    pub(super) fn begin(self) -> &'static str {
        match self {
            Self::ReadCommitted => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Self::RepeatableRead => "BEGIN ISOLATION LEVEL REPEATABLE READ",
            Self::Serializable => "BEGIN ISOLATION LEVEL SERIALIZABLE",
        }
    }

    /// What makes it the isolation of transactions that no statement begins.
    pub(super) fn session_option(self) -> &'static str {
        match self {
            Self::ReadCommitted => r"-c default_transaction_isolation=read\ committed",
            Self::RepeatableRead => r"-c default_transaction_isolation=repeatable\ read",
            Self::Serializable => "-c default_transaction_isolation=serializable",
        }
    }
}

impl Tpcc {
    /// Checks the parameters; `variables` tell the warehouses and the seed of the dataset.
    pub(crate) fn make(
        self,
        variables: &BTreeMap<String, String>,
        keeps_ledger: bool,
    ) -> Result<Box<dyn Workload>, ConfigError> {
        for (key, share) in [
            ("scripts.native.remote_line_share", self.remote_line_share),
            (
                "scripts.native.remote_payment_share",
                self.remote_payment_share,
            ),
            ("scripts.native.rollback_share", self.rollback_share),
        ] {
            if !(0.0..=1.0).contains(&share) {
                let message = format!("got {share}, allowed are shares from 0 to 1");
                return Err(ConfigError::new(key, message));
            }
        }
        let draws = Draws {
            constants: Constants::of_seed(number(variables, "seed", 0)?),
            warehouses: number(variables, "warehouses", 1)?.cast_signed(),
            home: self.home,
            remote_line_share: self.remote_line_share,
            remote_payment_share: self.remote_payment_share,
            rollback_share: self.rollback_share,
        };
        Ok(Box::new(Transactions {
            draws,
            form: match (self.form, self.pipeline) {
                (SentForm::Statements, false) => Form::Statements,
                (SentForm::Statements, true) => Form::Pipelined,
                (SentForm::Procedures, _) => Form::Procedures,
            },
            isolation: self.isolation,
            keeps_ledger,
        }))
    }
}

/// A warehouse number is an `int`.
const MOST: u64 = i32::MAX as u64;

fn number(
    variables: &BTreeMap<String, String>,
    name: &str,
    least: u64,
) -> Result<u64, ConfigError> {
    let text = variables.get(name).map(String::as_str);
    let most = if name == "seed" { u64::MAX } else { MOST };
    let number = text.and_then(|text| text.parse().ok());
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            let got = text.map_or_else(|| "nothing".to_owned(), |text| format!("{text:?}"));
            let message = format!("{name}: got {got}; the dataset's is needed, from {least} on");
            ConfigError::new("variables", message)
        })
}
