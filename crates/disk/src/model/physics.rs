//! The numbers that make a disk slow: latencies, rates, a cache, and a head if it has one.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::MAX_CHANNELS;

/// The units that drives write atomically: sectors of 512 and 4096 bytes, and the larger units of NVMe drives.
const ATOMIC_WRITE_BYTES: [u64; 4] = [512, 4096, 8192, 16384];

/// The physics of a disk. Latencies are medians of lognormal distributions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Physics {
    /// Time of a read in the electronics and, without a head, in the medium.
    pub read_latency_ns: u64,
    /// Time of a write: to the cache if there is one, else to the medium.
    pub write_latency_ns: u64,
    /// Time of a flush, after the cache has been drained.
    pub flush_latency_ns: u64,
    /// Standard deviation of the logarithm of each latency; 0 makes latencies constant.
    pub spread: f64,
    /// Number of requests that are served at the same time; a head serves one.
    pub channels: u32,
    /// Reads per second; 0 is no limit.
    pub read_iops: u64,
    /// Writes per second; 0 is no limit.
    pub write_iops: u64,
    /// Bytes read per second; 0 is no limit. With a head: the rate at which the medium passes under it.
    pub read_bytes_per_s: u64,
    /// Bytes written per second; 0 is no limit. With a head: the rate at which the medium passes under it.
    pub write_bytes_per_s: u64,
    /// Size of the write cache; 0 is write-through: a write is acknowledged when it is on the medium.
    pub cache_bytes: u64,
    /// Bytes per second that the cache drains to the medium; 0 is no limit. With a head, its movements decide.
    pub drain_bytes_per_s: u64,
    /// Whether the cache survives a power cut (capacitors, batteries, copies).
    pub cache_protected: bool,
    /// A power cut tears a write only at a multiple of this: 512, 4096, 8192 or 16384.
    pub atomic_write_bytes: u64,
    /// Revolutions per minute; 0 is a disk without a head.
    pub rpm: u32,
    /// Seek time to the next track.
    pub track_seek_ns: u64,
    /// Mean seek time between random positions on the whole disk.
    pub average_seek_ns: u64,
}

/// Invalid physics.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{key}: got {got}, {allowed} is needed")]
pub struct PhysicsError {
    /// The field.
    pub key: &'static str,
    /// Its value.
    pub got: String,
    /// The allowed values.
    pub allowed: &'static str,
}

impl Physics {
    /// The time of one revolution; None without a head.
    pub(crate) fn revolution_ns(&self) -> Option<u64> {
        (self.rpm > 0).then(|| 60_000_000_000 / u64::from(self.rpm))
    }

    /// Whether acknowledged writes can be lost in a power cut.
    pub fn is_volatile(&self) -> bool {
        self.cache_bytes > 0 && !self.cache_protected
    }

    /// Checks that the physics are valid.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn check(&self) -> Result<(), PhysicsError> {
        let fail = |key, got: String, allowed| Err(PhysicsError { key, got, allowed });
        if !(0.0..=2.0).contains(&self.spread) {
            return fail("spread", self.spread.to_string(), "a number from 0 to 2");
        }
        if !(1..=MAX_CHANNELS).contains(&self.channels) {
            return fail("channels", self.channels.to_string(), "1 to 1024");
        }
        for (key, latency_ns) in [
            ("read_latency", self.read_latency_ns),
            ("write_latency", self.write_latency_ns),
            ("flush_latency", self.flush_latency_ns),
            ("track_seek", self.track_seek_ns),
            ("average_seek", self.average_seek_ns),
        ] {
            if latency_ns > 60_000_000_000 {
                return fail(key, format!("{latency_ns} ns"), "at most 60 s");
            }
        }
        if !ATOMIC_WRITE_BYTES.contains(&self.atomic_write_bytes) {
            return fail(
                "atomic_write_size",
                format!("{} bytes", self.atomic_write_bytes),
                "512, 4096, 8192 or 16384 bytes",
            );
        }
        if self.rpm == 0 {
            return Ok(());
        }
        if self.rpm < 60 {
            return fail("rpm", self.rpm.to_string(), "0 for no head, or 60 and more");
        }
        if self.channels != 1 {
            return fail(
                "channels",
                self.channels.to_string(),
                "1, since a head serves one request,",
            );
        }
        if self.average_seek_ns < self.track_seek_ns {
            let got = format!("{} ns", self.average_seek_ns);
            return fail("average_seek", got, "at least track_seek");
        }
        for (key, rate) in [
            ("read_bandwidth", self.read_bytes_per_s),
            ("write_bandwidth", self.write_bytes_per_s),
        ] {
            if rate == 0 {
                return fail(
                    key,
                    "no limit".into(),
                    "the rate at which the medium passes under the head",
                );
            }
        }
        Ok(())
    }
}

