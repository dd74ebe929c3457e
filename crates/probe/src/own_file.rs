//! A file of our own: made new, and removed with what holds it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::Buffer;
use crate::error::ProbeError;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A file that was not there before, and is not afterwards. It is open while it is filled, and then only for who measures.
///
/// It keeps its name while it is used. Without one, nothing would be left even by a kill, but btrfs then skips the log
/// that fsync is about (`i_nlink == 0` in `btrfs_log_inode_parent`).
#[derive(Debug)]
pub(crate) struct OwnFile {
    path: PathBuf,
    inode: u64,
}

impl OwnFile {
    /// A new, empty file in `directory`.
    pub(crate) fn empty(directory: &Path) -> Result<Self, ProbeError> {
        Ok(Self::create(directory)?.0)
    }

    /// A new file of `length` random bytes, `chunk` of them with each write, flushed so that they do not skew what follows.
    ///
    /// What a write costs later depends on the chunk: the kernel keeps in one folio what came with one write, and to change a
    /// block of it looks at all (ext4 of Linux 6.16 and later: 0.7 us for 8 kB of a file written by 8 kB, 4 us of one written
    /// by 16 MB).
    pub(crate) fn filled(directory: &Path, length: u64, chunk: usize) -> Result<Self, ProbeError> {
        let (own, file) = Self::create(directory)?;
        let buffer = Buffer::random(chunk, u64::from(process::id()) << 32 | own.inode);
        let mut offset = 0;
        while offset < length {
            let bytes = &buffer.bytes()[..chunk.min((length - offset) as usize)];
            file.write_all_at(bytes, offset)
                .map_err(ProbeError::io("write to", &own.path))?;
            offset += bytes.len() as u64;
        }
        file.sync_all()
            .map_err(ProbeError::io("fsync", &own.path))?;
        Ok(own)
    }

    fn create(directory: &Path) -> Result<(Self, File), ProbeError> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("plinth-probe-{}-{number}.tmp", process::id()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(ProbeError::io("make the file", &path))?;
        let inode = file
            .metadata()
            .map_err(ProbeError::io("look at", &path))?
            .ino();
        Ok((Self { path, inode }, file))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file. Another file that has taken its name meanwhile is left alone.
    pub(crate) fn remove(&self) -> Result<(), ProbeError> {
        let found = match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.map_err(ProbeError::io("look at", &self.path))?,
        };
        if found.ino() != self.inode {
            return Ok(());
        }
        fs::remove_file(&self.path).map_err(ProbeError::io("remove", &self.path))
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        // A caller that needs to know whether it went well has called `remove` before.
        let _ = self.remove();
    }
}
