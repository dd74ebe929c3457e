//! What happens to a disk, recorded, so that its content at any moment can be had later.

mod format;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use format::Header;
pub(crate) use reader::Image;
pub use reader::Recording;
pub(crate) use writer::{NewFiles, Recorder, RecordingStatus};
