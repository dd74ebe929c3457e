//! The bulk loader: generated rows, sent by several COPY streams at once.
//!
//! A [`BulkRun`] opens one session a stream, each on a thread of its own with a blocking socket. The streams share the
//! rows of the dataset, a chunk at a time, so that all of them end together. Each COPY is a transaction: when a
//! stream fails, or the run is stopped, the others withdraw what they have sent.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod columns;
mod config;
mod control;
mod copy;
mod run;
mod session;
mod table;
mod tpcb;

pub use columns::{Column, ColumnsGenerator};
pub use config::{Config, ConfigError, Generator};
pub use control::Progress;
pub use run::{BulkResult, BulkRun, Failure, RunError};
pub use tpcb::TpcbGenerator;
