//! The file as one case uses it: opened by the case's method, written to, made durable.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::case::{Case, Method};
use crate::error::ProbeError;

/// The reason why a case has no figure.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Not possible on this storage.
    Unavailable(String),
    /// Possible, and failed.
    Error(ProbeError),
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Self {
        Self::Error(error)
    }
}

/// An open file that a case writes to.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    path: &'a Path,
    method: Method,
    direct: bool,
    file: File,
}

impl<'a> Target<'a> {
    pub(crate) fn open(path: &'a Path, case: &Case) -> Result<Self, Failure> {
        let (method, direct) = (case.method, case.direct);
        let by_method = match method {
            Method::OpenDatasync => OFlags::DSYNC,
            Method::OpenSync => OFlags::SYNC,
            Method::FsyncWritethrough => {
                return Err(Failure::Unavailable(
                    "only macOS and Windows have it".to_owned(),
                ));
            }
            Method::Fdatasync | Method::Fsync | Method::None => OFlags::empty(),
        };
        let past_cache = if direct {
            OFlags::DIRECT
        } else {
            OFlags::empty()
        };
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags((by_method | past_cache).bits() as i32)
            .open(path);
        match opened {
            Ok(file) => Ok(Self {
                path,
                method,
                direct,
                file,
            }),
            Err(error) if direct && is_unsupported(&error) => Err(Failure::Unavailable(
                "this file system opens no files past the page cache (O_DIRECT)".to_owned(),
            )),
            Err(error) => Err(ProbeError::io("open", path)(error).into()),
        }
    }

    /// Writes once; the write is durable if the method is a flag of open(2).
    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), Failure> {
        self.file
            .write_all_at(bytes, offset)
            .map_err(|error| match is_unsupported(&error) {
                true if self.direct => Failure::Unavailable(format!(
                    "this storage takes no writes of {} bytes past the page cache (O_DIRECT)",
                    bytes.len()
                )),
                _ => ProbeError::io("write to", self.path)(error).into(),
            })
    }

    /// Makes what was written durable, unless the write has already.
    pub(crate) fn flush(&self) -> Result<(), Failure> {
        let (doing, result) = match self.method {
            Method::Fdatasync => ("fdatasync", self.file.sync_data()),
            Method::Fsync => ("fsync", self.file.sync_all()),
            _ => return Ok(()),
        };
        result.map_err(|error| ProbeError::io(doing, self.path)(error).into())
    }

    /// Empties the file, durably, so that the next flush has nothing to do with it.
    pub(crate) fn empty(&self) -> Result<(), Failure> {
        self.file
            .set_len(0)
            .and_then(|()| self.file.sync_all())
            .map_err(|error| ProbeError::io("empty", self.path)(error).into())
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::INVAL | Errno::OPNOTSUPP)
    )
}
