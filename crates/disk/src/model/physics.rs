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
    /// Reads and writes per second together, in units of `request_bytes`; 0 is no limit.
    pub iops: u64,
    /// The same while there are credits; 0 is no limit.
    pub burst_iops: u64,
    /// Requests beyond `iops` that a rested volume serves; they return at `iops`.
    pub iops_credits: u64,
    /// Bytes read and written per second together; 0 is no limit.
    pub bytes_per_s: u64,
    /// The same while there are credits; 0 is no limit.
    pub burst_bytes_per_s: u64,
    /// Bytes beyond `bytes_per_s` that a rested volume transfers; they return at `bytes_per_s`.
    pub bytes_credits: u64,
    /// The share of both credits that is there in the beginning.
    pub credit_level: f64,
    /// A request of up to so many bytes counts as one; a larger one as several. 0: every request is one.
    pub request_bytes: u64,
    /// The share of reads and writes that take longer than the lognormal distribution would have it.
    pub tail_share: f64,
    /// The shape of their Pareto distribution: the smaller, the longer the longest.
    pub tail_shape: f64,
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

    /// As how many requests a request of `length` bytes counts.
    pub(crate) fn requests_of(&self, length: u64) -> u64 {
        match self.request_bytes {
            0 => 1,
            bytes => length.div_ceil(bytes).max(1),
        }
    }

    fn check_credits(&self) -> Result<(), PhysicsError> {
        let fail = |key, got: String, allowed| Err(PhysicsError { key, got, allowed });
        for (key, credits, rate) in [
            ("iops_credits", self.iops_credits, self.iops),
            ("bandwidth_credits", self.bytes_credits, self.bytes_per_s),
        ] {
            if credits > 0 && rate == 0 {
                return fail(
                    key,
                    credits.to_string(),
                    "a baseline at which credits return",
                );
            }
        }
        for (key, burst, rate, credits) in [
            ("burst_iops", self.burst_iops, self.iops, self.iops_credits),
            (
                "burst_bandwidth",
                self.burst_bytes_per_s,
                self.bytes_per_s,
                self.bytes_credits,
            ),
        ] {
            if burst > 0 && burst < rate {
                return fail(key, burst.to_string(), "at least the baseline");
            }
            if burst > rate && credits == 0 {
                return fail(
                    key,
                    burst.to_string(),
                    "credits, without which there is no burst,",
                );
            }
        }
        if !(0.0..=1.0).contains(&self.credit_level) {
            return fail(
                "credit_level",
                self.credit_level.to_string(),
                "a number from 0 to 1",
            );
        }
        if !(0.0..=0.5).contains(&self.tail_share) {
            return fail(
                "tail_share",
                self.tail_share.to_string(),
                "a number from 0 to 0.5",
            );
        }
        if self.tail_share > 0.0 && !(1.0..=100.0).contains(&self.tail_shape) {
            return fail(
                "tail_shape",
                self.tail_shape.to_string(),
                "a number from 1 to 100",
            );
        }
        Ok(())
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
        self.check_credits()?;
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
    iops: u64,
    burst_iops: u64,
    iops_credits: u64,
    bytes_per_s: u64,
    burst_bytes_per_s: u64,
    bytes_credits: u64,
    credit_level: f64,
    request_bytes: u64,
    tail_share: f64,
    tail_shape: f64,
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
        let table: [(&Physics, &str, &str); 12] = [
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
                r#"{"iops": 3000, "burst_iops": 100, "iops_credits": 9}"#,
                "burst_iops: got 100, at least the baseline is needed",
            ),
            (
                ideal,
                r#"{"iops_credits": 9}"#,
                "iops_credits: got 9, a baseline at which credits return is needed",
            ),
            (
                ideal,
                r#"{"iops": 100, "burst_iops": 3000}"#,
                "burst_iops: got 3000, credits, without which there is no burst, is needed",
            ),
            (
                ideal,
                r#"{"credit_level": 1.5}"#,
                "credit_level: got 1.5, a number from 0 to 1 is needed",
            ),
            (
                ideal,
                r#"{"tail_share": 0.01, "tail_shape": 0.5}"#,
                "tail_shape: got 0.5, a number from 1 to 100 is needed",
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
