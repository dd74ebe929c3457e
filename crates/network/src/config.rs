//! What an emulated network consists of: its nodes, and how each link begins.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::NetworkError;
use crate::model::LinkSettings;

const MAX_NODES: usize = 64;
/// The length of an interface's name, less its end.
const MAX_DEVICE_NAME: usize = 15;

/// The network to emulate.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Whose it is, for those who look at processes.
    pub label: String,
    /// Path of the control socket.
    pub control: PathBuf,
    /// Seed of jitter and loss.
    pub seed: u64,
    /// The nodes, each of which reaches every other.
    pub nodes: Vec<Node>,
    /// What links are like; those that are not named neither delay nor lose.
    #[serde(default)]
    pub links: Vec<LinkConfig>,
}

/// A node: a network namespace with a TUN device that has an address.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The file of its network namespace, such as /run/netns/NAME.
    pub namespace: PathBuf,
    /// The persistent TUN device in it.
    pub device: String,
    /// The address that is on the device.
    pub address: Ipv4Addr,
}

/// One direction of a link.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// The name of the node that sends.
    pub from: String,
    /// The name of the node that receives.
    pub to: String,
    /// What it is like.
    pub settings: LinkSettings,
}

/// Refuses nodes that cannot form a network.
pub(crate) fn check_nodes(nodes: &[Node]) -> Result<(), NetworkError> {
    if !(2..=MAX_NODES).contains(&nodes.len()) {
        return Err(NetworkError::NodeCount(nodes.len()));
    }
    let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for node in nodes {
        if !(1..=MAX_DEVICE_NAME).contains(&node.device.len()) {
            return Err(NetworkError::DeviceName(node.device.clone()));
        }
        if !names.insert(&node.name) {
            return Err(NetworkError::DuplicateNode(node.name.clone()));
        }
        if !addresses.insert(node.address) {
            return Err(NetworkError::DuplicateAddress(node.address));
        }
    }
    Ok(())
}

/// The indices of two nodes.
pub(crate) fn direction(
    nodes: &[Node],
    from: &str,
    to: &str,
) -> Result<(usize, usize), NetworkError> {
    let index = |name: &str| {
        nodes
            .iter()
            .position(|node| node.name == name)
            .ok_or_else(|| {
                let known: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
                NetworkError::UnknownNode(name.to_owned(), known.join(", "))
            })
    };
    if from == to {
        return Err(NetworkError::Loop(from.to_owned()));
    }
    Ok((index(from)?, index(to)?))
}
