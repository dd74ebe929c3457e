//! The load engine: threads, connections, schedule and recorder.
//!
//! [`LoadRun`] is a run as seen from outside. Inside, each thread (`worker`) polls its own sockets, and each
//! connection (`client`) is a state machine over messages that were put together before the run (`program`). While
//! they run, threads share nothing but counters and, once a second, the series.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod client;
mod config;
mod connecting;
mod context;
mod control;
mod errors;
mod latencies;
mod link;
mod program;
mod readiness;
mod recorder;
mod report;
mod run;
mod series;
mod timeline;
mod worker;

pub use config::{Config, ConfigError, Protocol, ScriptSource};
pub use errors::ErrorKind;
pub use program::{AUTOMATIC_VARIABLES, ScriptError};
pub use recorder::Totals;
pub use report::{EngineCost, ErrorResult, HistogramResult, RunResult};
pub use run::{LoadRun, PrepareError, Progress, RunError};
pub use series::SeriesRow;
pub use timeline::Phase;
