//! A file that is written next to the one that it is to replace.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::pages::failure::PieceError;
use crate::pages::relation::with_suffix;

const SUFFIX: &str = ".plinth";
const PRIVATE: u32 = 0o600;

/// A new file, which is removed when it is dropped before it was put in place.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: File,
    path: PathBuf,
    target: PathBuf,
}

/// A part of a file, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

impl NewFile {
    /// Makes it next to `target`, with the owner, group and mode of `model`.
    pub(crate) fn create(target: &Path, model: &Path) -> Result<Self, PieceError> {
        let wanted =
            fs::metadata(model).map_err(|error| PieceError::Io("look at the table's", error))?;
        let path = with_suffix(target, SUFFIX);
        let file =
            create_new(&path).map_err(|error| PieceError::Io("make a file next to", error))?;
        let new = Self {
            file,
            path,
            target: target.to_owned(),
        };
        new.belong_as(&wanted)
            .map_err(|error| PieceError::Io("give the server a file next to", error))?;
        Ok(new)
    }

    fn belong_as(&self, wanted: &fs::Metadata) -> io::Result<()> {
        let now = self.file.metadata()?;
        if (now.uid(), now.gid()) != (wanted.uid(), wanted.gid()) {
            fchown(&self.file, Some(wanted.uid()), Some(wanted.gid()))?;
        }
        self.file
            .set_permissions(Permissions::from_mode(wanted.mode() & 0o7777))
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), PieceError> {
        let written = self.file.write_all_at(bytes, at);
        written.map_err(|error| PieceError::Io("write", error))
    }

    /// Makes the kernel begin to write `begun` to the disk, and waits until `ended` is written. So writeback never stops, little
    /// is left to write at any time, and the last flush is short.
    pub(crate) fn flush(&self, begun: Part, ended: Option<Part>) -> Result<(), PieceError> {
        let begin = libc::SYNC_FILE_RANGE_WRITE;
        let end = libc::SYNC_FILE_RANGE_WAIT_BEFORE | begin | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        self.sync_range(begun, begin)
            .and_then(|()| ended.map_or(Ok(()), |ended| self.sync_range(ended, end)))
            .map_err(|error| PieceError::Io("flush", error))
    }

    fn sync_range(&self, part: Part, flags: libc::c_uint) -> io::Result<()> {
        #[allow(
            unsafe_code,
            reason = "no safe binding; by value, about a file that is open"
        )]
        let result = unsafe {
            libc::sync_file_range(
                self.file.as_raw_fd(),
                part.at as i64,
                part.bytes as i64,
                flags,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Makes it durable and renames it over the other. The rename is durable once its directory is.
    pub(crate) fn put_in_place(&self) -> Result<(), PieceError> {
        let error = |error| PieceError::Io("flush", error);
        self.file.sync_all().map_err(error)?;
        fs::rename(&self.path, &self.target).map_err(|error| PieceError::Io("replace", error))
    }
}

impl Drop for NewFile {
    /// A file that was put in place no longer has this name. An error here was preceded by another, which was reported.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The folder belongs to the server's user, who must not redirect the write by a symbolic link: a file that a killed load
/// left is removed, never opened.
fn create_new(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(PRIVATE)
        .open(path)
}

/// Makes the entries of a directory durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), PieceError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| PieceError::Io("flush the folder of", error))
}
