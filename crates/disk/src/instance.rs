//! The limit of an instance over several volumes: disks of several processes share it by a file of two instants.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;

use crate::model::Pacer;

/// What the volumes of an instance may do together. 0 is no limit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceConfig {
    /// What they share; created when it does not exist.
    pub file: PathBuf,
    /// Reads and writes per second, of any size.
    #[serde(default)]
    pub iops: u64,
    /// Bytes read and written per second.
    #[serde(default)]
    pub bytes_per_s: u64,
}

/// The limit as one of its volumes sees it.
#[derive(Debug)]
pub(crate) struct Instance {
    file: File,
    iops: u64,
    bytes_per_s: u64,
}

impl Instance {
    pub(crate) fn open(config: &InstanceConfig) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&config.file)?;
        Ok(Self {
            file,
            iops: config.iops,
            bytes_per_s: config.bytes_per_s,
        })
    }

    /// How long a request of `length` bytes waits for its turn among those of all volumes. One thread at a time may ask.
    pub(crate) fn delay_ns(&self, length: u64) -> io::Result<u64> {
        flock(&self.file, FlockOperation::LockExclusive)?;
        let delay_ns = self.pass(now_ns(), length);
        flock(&self.file, FlockOperation::Unlock)?;
        delay_ns
    }

    fn pass(&self, now_ns: u64, length: u64) -> io::Result<u64> {
        let mut bytes = [0_u8; 16];
        self.file.read_at(&mut bytes, 0)?; // shorter when it is new: the zeros are of the past
        let (requests, transferred) = bytes.split_at(8);
        let mut requests = Pacer::next(u64_of(requests));
        let mut transferred = Pacer::next(u64_of(transferred));
        let passed_ns = requests.pass(now_ns, 1, self.iops).max(transferred.pass(
            now_ns,
            length,
            self.bytes_per_s,
        ));
        bytes[..8].copy_from_slice(&requests.next_ns().to_ne_bytes());
        bytes[8..].copy_from_slice(&transferred.next_ns().to_ne_bytes());
        self.file.write_all_at(&bytes, 0)?;
        Ok(passed_ns - now_ns)
    }
}

fn u64_of(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_ne_bytes)
}

/// The monotonic clock, which all processes of the machine share.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(folder: &tempfile::TempDir, iops: u64, bytes_per_s: u64) -> Instance {
        let file = folder.path().join("instance");
        Instance::open(&InstanceConfig {
            file,
            iops,
            bytes_per_s,
        })
        .unwrap()
    }

    #[test]
    fn two_volumes_share_what_one_instance_may_do() {
        let folder = tempfile::tempdir().unwrap();
        let volumes = [instance(&folder, 1_000, 0), instance(&folder, 1_000, 0)];
        let now_ns = 5_000_000_000;
        let last_ns = (0..2_000)
            .map(|number| volumes[number % 2].pass(now_ns, 8192).unwrap())
            .max()
            .unwrap();
        let seconds = last_ns as f64 / 1e9;
        assert!((seconds - 2.0).abs() < 0.02, "{seconds}");
    }

    #[test]
    fn bytes_are_limited_too() {
        let folder = tempfile::tempdir().unwrap();
        let volume = instance(&folder, 0, 10 << 20);
        let now_ns = 5_000_000_000;
        let last_ns = (0..300)
            .map(|_| volume.pass(now_ns, 1 << 20).unwrap())
            .max()
            .unwrap();
        let seconds = last_ns as f64 / 1e9;
        assert!((seconds - 29.9).abs() < 0.3, "{seconds}");
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let folder = tempfile::tempdir().unwrap();
        let volume = instance(&folder, 0, 0);
        assert_eq!(volume.delay_ns(1 << 30).unwrap(), 0);
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("instance")).unwrap();
        let file = folder.path().join("instance");
        let config = InstanceConfig {
            file,
            iops: 1,
            bytes_per_s: 0,
        };
        assert!(Instance::open(&config).is_err());
    }
}
