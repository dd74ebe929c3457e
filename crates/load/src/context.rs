//! What a thread lends to its clients.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mio::Registry;
use plinth_script::Prng;

use crate::program::Programs;
use crate::recorder::Recorder;

/// What a thread lends to its clients.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) recorder: Recorder,
    pub(crate) registry: Registry,
    /// Chooses scripts.
    pub(crate) choose: Prng,
    /// Clients asleep: when to wake them, and who.
    pub(crate) sleepers: BinaryHeap<Reverse<(u64, usize)>>,
    /// Clients that could go on at once and let the others go first.
    pub(crate) waiting_for_turn: Vec<usize>,
    /// No transaction begins, and none is tried again, from here on.
    pub(crate) ends_ns: u64,
    /// Measured transactions of each client.
    pub(crate) limit: u64,
    /// 0 for no limit.
    pub(crate) max_tries: u32,
    pub(crate) bytes_sent: u64,
    pub(crate) rollback: Vec<u8>,
    /// Where messages are put together before they are sent.
    pub(crate) out: Vec<u8>,
}
