//! The commands of the control socket, and the reply to each.

use std::path::PathBuf;
use std::sync::Arc;

use plinth_control::{parse, reply};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::{Node, direction};
use crate::error::NetworkError;
use crate::forwarder::{Lateness, Shared};
use crate::model::{Changes, Counters, LinkSettings, Star};

/// A command: one JSON object on a line.
#[derive(Debug, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
enum Command {
    /// Report the state of the network.
    Status {},
    /// Change links, all of them at once or none.
    Set { links: Vec<LinkChange> },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkChange {
    from: String,
    to: String,
    changes: Changes,
}

/// What a status begins with.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Identity {
    pub(crate) pid: u32,
    pub(crate) label: String,
    pub(crate) control: PathBuf,
    pub(crate) seed: u64,
    pub(crate) nodes: Vec<Node>,
}

#[derive(Debug, Serialize)]
struct LinkStatus<'a> {
    from: &'a str,
    to: &'a str,
    settings: LinkSettings,
    counters: Counters,
}

/// The state that the commands act on.
pub(crate) struct Control {
    pub(crate) shared: Arc<Shared>,
    pub(crate) identity: Identity,
}

impl Control {
    /// The reply to one line, without its newline.
    pub(crate) fn answer(&self, line: &[u8]) -> String {
        let execute = |command| match command {
            Command::Status {} => Ok(self.status()),
            Command::Set { links } => self.set(&links).map_err(|error| error.to_string()),
        };
        reply(parse(line).and_then(execute))
    }

    fn set(&self, links: &[LinkChange]) -> Result<Value, NetworkError> {
        let mut state = self.shared.state();
        let mut changed: Vec<(usize, usize, LinkSettings)> = Vec::new();
        for LinkChange { from, to, changes } in links {
            let (from_index, to_index) = direction(&self.identity.nodes, from, to)?;
            let earlier = changed
                .iter()
                .rev()
                .find(|one| (one.0, one.1) == (from_index, to_index))
                .map(|one| one.2);
            let settings = earlier
                .unwrap_or_else(|| *state.star.link(from_index, to_index).settings())
                .with(changes)
                .map_err(|source| NetworkError::Settings {
                    from: from.clone(),
                    to: to.clone(),
                    source,
                })?;
            changed.push((from_index, to_index, settings));
        }
        for (from, to, settings) in changed {
            state.star.link_mut(from, to).set(settings);
        }
        Ok(json!({ "links": self.links(&state.star) }))
    }

    fn status(&self) -> Value {
        #[derive(Serialize)]
        struct Status<'a> {
            #[serde(flatten)]
            identity: &'a Identity,
            links: Vec<LinkStatus<'a>>,
            lateness: Lateness,
            unroutable: u64,
            refused: u64,
            runs_at_once: bool,
        }
        let state = self.shared.state();
        json!(Status {
            identity: &self.identity,
            links: self.links(&state.star),
            lateness: state.lateness(),
            unroutable: state.star.unroutable(),
            refused: state.refused,
            runs_at_once: state.runs_at_once,
        })
    }

    fn links(&self, star: &Star) -> Vec<LinkStatus<'_>> {
        let nodes = &self.identity.nodes;
        let pairs = (0..nodes.len()).flat_map(|from| (0..nodes.len()).map(move |to| (from, to)));
        pairs
            .filter(|(from, to)| from != to)
            .map(|(from, to)| LinkStatus {
                from: &nodes[from].name,
                to: &nodes[to].name,
                settings: *star.link(from, to).settings(),
                counters: star.link(from, to).counters(),
            })
            .collect()
    }
}
