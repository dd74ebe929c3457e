//! The compiled workloads of a run.

use plinth_config::ConfigError;

use crate::compiled::{CompiledWorkload, LedgerRows, TransactionType, Workload, WorkloadClient};
use crate::config::Config;
use crate::protocol::Protocol;
use crate::source::TransactionSource;

/// A transaction of a run: the workload, by its number among those of the run, and its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) workload: usize,
    pub(crate) transaction: usize,
}

/// The compiled workloads of a run. Transactions whose parameters agree are of the same, and share a client's state.
#[derive(Debug)]
pub(crate) struct Workloads {
    pub(crate) workloads: Vec<Box<dyn Workload>>,
    /// Of each transaction of the configuration; `None` of scripts.
    found: Vec<Option<Found>>,
}

impl Workloads {
    /// Makes what the configuration names.
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        let mut made = Self {
            workloads: Vec::new(),
            found: Vec::new(),
        };
        let mut parameters: Vec<&CompiledWorkload> = Vec::new();
        for source in &config.scripts {
            let Some(compiled) = &source.compiled else {
                made.found.push(None);
                continue;
            };
            if config.protocol == Protocol::Simple {
                let message =
                    "got simple; transactions that are compiled in need extended or prepared";
                return Err(ConfigError::new("protocol", message));
            }
            let keeps_ledger = config.ledger.is_some();
            match compiled.ledger_rows() {
                LedgerRows::Never if keeps_ledger => {
                    let message = "got a ledger with transactions that are compiled in and leave no rows to compare it with; \
                        it is kept of scripts and of the workloads ledger and tpcc";
                    return Err(ConfigError::new("ledger", message));
                }
                LedgerRows::Always if !keeps_ledger => {
                    return Err(ConfigError::new(
                        "ledger",
                        "got none; the workload ledger needs one",
                    ));
                }
                _ => {}
            }
            let known = parameters.iter().position(|known| *known == compiled);
            let workload = match known {
                Some(known) => known,
                None => {
                    parameters.push(compiled);
                    made.workloads
                        .push(compiled.make(&config.variables, keeps_ledger)?);
                    made.workloads.len() - 1
                }
            };
            let transaction = made.transaction(workload, source)?;
            made.found.push(Some(Found {
                workload,
                transaction,
            }));
        }
        made.check_session_options()?;
        Ok(made)
    }

    /// A session has the options of all workloads of the run.
    fn check_session_options(&self) -> Result<(), ConfigError> {
        let mut options = self
            .workloads
            .iter()
            .filter_map(|one| one.session_options());
        let first = options.next();
        let other = options.find(|other| Some(*other) != first);
        if let (Some(first), Some(other)) = (first, other) {
            let message = format!(
                "got transactions that need sessions with {first} and with {other}; a run has one of these"
            );
            return Err(ConfigError::new("scripts", message));
        }
        Ok(())
    }

    fn transaction(
        &self,
        workload: usize,
        source: &TransactionSource,
    ) -> Result<usize, ConfigError> {
        let types = self.workloads[workload].transactions();
        let place = types.iter().position(|known| known.name == source.name);
        place.ok_or_else(|| {
            let known: Vec<_> = types.iter().map(|known| known.name).collect();
            let message = format!(
                "got a transaction {:?}, which the workload does not have; it has {}",
                source.name,
                known.join(", ")
            );
            ConfigError::new("scripts", message)
        })
    }

    /// What the transaction with this place in the configuration is, if it is compiled in.
    pub(crate) fn find(&self, place: usize) -> Option<(Found, TransactionType)> {
        let found = self.found[place]?;
        let mut types = self.workloads[found.workload].transactions();
        Some((found, types.swap_remove(found.transaction)))
    }

    /// What sessions ask of the server at their beginning: `given`, and what the workloads need.
    pub(crate) fn session_options(&self, given: Option<String>) -> Option<String> {
        let mut needed = self
            .workloads
            .iter()
            .filter_map(|one| one.session_options());
        let all: Vec<_> = given.as_deref().into_iter().chain(needed.next()).collect();
        (!all.is_empty()).then(|| all.join(" "))
    }

    /// The states of a client.
    pub(crate) fn clients(&self, number: usize) -> Vec<Box<dyn WorkloadClient>> {
        let workloads = self.workloads.iter();
        workloads.map(|workload| workload.client(number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn transaction(name: &str, keys: &Value) -> Value {
        json!({"name": name, "native": {"workload": "account-mix", "keys": keys}})
    }

    /// What a configuration of these transactions is refused for.
    fn refused(transactions: &[Value], protocol: &str, scale: &str) -> Result<Workloads, String> {
        let config: Config = serde_json::from_value(json!({
            "connection": {"host": "/tmp", "port": 5432, "user": "u", "database": "d"}, "clients": 1, "threads": 1,
            "protocol": protocol, "scripts": transactions, "variables": {"scale": scale}, "duration_s": 1, "seed": 7,
        }))
        .map_err(|error| error.to_string())?;
        let validated = config.validate().and_then(|()| Workloads::new(&config));
        validated.map_err(|error| error.to_string())
    }

    #[test]
    fn transactions_with_the_same_parameters_are_of_one_workload() {
        let uniform = json!({"distribution": "uniform"});
        let zipfian = json!({"distribution": "zipfian", "parameter": 1.5, "active_rows": 9});
        let script = json!({"name": "a", "source": "SELECT 1;"});
        let made = refused(
            &[
                transaction("lookup", &uniform),
                script,
                transaction("transfer", &uniform),
                transaction("lookup", &zipfian),
            ],
            "prepared",
            "1",
        )
        .unwrap();
        let found: Vec<_> = made
            .found
            .iter()
            .map(|found| found.map(|found| (found.workload, found.transaction)))
            .collect();
        assert_eq!(found, [Some((0, 0)), None, Some((0, 1)), Some((1, 0))]);
        assert_eq!(made.clients(0).len(), 2);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let uniform = json!({"distribution": "uniform"});
        let keys = |distribution: &str, parameter: Value| json!({"distribution": distribution, "parameter": parameter});
        let both = json!({"name": "lookup", "source": "", "native": {"workload": "account-mix", "keys": uniform}});
        let unknown_key = json!({"distribution": "uniform", "rows": 1});
        let cases = [
            (
                transaction("look", &uniform),
                "prepared",
                "1",
                "it has lookup, transfer",
            ),
            (
                transaction("lookup", &uniform),
                "simple",
                "1",
                "protocol: got simple",
            ),
            (
                transaction("lookup", &uniform),
                "prepared",
                "0",
                "scale: got \"0\"",
            ),
            (
                transaction("lookup", &unknown_key),
                "prepared",
                "1",
                "unknown field `rows`",
            ),
            (
                transaction(
                    "lookup",
                    &json!({"distribution": "uniform", "active_rows": 1}),
                ),
                "prepared",
                "1",
                "got 1 rows to choose from",
            ),
            (
                transaction("lookup", &keys("uniform", json!(1))),
                "prepared",
                "1",
                "null with uniform",
            ),
            (
                transaction("lookup", &keys("zipfian", json!(1))),
                "prepared",
                "1",
                "got 1, allowed is 1.001",
            ),
            (
                transaction("lookup", &keys("gaussian", Value::Null)),
                "prepared",
                "1",
                "got null",
            ),
            (both, "prepared", "1", "exactly one of source and native"),
        ];
        for (transaction, protocol, scale, message) in cases {
            let error = refused(&[transaction], protocol, scale).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
