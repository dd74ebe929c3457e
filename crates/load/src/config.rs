//! What a run is to do. Defaults and bounds are those of `plinth.model.load_config` ([`crate::limits`]).

use std::collections::BTreeMap;
use std::time::Duration;

use plinth_config::ConfigError;
use plinth_connect::Target;
use plinth_script::is_name;
use serde::Deserialize;

use crate::arrivals::Rate;
use crate::commit_ledger::LedgerConfig;
use crate::deck::MOST_CARDS;
use crate::limits::{self, LONGEST_S, MOST_CLIENTS};
use crate::log::LogConfig;
use crate::pacing;
use crate::part::Part;
use crate::protocol::Protocol;
use crate::recording::ReplayConfig;
use crate::seconds::nanoseconds;
use crate::source::TransactionSource;

/// A load: who connects where and runs what, and for how long.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The server.
    pub connection: Target,
    /// Number of connections.
    pub clients: usize,
    /// Number of threads; more than clients are not started.
    pub threads: usize,
    /// How statements are sent.
    pub protocol: Protocol,
    /// What the clients run, chosen again for each transaction, by weight. Nothing in a replay.
    #[serde(default)]
    pub scripts: Vec<TransactionSource>,
    /// Or: a recording that is replayed. `clients` is then how many connections there are at most at one time.
    #[serde(default)]
    pub replay: Option<ReplayConfig>,
    /// They are dealt from a deck, without replacement, that has as many cards of each as its weight says.
    #[serde(default)]
    pub deck: bool,
    /// Variables set from outside, as text.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// How long the load runs before it is measured.
    #[serde(default)]
    pub warmup_s: f64,
    /// The warm-up continues until [`crate::LoadRun::begin_measuring`], but no longer than this; `warmup_s` is then its minimum.
    #[serde(default)]
    pub warmup_max_s: Option<f64>,
    /// How long it is measured. A replay ends with its recording at the latest, and needs none.
    pub duration_s: Option<f64>,
    /// Or: how many transactions of each client are measured.
    pub transactions_per_client: Option<u64>,
    /// An open loop; without it the loop is closed: a client begins when it has finished.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// A transaction that takes longer counts as late; in an open loop, one that is later than this before it begins is
    /// skipped: pgbench's `--latency-limit`.
    #[serde(default)]
    pub latency_limit_s: Option<f64>,
    /// The same seed gives the same random numbers, as pgbench's `--random-seed`.
    pub seed: u64,
    /// How often a transaction is tried when it fails with a serialization failure or a deadlock;
    /// 0 for as often as the duration and the latency limit allow.
    #[serde(default = "limits::max_tries")]
    pub max_tries: u32,
    /// Each transaction gets a connection of its own: pgbench's `--connect`.
    #[serde(default)]
    pub reconnect: bool,
    /// A client whose connection is lost, or that gets none, tries again after this pause; without it the client ends.
    #[serde(default)]
    pub retry_connect_s: Option<f64>,
    /// A client whose session an administrator terminates (SQLSTATE 57P01) opens another one, once, at once; without it, and
    /// where there is none to be had, the client ends, as pgbench's.
    #[serde(default)]
    pub replace_terminated: bool,
    /// An error that is neither a serialization failure nor a deadlock ends its client, as pgbench has it; otherwise the
    /// client continues with the next transaction.
    #[serde(default)]
    pub abort_on_error: bool,
    /// Nothing begins unless every client has a connection, as pgbench has it; otherwise those that have one begin.
    #[serde(default)]
    pub require_all_clients: bool,
    /// A variable that nothing sets, or a name that no variable can have, is an error before anything begins; otherwise only
    /// of the client that reaches it, as in pgbench, where an unset parameter of the extended and the prepared protocol is a
    /// null.
    #[serde(default = "limits::check_variables")]
    pub check_variables: bool,
    /// An aborted client ends the run.
    #[serde(default)]
    pub exit_on_abort: bool,
    /// Tell every error in the progress.
    #[serde(default)]
    pub verbose_errors: bool,
    /// Time meta commands as well, each for two readings of the clock: pgbench's `--report-per-command`.
    #[serde(default)]
    pub command_latencies: bool,
    /// A log of transactions.
    #[serde(default)]
    pub log: Option<LogConfig>,
    /// A commit ledger.
    #[serde(default)]
    pub ledger: Option<LedgerConfig>,
    /// Who runs the commands of `\shell` and `\setshell`; by default, the user of this process.
    #[serde(default)]
    pub shell_user: Option<ShellUser>,
    /// The part of the load that this process runs, where several processes run it together.
    #[serde(default)]
    pub part: Option<Part>,
    /// How long one connection may take.
    #[serde(default = "limits::connect_timeout_s")]
    pub connect_timeout_s: f64,
    /// How long running transactions may take after a stop.
    #[serde(default = "limits::stop_timeout_s")]
    pub stop_timeout_s: f64,
}

