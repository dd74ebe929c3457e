//! The load engine: threads, connections, schedule and recorder.
//!
//! [`LoadRun`] is a run as seen from outside. Inside, each thread (`worker`) polls its own sockets, and each
//! connection (`client`) is a state machine over messages that were put together before the run (`program`). While
//! they run, threads share nothing but counters and, once a second, the series.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod aggregates;
mod arrivals;
mod assignment;
mod cancelling;
mod client;
mod clock;
mod commit_ledger;
mod compiled;
mod conditional;
mod config;
mod connecting;
mod context;
mod control;
mod debugging;
mod deck;
mod errors;
mod events;
mod gset;
mod latencies;
mod limits;
mod link;
mod log;
mod pacing;
mod part;
mod pipeline;
mod program;
mod protocol;
mod readiness;
mod recorder;
mod recording;
mod replay;
mod report;
mod run;
mod seconds;
mod seed;
mod series;
mod shell;
mod source;
mod started;
mod statement;
mod timeline;
mod worker;
mod workloads;

pub use aggregates::Totals;
pub use arrivals::{Distribution, Rate, Stage};
pub use commit_ledger::LedgerConfig;
pub use compiled::{CompiledWorkload, TPCC_PROCEDURES};
pub use config::{Config, ShellUser};
pub use errors::ErrorKind;
pub use events::{Event, EventKind};
pub use log::LogConfig;
pub use part::Part;
pub use plinth_config::ConfigError;
pub use program::{AUTOMATIC_VARIABLES, ScriptError};
pub use protocol::Protocol;
pub use recording::{Labelled, ReplayConfig, classes_of};
pub use report::{EngineCost, ErrorResult, HistogramResult, ReplayCounts, RunResult, ScriptResult};
pub use run::{LoadRun, PrepareError, Progress, RunError};
pub use seed::seed;
pub use series::SeriesRow;
pub use source::TransactionSource;
pub use timeline::Phase;
