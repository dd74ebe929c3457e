//! How a workload chooses a row by its key, from 1 on.

use std::collections::BTreeMap;

use plinth_config::ConfigError;
use plinth_script::Prng;
use plinth_script::distributions::{
    MIN_GAUSSIAN, ZIPFIAN_RANGE, exponential, gaussian, uniform, zipfian,
};
use serde::Deserialize;

/// Accounts of pgbench for each unit of its scale.
const ACCOUNTS_PER_SCALE: i64 = 100_000;

/// How a row is chosen, as pgbench's random functions do.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    distribution: Distribution,
    /// Of every distribution but uniform.
    parameter: Option<f64>,
    /// How many rows there are to choose from, the first ones; by default all.
    active_rows: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Distribution {
    Uniform,
    Gaussian,
    Exponential,
    Zipfian,
}

/// A choice among `rows` rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice {
    distribution: Distribution,
    parameter: f64,
    pub(crate) rows: i64,
}

impl Choice {
    /// A key from 1 to `rows`.
    pub(crate) fn draw(self, random: &mut Prng) -> i64 {
        let Self {
            rows, parameter, ..
        } = self;
        match self.distribution {
            Distribution::Uniform => uniform(random, 1, rows),
            Distribution::Gaussian => gaussian(random, 1, rows, parameter),
            Distribution::Exponential => exponential(random, 1, rows, parameter),
            Distribution::Zipfian => zipfian(random, 1, rows, parameter),
        }
    }
}

impl Keys {
    /// A choice among pgbench's accounts, of which at least `least` are needed.
    pub(crate) fn of_accounts(
        self,
        variables: &BTreeMap<String, String>,
        least: i64,
    ) -> Result<Choice, ConfigError> {
        let rows = match self.active_rows {
            Some(rows) => rows,
            None => accounts(variables)?,
        };
        if rows < least {
            let message = format!("got {rows} rows to choose from, at least {least} are needed");
            return Err(ConfigError::new("scripts.native.keys.active_rows", message));
        }
        let wrong = |allowed: &str| {
            let got = self
                .parameter
                .map_or_else(|| "null".to_owned(), |got| got.to_string());
            let message = format!("got {got}, allowed is {allowed}");
            Err(ConfigError::new("scripts.native.keys.parameter", message))
        };
        let parameter = match (self.distribution, self.parameter) {
            (Distribution::Uniform, None) => 0.0,
            (Distribution::Gaussian, Some(got)) if got >= MIN_GAUSSIAN && got.is_finite() => got,
            (Distribution::Exponential, Some(got)) if got > 0.0 && got.is_finite() => got,
            (Distribution::Zipfian, Some(got)) if ZIPFIAN_RANGE.contains(&got) => got,
            (Distribution::Uniform, _) => return wrong("null with uniform"),
            (Distribution::Gaussian, _) => return wrong("2 or more with gaussian"),
            (Distribution::Exponential, _) => return wrong("above 0 with exponential"),
            (Distribution::Zipfian, _) => return wrong("1.001 to 1000 with zipfian"),
        };
        Ok(Choice {
            distribution: self.distribution,
            parameter,
            rows,
        })
    }
}

fn accounts(variables: &BTreeMap<String, String>) -> Result<i64, ConfigError> {
    let text = variables.get("scale").map(String::as_str);
    let scale = text
        .and_then(|text| text.parse::<i64>().ok())
        .filter(|scale| *scale >= 1);
    scale
        .and_then(|scale| scale.checked_mul(ACCOUNTS_PER_SCALE))
        .ok_or_else(|| {
            let got = text.map_or_else(|| "nothing".to_owned(), |text| format!("{text:?}"));
            let message = format!(
                "scale: got {got}; an integer of 1 or more tells how many accounts there are"
            );
            ConfigError::new("variables", message)
        })
}
