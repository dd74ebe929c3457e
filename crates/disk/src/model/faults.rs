//! Armed faults, with counts of how often each has fired, and false acknowledgements of flushes.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::extent::Extent;
use super::rng::DiskRng;
use super::volatile::Sequence;

const LIE_STREAM: u64 = 1 << 32;

/// The requests that a fault affects. A discard counts as a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum FaultOperation {
    Read,
    Write,
    Flush,
}

/// EIO on a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EioFault {
    /// The requests that it affects.
    pub operation: FaultOperation,
    /// The first request that it affects, counted from 1 since it was armed.
    #[serde(default = "one")]
    pub nth: u64,
    /// The number of requests that it affects from then on; None is all.
    #[serde(default = "once")]
    pub count: Option<u64>,
    /// Only requests that overlap a range are affected: its first byte.
    #[serde(default)]
    pub offset_bytes: Option<u64>,
    /// The length of that range.
    #[serde(default)]
    pub length_bytes: Option<u64>,
}

fn one() -> u64 {
    1
}

fn once() -> Option<u64> {
    Some(1)
}

/// A fault that can never fire.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FaultError {
    #[error("nth: got 0, requests are counted from 1")]
    Nth,
    #[error("count: got 0, such a fault never fires")]
    Count,
    #[error("offset_bytes and length_bytes go together, and length_bytes is at least 1")]
    Range,
    #[error("a flush has no place: offset_bytes and length_bytes go with read and write")]
    FlushRange,
    #[error("fraction: got {0}, a number above 0 and up to 1 is needed")]
    Fraction(String),
    #[error("flushes: got 0, a flush that is late is so by 1 at least")]
    Flushes,
    #[error(
        "the disk has no volatile cache to lie about: set cache_size, and cache_protected to false"
    )]
    NothingVolatile,
}

impl EioFault {
    /// Checks that it can fire.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(&self) -> Result<(), FaultError> {
        if self.nth == 0 {
            return Err(FaultError::Nth);
        }
        if self.count == Some(0) {
            return Err(FaultError::Count);
        }
        match (self.offset_bytes, self.length_bytes, self.operation) {
            (None, None, _) => Ok(()),
            (Some(_), Some(_), FaultOperation::Flush) => Err(FaultError::FlushRange),
            (Some(_), Some(1..), _) => Ok(()),
            _ => Err(FaultError::Range),
        }
    }

    fn strikes(&self, operation: FaultOperation, extent: Extent) -> bool {
        let within = match (self.offset_bytes, self.length_bytes) {
            (Some(offset), Some(length)) => extent.overlaps(Extent { offset, length }),
            _ => true,
        };
        self.operation == operation && within
    }
}

/// The part of an acknowledged flush that a disk omits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Lie {
    /// All of it: a flush has no effect.
    IgnoreFlush {},
    /// A flush covers only what an earlier flush, this many before it, should have covered.
    LateFlush {
        /// The number of flushes.
        flushes: u64,
    },
    /// A flush leaves out each write with this probability; such a write stays volatile.
    DropFraction {
        /// The probability.
        fraction: f64,
    },
}

impl Lie {
    /// Checks that it has an effect.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(&self) -> Result<(), FaultError> {
        match *self {
            Self::DropFraction { fraction } if !(fraction > 0.0 && fraction <= 1.0) => {
                Err(FaultError::Fraction(fraction.to_string()))
            }
            Self::LateFlush { flushes: 0 } => Err(FaultError::Flushes),
            _ => Ok(()),
        }
    }
}

/// Whether a disk that drops this fraction leaves out the write. The same for every flush.
pub fn left_out(seed: u64, sequence: Sequence, fraction: f64) -> bool {
    DiskRng::new(seed, LIE_STREAM + sequence).chance(fraction)
}

/// An armed fault, and the numbers of requests that it matched and affected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultState {
    /// The fault.
    #[serde(flatten)]
    pub fault: EioFault,
    /// Requests with its operation and range since it was armed.
    pub seen: u64,
    /// The number of these that failed with EIO.
    pub fired: u64,
}

