//! The model of a disk, without I/O and without a clock: time is an argument, and random numbers come from a seed.

mod bucket;
mod event;
mod extent;
mod faults;
mod head;
mod pacing;
mod physics;
mod prediction;
mod profiles;
mod replay;
mod rng;
mod timing;
mod volatile;
mod write_cache;

pub use event::{Event, Omission, Settings};
pub use extent::{Extent, SECTOR_BYTES};
pub use faults::{EioFault, FaultError, FaultOperation, FaultState, Faults, Lie, left_out};
pub(crate) use pacing::Pacer;
pub use physics::{Overrides, Physics, PhysicsError};
pub use prediction::DepthOne;
pub use profiles::{PROFILES, Profile, profile};
pub use replay::{Content, Piece, Replay, Source};
pub use timing::{Credits, Operation, Timing};
pub use volatile::{Cut, CutMode, CutReport, Old, Previous, Sequence, TornWrite, Volatile};

/// An upper limit for the requests that a kernel's queue has in flight.
const MAX_CHANNELS: u32 = 1024;
