//! The file system with one file: the kernel's requests as requests to the disk.
//!
//! Nothing is cached on either side (`FOPEN_DIRECT_IO`, and a loop device with direct I/O), so that every request
//! reaches the disk. A guest's flush arrives as FSYNC; FLUSH is sent when a file is closed and means nothing here.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{FallocateFlags, OFlags};

use crate::backing::BLOCK_BYTES;
use crate::disk::{Disk, RequestError};
use crate::model::Extent;
use crate::replies::{Replies, Reply};

/// The one file that is served.
pub const FILE_NAME: &str = "disk.img";

const ROOT: INodeNo = INodeNo(1);
const FILE: INodeNo = INodeNo(2);
/// How long the kernel may cache attributes. They never change, but a lookup has to notice soon that the daemon has ended.
const ATTRIBUTE_TTL: Duration = Duration::from_secs(1);
const MAX_WRITE_BYTES: u32 = 1 << 20;
const MAX_BACKGROUND: u16 = 128;

pub(crate) struct DiskFilesystem {
    pub(crate) disk: Arc<Disk>,
    pub(crate) replies: Arc<Replies>,
}

impl DiskFilesystem {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_root = inode == ROOT;
        let size = if is_root { 0 } else { self.disk.size_bytes() };
        FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_root {
                FileType::Directory
            } else {
                FileType::RegularFile
            },
            perm: if is_root { 0o700 } else { 0o600 },
            nlink: if is_root { 2 } else { 1 },
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: BLOCK_BYTES as u32,
            flags: 0,
        }
    }
}

impl From<RequestError> for Errno {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::NoPower => Self::EIO,
            RequestError::Backing(error) => Self::from(error),
        }
    }
}

impl Filesystem for DiskFilesystem {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let without = |what| io::Error::other(format!("the kernel's FUSE lacks {what}"));
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_MAX_PAGES)
            .map_err(|missing| without(format!("{missing:?}")))?;
        config
            .set_max_write(MAX_WRITE_BYTES)
            .map_err(|_| without("writes of 1 MiB".to_owned()))?;
        config
            .set_max_background(MAX_BACKGROUND)
            .map_err(|_| without("background requests".to_owned()))?;
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == ROOT && name == FILE_NAME {
            reply.entry(&ATTRIBUTE_TTL, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&ATTRIBUTE_TTL, &self.attributes(ino));
    }

    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let other_size = size.is_some_and(|size| size != self.disk.size_bytes());
        if other_size || mode.is_some() || uid.is_some() || gid.is_some() {
            reply.error(Errno::EPERM); // a disk's size is fixed
        } else {
            reply.attr(&ATTRIBUTE_TTL, &self.attributes(ino));
        }
    }

    fn open(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if ino != FILE {
            return reply.error(Errno::EISDIR);
        }
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let end = self
            .disk
            .size_bytes()
            .min(offset.saturating_add(size.into()));
        let length = end.saturating_sub(offset);
        if length == 0 {
            return reply.data(&[]);
        }
        match self.disk.read(Extent { offset, length }) {
            Ok((bytes, pending)) => self.replies.send(pending, Reply::Data(reply, bytes)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if offset.saturating_add(data.len() as u64) > self.disk.size_bytes() {
            return reply.error(Errno::ENOSPC);
        }
        let through = flags.0 & OFlags::DSYNC.bits() as i32 != 0;
        match self.disk.write(offset, data, through) {
            Ok(pending) => {
                let length = data.len() as u32;
                self.replies.send(pending, Reply::Written(reply, length));
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn fsync(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        match self.disk.flush() {
            Ok(pending) => self.replies.send(pending, Reply::Done(reply)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn fallocate(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        if !mode.intersects(FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let end = self.disk.size_bytes().min(offset.saturating_add(length));
        let length = end.saturating_sub(offset);
        if length == 0 {
            return reply.error(Errno::EINVAL);
        }
        match self.disk.discard(Extent { offset, length }) {
            Ok(pending) => self.replies.send(pending, Reply::Done(reply)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn readdir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = [
            (ROOT, FileType::Directory, "."),
            (ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, FILE_NAME),
        ];
        for (index, (inode, kind, name)) in entries.iter().enumerate().skip(offset as usize) {
            if reply.add(*inode, index as u64 + 1, *kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let blocks = self.disk.size_bytes() / BLOCK_BYTES;
        reply.statfs(
            blocks,
            0,
            0,
            2,
            0,
            BLOCK_BYTES as u32,
            255,
            BLOCK_BYTES as u32,
        );
    }
}