/// The armed faults.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    armed: Vec<FaultState>,
}

impl Faults {
    /// Arms a fault.
    ///
    /// # Errors
    /// The reason why it can never fire.
    pub fn arm(&mut self, fault: EioFault) -> Result<(), FaultError> {
        fault.check()?;
        self.armed.push(FaultState {
            fault,
            seen: 0,
            fired: 0,
        });
        Ok(())
    }

    /// Disarms all faults, and returns them with their counts.
    pub fn clear(&mut self) -> Vec<FaultState> {
        std::mem::take(&mut self.armed)
    }

    /// The armed faults with their counts.
    pub fn states(&self) -> &[FaultState] {
        &self.armed
    }

    /// Whether a request fails with EIO. Every matching fault counts it.
    pub fn strike(&mut self, operation: FaultOperation, extent: Extent) -> bool {
        let mut struck = false;
        for state in &mut self.armed {
            if !state.fault.strikes(operation, extent) {
                continue;
            }
            state.seen += 1;
            if state.seen >= state.fault.nth
                && state.fault.count.is_none_or(|count| state.fired < count)
            {
                state.fired += 1;
                struck = true;
            }
        }
        struck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(json: &str) -> EioFault {
        serde_json::from_str(json).unwrap()
    }

    fn extent(offset: u64, length: u64) -> Extent {
        Extent { offset, length }
    }

    #[test]
    fn the_nth_of_its_kind_is_struck_and_no_other() {
        let mut faults = Faults::default();
        faults
            .arm(fault(r#"{"operation": "flush", "nth": 2}"#))
            .unwrap();
        let nowhere = extent(0, 0);
        let struck: Vec<bool> = (0..4)
            .map(|_| {
                assert!(!faults.strike(FaultOperation::Write, extent(0, 512)));
                faults.strike(FaultOperation::Flush, nowhere)
            })
            .collect();
        assert_eq!(struck, [false, true, false, false]);
        assert_eq!((faults.states()[0].seen, faults.states()[0].fired), (4, 1));
    }

    #[test]
    fn a_bad_place_is_struck_as_long_as_asked_for() {
        let mut faults = Faults::default();
        faults
            .arm(fault(r#"{"operation": "read", "offset_bytes": 4096, "length_bytes": 512, "count": null}"#))
            .unwrap();
        for (offset, length, struck) in [
            (0, 4096, false),
            (0, 4097, true),
            (4607, 1, true),
            (4608, 9, false),
        ] {
            assert_eq!(
                faults.strike(FaultOperation::Read, extent(offset, length)),
                struck,
                "{offset}"
            );
        }
    }

    #[test]
    fn what_could_never_fire_is_refused() {
        for (json, error) in [
            (r#"{"operation": "read", "nth": 0}"#, FaultError::Nth),
            (r#"{"operation": "read", "count": 0}"#, FaultError::Count),
            (
                r#"{"operation": "read", "offset_bytes": 1}"#,
                FaultError::Range,
            ),
            (
                r#"{"operation": "read", "offset_bytes": 1, "length_bytes": 0}"#,
                FaultError::Range,
            ),
            (
                r#"{"operation": "flush", "offset_bytes": 1, "length_bytes": 1}"#,
                FaultError::FlushRange,
            ),
        ] {
            assert_eq!(fault(json).check(), Err(error), "{json}");
        }
        for (json, allowed) in [
            (r#"{"kind": "drop-fraction", "fraction": 0.0}"#, false),
            (r#"{"kind": "drop-fraction", "fraction": 1.0}"#, true),
            (r#"{"kind": "late-flush", "flushes": 0}"#, false),
            (r#"{"kind": "ignore-flush"}"#, true),
        ] {
            let lie: Lie = serde_json::from_str(json).unwrap();
            assert_eq!(lie.check().is_ok(), allowed, "{json}");
        }
    }
}