/// Another user, for commands that must not have the rights of this program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellUser {
    /// User id.
    pub uid: u32,
    /// Group id; the user has no further groups.
    pub gid: u32,
    /// The whole environment of the commands.
    pub environment: BTreeMap<String, String>,
    /// Whether what they print is dropped, unless `\setshell` reads it; it could otherwise write to our terminal.
    #[serde(default)]
    pub discards_output: bool,
}

impl Config {
    /// Checks everything that can be known without parsing scripts.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let scripts = match self.replay {
            Some(_) => 1,
            None => self.scripts.len(),
        };
        for (key, count) in [
            ("clients", self.clients),
            ("threads", self.threads),
            ("scripts", scripts),
        ] {
            if count == 0 {
                return Err(ConfigError::new(key, "got 0, at least 1 is needed"));
            }
        }
        if self.clients > MOST_CLIENTS {
            let message = format!("got {}, at most {MOST_CLIENTS} are allowed", self.clients);
            return Err(ConfigError::new("clients", message));
        }
        if let Some(replay) = &self.replay {
            replay.validate()?;
            self.validate_with_replay()?;
        } else if self.scripts.iter().all(|script| script.weight == 0) {
            return Err(ConfigError::new(
                "scripts",
                "all weights are 0: none would ever be chosen",
            ));
        }
        let cards: u64 = self.scripts.iter().map(|one| u64::from(one.weight)).sum();
        if self.deck && cards > MOST_CARDS {
            let message = format!("got {cards} cards, at most {MOST_CARDS} are allowed");
            return Err(ConfigError::new("deck", message));
        }
        if let Some(neither) = self
            .scripts
            .iter()
            .find(|script| script.source.is_some() == script.compiled.is_some())
        {
            let message = format!(
                "{:?}: exactly one of source and native is needed",
                neither.name
            );
            return Err(ConfigError::new("scripts", message));
        }
        let duration_s = match (self.duration_s, self.transactions_per_client) {
            (Some(duration_s), None) => duration_s,
            (None, Some(0)) => {
                return Err(ConfigError::new(
                    "transactions_per_client",
                    "got 0, at least 1 is needed",
                ));
            }
            (None, Some(_)) => LONGEST_S,
            (None, None) if self.replay.is_some() => LONGEST_S,
            _ => {
                return Err(ConfigError::new(
                    "duration_s",
                    "exactly one of duration_s and transactions_per_client is needed",
                ));
            }
        };
        let times = [
            ("warmup_s", self.warmup_s, true),
            ("warmup_max_s", self.warmup_max_s.unwrap_or(0.0), true),
            (
                "latency_limit_s",
                self.latency_limit_s.unwrap_or(LONGEST_S),
                false,
            ),
            ("duration_s", duration_s, false),
            (
                "retry_connect_s",
                self.retry_connect_s.unwrap_or(LONGEST_S),
                false,
            ),
            ("connect_timeout_s", self.connect_timeout_s, false),
            ("stop_timeout_s", self.stop_timeout_s, true),
        ];
        for (key, seconds, zero_is_allowed) in times {
            let is_allowed =
                (0.0..=LONGEST_S).contains(&seconds) && (zero_is_allowed || seconds > 0.0);
            if !is_allowed {
                let least = if zero_is_allowed { "from 0" } else { "above 0" };
                let message =
                    format!("got {seconds}, allowed are seconds {least} up to {LONGEST_S}");
                return Err(ConfigError::new(key, message));
            }
        }
        if let Some(longest_s) = self.warmup_max_s {
            self.validate_open_warmup(longest_s)?;
        }
        if let Some((name, _)) = self.variables.iter().find(|(_, text)| text.contains('\0')) {
            let message = format!("the text of {name:?} has a zero byte, which SQL cannot carry");
            return Err(ConfigError::new("variables", message));
        }
        if let Some(name) = self.variables.keys().find(|name| !is_name(name)) {
            let message = format!("invalid variable name: \"{name}\"");
            return Err(ConfigError::new("variables", message));
        }
        if self.max_tries == 0 && self.duration_s.is_none() && self.latency_limit_s.is_none() {
            return Err(ConfigError::new(
                "max_tries",
                "0 (no limit) is only allowed with duration_s or latency_limit_s",
            ));
        }
        if let Some(part) = self.part {
            part.validate(self.threads())?;
        }
        self.rate.as_ref().map_or(Ok(()), Rate::validate)?;
        pacing::validate(&self.scripts, self.rate.is_some())?;
        self.log.as_ref().map_or(Ok(()), LogConfig::validate)?;
        self.ledger.as_ref().map_or(Ok(()), LedgerConfig::validate)
    }

    /// What has no meaning in a replay.
    fn validate_with_replay(&self) -> Result<(), ConfigError> {
        let given = [
            ("scripts", !self.scripts.is_empty()),
            ("deck", self.deck),
            (
                "transactions_per_client",
                self.transactions_per_client.is_some(),
            ),
            ("rate", self.rate.is_some()),
            ("latency_limit_s", self.latency_limit_s.is_some()),
            ("reconnect", self.reconnect),
            ("command_latencies", self.command_latencies),
            ("log", self.log.is_some()),
            ("ledger", self.ledger.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => Err(ConfigError::new(
                key,
                "not in a replay: the recording says what is run, and when",
            )),
            None => Ok(()),
        }
    }

    /// Whether clients get their connections only when something is to be sent.
    pub(crate) fn connects_later(&self) -> bool {
        self.reconnect || self.replay.as_ref().is_some_and(|replay| !replay.pooled)
    }

    /// What cannot be told beforehand when the end of the warm-up is not known.
    fn validate_open_warmup(&self, longest_s: f64) -> Result<(), ConfigError> {
        let wrong = |message: String| Err(ConfigError::new("warmup_max_s", message));
        if longest_s < self.warmup_s {
            let least_s = self.warmup_s;
            return wrong(format!("got {longest_s}, less than warmup_s, {least_s}"));
        }
        if self.rate.as_ref().is_some_and(|rate| !rate.is_constant()) {
            return wrong(
                "not with a rate that changes: its stages begin where the warm-up ends".to_owned(),
            );
        }
        if self.log.is_some() {
            return wrong(
                "not with a log, whose intervals begin where the warm-up ends".to_owned(),
            );
        }
        Ok(())
    }

    /// The warm-up at its longest.
    pub(crate) fn longest_warmup_s(&self) -> f64 {
        self.warmup_max_s.unwrap_or(self.warmup_s)
    }

    /// Threads of the load, over all processes that run it together.
    pub(crate) fn threads(&self) -> usize {
        self.threads.min(self.clients)
    }

    /// Numbers of the threads that this process starts.
    pub(crate) fn own_threads(&self) -> impl ExactSizeIterator<Item = usize> + use<> {
        let part = self.part.unwrap_or_default();
        (part.number..self.threads()).step_by(part.of)
    }

    /// `u64::MAX` when there is none.
    pub(crate) fn latency_limit_ns(&self) -> u64 {
        self.latency_limit_s.map_or(u64::MAX, nanoseconds)
    }

    /// `None`: a client without a connection ends.
    pub(crate) fn retry_connect_ns(&self) -> Option<u64> {
        self.retry_connect_s.map(nanoseconds)
    }

    pub(crate) fn connect_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.connect_timeout_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(changes: &[(&str, &str)]) -> Result<Config, serde_json::Error> {
        let mut config: BTreeMap<&str, serde_json::Value> = serde_json::from_str(
            r#"{"connection": {"host": "/tmp", "port": 5432, "user": "u", "database": "d"},
                "clients": 8, "threads": 2, "protocol": "prepared",
                "scripts": [{"name": "a", "source": "SELECT 1;"}], "duration_s": 5.0, "seed": 1}"#,
        )
        .unwrap();
        for (key, value) in changes {
            config.insert(key, serde_json::from_str(value).unwrap());
        }
        serde_json::from_value(serde_json::to_value(config).unwrap())
    }

    #[test]
    fn a_good_one_is_taken() {
        parsed(&[]).unwrap().validate().unwrap();
        let constant = r#"{"stages": [{"from_tps": 9, "to_tps": 9}]}"#;
        let good: [&[(&str, &str)]; 2] = [
            &[("duration_s", "null"), ("transactions_per_client", "7")],
            &[("warmup_s", "5"), ("warmup_max_s", "5"), ("rate", constant)],
        ];
        for changes in good {
            parsed(changes).unwrap().validate().unwrap();
        }
    }

    #[test]
    fn wrong_values_name_their_key() {
        let changing = r#"{"stages": [{"from_tps": 1, "to_tps": 2, "duration_s": 1}]}"#;
        let cases: [(&[(&str, &str)], &str); 19] = [
            (&[("variables", r#"{"1a": "x"}"#)], "variables"),
            (&[("clients", "262144")], "clients"),
            (&[("variables", r#"{"a": "\u0000"}"#)], "variables"),
            (&[("clients", "0")], "clients"),
            (&[("threads", "0")], "threads"),
            (&[("scripts", "[]")], "scripts"),
            (
                &[("scripts", r#"[{"name": "a", "source": "", "weight": 0}]"#)],
                "scripts",
            ),
            (
                &[
                    (
                        "scripts",
                        r#"[{"name": "a", "source": "", "weight": 100001}]"#,
                    ),
                    ("deck", "true"),
                ],
                "deck",
            ),
            (&[("duration_s", "null")], "duration_s"),
            (&[("transactions_per_client", "1")], "duration_s"),
            (
                &[("duration_s", "null"), ("transactions_per_client", "0")],
                "transactions_per_client",
            ),
            (&[("duration_s", "0")], "duration_s"),
            (&[("warmup_s", "-1")], "warmup_s"),
            (&[("warmup_max_s", "-1")], "warmup_max_s"),
            (
                &[("warmup_s", "5"), ("warmup_max_s", "4.9")],
                "warmup_max_s",
            ),
            (&[("warmup_max_s", "9"), ("rate", changing)], "warmup_max_s"),
            (
                &[("warmup_max_s", "9"), ("log", r#"{"prefix": "/tmp/a"}"#)],
                "warmup_max_s",
            ),
            (&[("stop_timeout_s", "1e300")], "stop_timeout_s"),
            (
                &[
                    ("duration_s", "null"),
                    ("transactions_per_client", "1"),
                    ("max_tries", "0"),
                ],
                "max_tries",
            ),
        ];
        for (changes, key) in cases {
            assert_eq!(
                parsed(changes).unwrap().validate().unwrap_err().key,
                key,
                "{changes:?}"
            );
        }
    }

    #[test]
    fn unknown_keys_and_values_are_refused() {
        for change in [
            ("client", "3"),
            ("protocol", "\"binary\""),
            ("clients", "-1"),
        ] {
            assert!(parsed(&[change]).is_err(), "{change:?}");
        }
    }
}
