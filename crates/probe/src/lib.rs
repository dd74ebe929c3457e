//! The fsync probe: how long a storage takes to make a write durable, by every method that PostgreSQL can use.
//!
//! [`plan`] is pure: what is measured, case by case. A [`Probe`] holds the file that is written to, and measures one case
//! at a time, so that storages can be compared in turns. The first groups of the plan do what PostgreSQL's
//! `pg_test_fsync` does, system call by system call.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod buffer;
mod case;
mod error;
mod figure;
mod log;
mod own_file;
mod plan;
mod probe;
mod single;
mod target;
mod until;
mod writers;

pub use case::{Case, Descriptor, Group, Method, Place, Sharing};
pub use error::ProbeError;
pub use figure::{Figure, Outcome};
pub use plan::{Options, plan};
pub use probe::Probe;

/// Length of the file: one WAL segment as `initdb` makes it, as in `pg_test_fsync`.
pub const SEGMENT_BYTES: u64 = 16 << 20;
/// PostgreSQL's WAL block.
pub const WAL_BLOCK_BYTES: u32 = 8192;
/// WAL that a committing transaction leaves in the model of group commit: about that of pgbench's TPC-B-like one, without
/// images of full pages.
pub const RECORD_BYTES: u64 = 512;
