//! What one direction of a link is like.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A longer delay is a mistake.
const MAX_DELAY_NS: u64 = 60_000_000_000;
/// The longest packet of IPv4: what a queue has room for at least.
const MAX_PACKET_BYTES: u64 = 65_535;

/// How the jitter of packets is distributed around the delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JitterDistribution {
    /// Normal: `jitter_ns` is the standard deviation. What would be less than no delay is no delay.
    #[default]
    Normal,
    /// Uniform: from `jitter_ns` less than the delay to `jitter_ns` more.
    Uniform,
}

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkSettings {
    /// Time from the last bit sent to the last bit received.
    pub delay_ns: u64,
    /// How much the delay varies. Packets keep their order.
    pub jitter_ns: u64,
    /// How it varies.
    pub jitter_distribution: JitterDistribution,
    /// The probability that a packet is lost, each independently.
    pub loss: f64,
    /// Bits of IP packets per second; 0 is no limit.
    pub rate_bits_per_s: u64,
    /// Bytes that may wait to be sent at that rate; packets for which there is no room are dropped.
    pub queue_bytes: u64,
    /// Whether nothing passes.
    pub partitioned: bool,
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self {
            delay_ns: 0,
            jitter_ns: 0,
            jitter_distribution: JitterDistribution::Normal,
            loss: 0.0,
            rate_bits_per_s: 0,
            queue_bytes: 1 << 20,
            partitioned: false,
        }
    }
}

/// New values of some settings; the others stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "as in `LinkSettings`")]
pub struct Changes {
    pub delay_ns: Option<u64>,
    pub jitter_ns: Option<u64>,
    pub jitter_distribution: Option<JitterDistribution>,
    pub loss: Option<f64>,
    pub rate_bits_per_s: Option<u64>,
    pub queue_bytes: Option<u64>,
    pub partitioned: Option<bool>,
}

/// A setting that no link can have.
#[derive(Debug, Clone, PartialEq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SettingsError {
    #[error("{key}: got {got} ns, at most {MAX_DELAY_NS} are allowed")]
    TooLong { key: &'static str, got: u64 },
    #[error("loss: got {0}, a probability from 0 to 1 is needed")]
    Loss(f64),
    #[error("rate_bits_per_s: got {0}, at least 1000 are needed (or 0, no limit)")]
    Rate(u64),
    #[error("queue_bytes: got {0}, at least {MAX_PACKET_BYTES} are needed, the longest packet")]
    Queue(u64),
}

impl LinkSettings {
    /// These settings with some changed.
    ///
    /// # Errors
    /// A value that no link can have.
    pub fn with(self, changes: &Changes) -> Result<Self, SettingsError> {
        let changed = Self {
            delay_ns: changes.delay_ns.unwrap_or(self.delay_ns),
            jitter_ns: changes.jitter_ns.unwrap_or(self.jitter_ns),
            jitter_distribution: changes
                .jitter_distribution
                .unwrap_or(self.jitter_distribution),
            loss: changes.loss.unwrap_or(self.loss),
            rate_bits_per_s: changes.rate_bits_per_s.unwrap_or(self.rate_bits_per_s),
            queue_bytes: changes.queue_bytes.unwrap_or(self.queue_bytes),
            partitioned: changes.partitioned.unwrap_or(self.partitioned),
        };
        changed.check()?;
        Ok(changed)
    }

    /// Whether a link can be like this.
    ///
    /// # Errors
    /// The first value that no link can have.
    pub fn check(&self) -> Result<(), SettingsError> {
        for (key, got) in [("delay_ns", self.delay_ns), ("jitter_ns", self.jitter_ns)] {
            if got > MAX_DELAY_NS {
                return Err(SettingsError::TooLong { key, got });
            }
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(SettingsError::Loss(self.loss));
        }
        if (1..1000).contains(&self.rate_bits_per_s) {
            return Err(SettingsError::Rate(self.rate_bits_per_s));
        }
        if self.queue_bytes < MAX_PACKET_BYTES {
            return Err(SettingsError::Queue(self.queue_bytes));
        }
        Ok(())
    }
}