macro_rules! overrides {
    ($($field:ident: $type:ty),* $(,)?) => {
        /// Changes to the physics of a profile.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Overrides {
            $(
                #[doc = concat!("As in [`Physics::", stringify!($field), "`].")]
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*
        }

        impl Overrides {
            /// `physics` with these changes.
            ///
            /// # Errors
            /// The first invalid field of the result.
            pub fn apply(&self, physics: &Physics) -> Result<Physics, PhysicsError> {
                let mut changed = physics.clone();
                $(
                    if let Some(value) = self.$field {
                        changed.$field = value;
                    }
                )*
                changed.check()?;
                Ok(changed)
            }
        }
    };
}

overrides! {
    read_latency_ns: u64,
    write_latency_ns: u64,
    flush_latency_ns: u64,
    spread: f64,
    channels: u32,
    read_iops: u64,
    write_iops: u64,
    read_bytes_per_s: u64,
    write_bytes_per_s: u64,
    cache_bytes: u64,
    drain_bytes_per_s: u64,
    cache_protected: bool,
    atomic_write_bytes: u64,
    rpm: u32,
    track_seek_ns: u64,
    average_seek_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::super::profiles::{PROFILES, profile};
    use super::*;

    #[test]
    fn every_profile_can_be() {
        for profile in PROFILES {
            assert_eq!(profile.physics.check(), Ok(()), "{}", profile.name);
        }
    }

    #[test]
    fn what_cannot_be_is_named() {
        let ideal = &profile("ideal").unwrap().physics;
        let disk = &profile("hdd-7200").unwrap().physics;
        let table: [(&Physics, &str, &str); 7] = [
            (
                ideal,
                r#"{"channels": 0}"#,
                "channels: got 0, 1 to 1024 is needed",
            ),
            (
                ideal,
                r#"{"spread": 3.0}"#,
                "spread: got 3, a number from 0 to 2 is needed",
            ),
            (
                ideal,
                r#"{"rpm": 7200}"#,
                "channels: got 1024, 1, since a head serves one request, is needed",
            ),
            (
                disk,
                r#"{"rpm": 1}"#,
                "rpm: got 1, 0 for no head, or 60 and more is needed",
            ),
            (
                disk,
                r#"{"average_seek_ns": 5}"#,
                "average_seek: got 5 ns, at least track_seek is needed",
            ),
            (
                ideal,
                r#"{"flush_latency_ns": 99000000000}"#,
                "flush_latency: got 99000000000 ns, at most 60 s is needed",
            ),
            (
                ideal,
                r#"{"atomic_write_bytes": 1024}"#,
                "atomic_write_size: got 1024 bytes, 512, 4096, 8192 or 16384 bytes is needed",
            ),
        ];
        for (physics, overrides, message) in table {
            let overrides: Overrides = serde_json::from_str(overrides).unwrap();
            assert_eq!(overrides.apply(physics).unwrap_err().to_string(), message);
        }
        assert!(serde_json::from_str::<Overrides>(r#"{"speed": 3}"#).is_err());
    }

    #[test]
    fn what_is_not_overridden_stays() {
        let ideal = &profile("ideal").unwrap().physics;
        let overrides: Overrides = serde_json::from_str(r#"{"read_iops": 500}"#).unwrap();
        let changed = overrides.apply(ideal).unwrap();
        assert_eq!(
            changed,
            Physics {
                read_iops: 500,
                ..ideal.clone()
            }
        );
    }
}
