//! Records all changes of a disk, so that its content at any moment can be reconstructed.

mod format;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use format::Header;
pub(crate) use reader::Image;
pub use reader::{ImageConfig, Recording};
pub(crate) use writer::{NewFiles, Recorder, RecordingStatus};
