//! An emulated disk: configurable physics and faults, under a real file system and a real server.
//!
//! [`model`] is the disk as a value: when requests end, what a power cut leaves, which requests fail. It does no I/O and
//! reads no clock. Around it, a [`DiskServer`] serves one file, `disk.img`, over FUSE, as the file of a
//! loop device, keeps the data in a sparse backing file, and takes commands on a socket.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod backing;
mod control;
mod counters;
mod disk;
mod error;
mod filesystem;
mod image;
mod instance;
pub mod model;
mod recording;
mod replies;
mod server;
mod sparse;

pub use error::DiskError;
pub use filesystem::FILE_NAME;
pub use instance::InstanceConfig;
pub use recording::{ImageConfig, Recording};
pub use server::{Config, DiskServer};
