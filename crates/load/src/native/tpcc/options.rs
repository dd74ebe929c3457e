//! The parameters of `tpcc`.

use std::collections::BTreeMap;

use plinth_config::ConfigError;
use plinth_tpcc::Constants;
use serde::Deserialize;

use super::Transactions;
use super::inputs::Draws;
use crate::native::Workload;

/// The parameters of `tpcc`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tpcc {
    isolation: Isolation,
    home: Home,
    /// Statements that do not depend on an earlier answer are sent together.
    pipeline: bool,
    /// Share of order lines that another warehouse supplies.
    remote_line_share: f64,
    /// Share of payments by a customer of another warehouse.
    remote_payment_share: f64,
    /// Share of new orders that are rolled back for an unused item.
    rollback_share: f64,
}

/// The isolation of each transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Isolation {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// Which warehouse a client's transactions are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Home {
    /// Clients take turns, and each stays with its own.
    ByClient,
    /// Drawn for each transaction.
    Uniform,
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
            pipeline: self.pipeline,
            begin: match self.isolation {
                Isolation::ReadCommitted => "BEGIN ISOLATION LEVEL READ COMMITTED",
                Isolation::RepeatableRead => "BEGIN ISOLATION LEVEL REPEATABLE READ",
                Isolation::Serializable => "BEGIN ISOLATION LEVEL SERIALIZABLE",
            },
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
