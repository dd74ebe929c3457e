//! A recorded workload that is ready to be replayed: its file, the classes of its statements, and how fast it is replayed.

use std::collections::HashMap;
use std::path::PathBuf;

use plinth_config::ConfigError;
use plinth_log::ReplayFile;
use serde::Deserialize;

use crate::limits::{self, MOST_CLASSES, MOST_SPEED};
use crate::report::{Labels, ScriptLabel};

/// How a recorded workload is replayed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayConfig {
    /// The replay file.
    pub file: PathBuf,
    /// Times of the recording are divided by this; without it each session is as fast as it can be.
    #[serde(default)]
    pub speed: Option<f64>,
    /// Sessions share the clients' connections, each for a transaction at a time; otherwise each has a connection of its own,
    /// opened and closed as recorded.
    #[serde(default)]
    pub pooled: bool,
    /// Transactions are read-only unless they say otherwise, and what the server refuses therefore has failed as a refused write.
    #[serde(default)]
    pub read_only: bool,
    /// How many classes of statements have figures of their own: those with the most time when they were recorded.
    #[serde(default = "limits::classes")]
    pub classes: usize,
}

/// The recording begins this long after the load, so that sessions that were open before it are connected.
pub(crate) const LEAD_NS: u64 = 1_000_000_000;
/// Longer texts of classes are cut.
const MAX_LABEL_CHARS: usize = 1_000;
const OTHERS: &str = "(other statements)";

impl ReplayConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if let Some(speed) = self.speed
            && !(speed > 0.0 && speed <= MOST_SPEED)
        {
            let message = format!("got {speed}, allowed is above 0 up to {MOST_SPEED}");
            return Err(ConfigError::new("replay.speed", message));
        }
        if !(1..=MOST_CLASSES).contains(&self.classes) {
            let message = format!("got {}, allowed is 1 to {MOST_CLASSES}", self.classes);
            return Err(ConfigError::new("replay.classes", message));
        }
        Ok(())
    }
}

/// A recording that is ready to be replayed.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) file: ReplayFile,
    pub(crate) speed: Option<f64>,
    pub(crate) pooled: bool,
    pub(crate) read_only: bool,
    /// With how many statements they have.
    pub(crate) labels: Vec<(String, u64)>,
    pub(crate) label_of_class: Vec<u32>,
    /// By class of the recording: how many of its statements are a rollback.
    pub(crate) rollbacks_of_class: Vec<u32>,
}

/// The classes of a recording that have figures of their own.
#[derive(Debug)]
pub struct Labelled {
    /// Their texts, and how many statements they have. The last may be that of all others.
    pub labels: Vec<(String, u64)>,
    /// By class of the recording: number of its label.
    pub label_of_class: Vec<u32>,
}

/// Returns up to `most` classes of a recording, those with the most time first, and one for all others.
pub fn classes_of(file: &ReplayFile, most: usize) -> Labelled {
    let mut order: Vec<usize> = (0..file.classes.len()).collect();
    order.sort_by_key(|&class| {
        let class = &file.classes[class];
        std::cmp::Reverse((class.duration_us, class.statements))
    });
    let mut labels: Vec<(String, u64)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut label_of_class = vec![0; file.classes.len()];
    for (rank, &class) in order.iter().enumerate() {
        let recorded = &file.classes[class];
        let text = if rank < most {
            let text = String::from_utf8_lossy(&recorded.text);
            text.chars().take(MAX_LABEL_CHARS).collect()
        } else {
            OTHERS.to_owned()
        };
        let label = *known.entry(text.clone()).or_insert(labels.len());
        if label == labels.len() {
            labels.push((text, 0));
        }
        labels[label].1 += recorded.statements;
        label_of_class[class] = label as u32;
    }
    Labelled {
        labels,
        label_of_class,
    }
}

impl Replay {
    pub(crate) fn open(config: &ReplayConfig) -> Result<Self, ConfigError> {
        let file = ReplayFile::open(&config.file).map_err(|error| {
            ConfigError::new("replay.file", format!("{}: {error}", config.file.display()))
        })?;
        let Labelled {
            labels,
            label_of_class,
        } = classes_of(&file, config.classes);
        if labels.is_empty() {
            return Err(ConfigError::new(
                "replay.file",
                format!("{}: it has no statement", config.file.display()),
            ));
        }
        let rollbacks_of_class = file
            .classes
            .iter()
            .map(|class| rollbacks(&class.text))
            .collect();
        Ok(Self {
            file,
            rollbacks_of_class,
            speed: config.speed,
            pooled: config.pooled,
            read_only: config.read_only,
            labels,
            label_of_class,
        })
    }

    /// How many kinds of statements have figures of their own.
    pub(crate) fn kinds(&self) -> usize {
        self.labels.len()
    }

    pub(crate) fn labels(&self) -> Labels<'_> {
        Labels {
            scripts: self
                .labels
                .iter()
                .map(|(name, weight)| ScriptLabel {
                    name,
                    weight: *weight,
                    lines: &[],
                })
                .collect(),
            statements: &[],
        }
    }

    /// Returns when something of the recording happens; 0 in a closed loop.
    pub(crate) fn due_ns(&self, recorded_us: u64) -> u64 {
        self.speed.map_or(0, |speed| {
            let after_ns = recorded_us as f64 * 1_000.0 / speed;
            LEAD_NS.saturating_add(after_ns as u64)
        })
    }

    /// Whether statements are due at set times.
    pub(crate) fn is_open_loop(&self) -> bool {
        self.speed.is_some()
    }

    /// Options of the sessions, with those that the target has already.
    pub(crate) fn session_options(&self, given: Option<String>) -> Option<String> {
        const READ_ONLY: &str = "-c default_transaction_read_only=on";
        match given {
            _ if !self.read_only => given,
            Some(given) => Some(format!("{given} {READ_ONLY}")),
            None => Some(READ_ONLY.to_owned()),
        }
    }
}

/// Returns how many statements of a class are a rollback, which the server answers with the tag `ROLLBACK`. The text of a class has
/// neither comments nor constants.
fn rollbacks(class: &[u8]) -> u32 {
    let mut is_quoted = false;
    let statements = class.split(|&byte| {
        is_quoted ^= byte == b'"';
        byte == b';' && !is_quoted
    });
    statements
        .filter(|statement| {
            let word = statement
                .trim_ascii()
                .split(|byte| !byte.is_ascii_alphabetic())
                .next()
                .unwrap_or_default();
            word.eq_ignore_ascii_case(b"ROLLBACK") || word.eq_ignore_ascii_case(b"ABORT")
        })
        .count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rollbacks_that_are_asked_for_are_counted() {
        for (class, expected) in [
            ("ROLLBACK", 1),
            ("rollback and chain", 1),
            ("ABORT", 1),
            ("ROLLBACK;", 1),
            ("ROLLBACK TO SAVEPOINT a", 1),
            ("rollback ; BEGIN ; rollback", 2),
            ("COMMIT", 0),
            ("COMMIT AND CHAIN", 0),
            ("END", 0),
            ("PREPARE TRANSACTION $1", 0),
            ("RELEASE SAVEPOINT rollback", 0),
            ("SELECT rollback FROM t", 0),
            ("COMMIT; SELECT \"; rollback\"", 0),
            ("rollbacks", 0),
            ("", 0),
        ] {
            assert_eq!(rollbacks(class.as_bytes()), expected, "{class}");
        }
    }
}
