//! Replays a recorded workload: a class of statements takes the place of a script, a statement that of a transaction.
//!
//! A statement is due at its time in the recording divided by the speed, and its latency counts from then: a stall of the
//! server shows in all statements that were due meanwhile (there is no coordinated omission). A statement that its session sent
//! right after the one before, within what the times of a log resolve, is sent when that has ended: otherwise a transaction would
//! last longer than it did, and hold its locks. Without a speed, each session does so with all of its statements.

mod ahead;
mod answer;
mod connection;
mod player;
mod statement;

use std::collections::HashMap;
use std::path::PathBuf;

use plinth_config::ConfigError;
use plinth_log::ReplayFile;
use serde::{Deserialize, Serialize};

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
    #[serde(default = "default_classes")]
    pub classes: usize,
}

fn default_classes() -> usize {
    100
}

const MOST_CLASSES: usize = 10_000;
const MOST_SPEED: f64 = 1e6;
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

/// What became of the statements of a recording, in the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ReplayCounts {
    /// Statements of the recording.
    pub statements: u64,
    /// Those that the run ended before.
    pub not_reached: u64,
    /// Failed: with the code that was recorded, or with any if the recording has none.
    pub failed_as_recorded: u64,
    /// Done: they failed when they were recorded.
    pub no_longer_failing: u64,
    /// Failed: the server refused them in a read-only transaction, or they followed such a one in it.
    pub refused_writes: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// The most at one time.
    pub connections_at_once: u64,
}

impl ReplayCounts {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.statements += other.statements;
        self.not_reached += other.not_reached;
        self.failed_as_recorded += other.failed_as_recorded;
        self.no_longer_failing += other.no_longer_failing;
        self.refused_writes += other.refused_writes;
        self.connections += other.connections;
        self.connections_at_once += other.connections_at_once;
    }
}

/// A recording that is ready to be replayed.
#[derive(Debug)]
pub(crate) struct Replay {
    file: ReplayFile,
    speed: Option<f64>,
    pooled: bool,
    read_only: bool,
    /// With how many statements they have.
    labels: Vec<(String, u64)>,
    label_of_class: Vec<u32>,
    /// By class of the recording: how many of its statements are a rollback.
    rollbacks_of_class: Vec<u32>,
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
            .map(|class| answer::rollbacks(&class.text))
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
