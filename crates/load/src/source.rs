//! What clients run.

use serde::Deserialize;

use crate::compiled::CompiledWorkload;
use crate::limits;

/// A script, or a transaction that is compiled in, and how often it is chosen.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionSource {
    /// Of a script, its file or the name of a built-in; of a transaction that is compiled in, which of its workload it is.
    pub name: String,
    /// The text of a script.
    #[serde(default)]
    pub source: Option<String>,
    /// Or the workload that the transaction is of.
    #[serde(default, rename = "native")]
    pub compiled: Option<CompiledWorkload>,
    /// Its share among all scripts' weights; 0 for never.
    #[serde(default = "limits::weight")]
    pub weight: u32,
    /// How long a client waits before each, which is no part of its latency: the keying time of a terminal.
    #[serde(default)]
    pub keying_s: f64,
    /// How long it waits afterwards, on average of an exponential distribution cut at ten times that: the think time.
    #[serde(default)]
    pub think_s: f64,
    /// The client does not wait for its end: its think time counts from when it was due.
    #[serde(default)]
    pub deferred: bool,
}
