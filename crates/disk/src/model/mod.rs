//! The disk as a value: no I/O, and no clock: time comes in as an argument, chance from a seed.

mod dice;
mod extent;
mod faults;
mod head;
mod pacing;
mod physics;
mod prediction;
mod profiles;
mod timing;
mod volatile;
mod write_cache;

pub use extent::{Extent, SECTOR_BYTES};
pub use faults::{EioFault, FaultError, FaultOperation, FaultState, Faults, Lie, left_out};
pub use physics::{Overrides, Physics, PhysicsError};
pub use prediction::DepthOne;
pub use profiles::{PROFILES, Profile, profile};
pub use timing::{Operation, Timing};
pub use volatile::{Cut, CutMode, CutReport, Old, Restore, Sequence, Volatile};

/// More requests than this at a time come from no kernel queue.
const MAX_CHANNELS: u32 = 1024;
