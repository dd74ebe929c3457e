//! The bulk loader: generated rows, sent by several COPY streams at once, or written into a stopped server's files.
//!
//! A [`BulkRun`] opens one session a stream, each on a thread of its own with a blocking socket. The streams share the
//! [`Piece`]s of the dataset. Each is a transaction, together with its row in the table of load progress, if there is one: however a
//! load ends, the next one sends what is not there yet, and nothing twice. When a stream fails, or the run is stopped, the
//! others withdraw the piece that they are sending.
//!
//! A [`PageRun`] writes the pages of tables and keys itself; both are tasks of a pool of threads.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod columns;
mod config;
mod control;
mod copy;
mod error;
mod failure;
mod pages;
mod piece;
mod pool;
mod report;
mod run;
mod session;
mod table;
mod tpcb;
mod tpcc;

pub use columns::{Column, ColumnsGenerator};
pub use config::{Config, Generator};
pub use error::RunError;
pub use failure::Failure;
pub use pages::{
    ColumnType, IndexFile, PageColumn, PageConfig, PageFailure, PageProgress, PageResult, PageRun,
    Relation,
};
pub use piece::Piece;
pub use plinth_config::ConfigError;
pub use run::{BulkResult, BulkRun, Progress};
pub use tpcb::TpcbGenerator;
pub use tpcc::TpccGenerator;
