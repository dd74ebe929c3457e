//! Seeds of clients and threads. pgbench (`main` in `src/bin/pgbench/pgbench.c`) draws from one base generator, in this
//! order: one seed for every client, `:default_seed`, and three seeds for every thread.

use std::ops::Range;

use crate::prng::Prng;

/// The generators of a run: the same as pgbench's for the same `--random-seed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds {
    /// For the random functions of each client, by client number.
    pub clients: Vec<Prng>,
    /// Value of the variable `default_seed`, unless it is given: the seed of hash functions and `permute` that are
    /// called without one.
    pub default_seed: Option<i64>,
    /// Each thread's clients and generators, by thread number.
    pub threads: Vec<ThreadSeeds>,
}

/// The clients of a thread, and the thread's own generators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadSeeds {
    /// Numbers of the clients that the thread serves.
    pub clients: Range<usize>,
    /// Chooses among weighted scripts; pgbench draws only when there is more than one.
    pub choose: Prng,
    /// Times the arrivals of an open loop.
    pub throttle: Prng,
    /// Samples the transactions to log.
    pub sample: Prng,
}

impl Seeds {
    /// The generators for `--random-seed=seed`, `clients` and `threads`. Without `draws_default_seed`, when `-D
    /// default_seed` sets that variable, pgbench draws one number less.
    #[must_use]
    pub fn new(seed: u64, clients: usize, threads: usize, draws_default_seed: bool) -> Self {
        let mut base = Prng::seeded(seed);
        let mut derived = || Prng::seeded(base.next_u64());
        let client_generators = (0..clients).map(|_| derived()).collect();
        let default_seed = draws_default_seed.then(|| base.next_u64() as i64);
        let mut derived = || Prng::seeded(base.next_u64());
        let mut dealt = 0;
        let thread_seeds = (0..threads)
            .map(|thread| {
                let threads_left = threads - thread;
                let share = (clients - dealt).div_ceil(threads_left);
                let first = dealt;
                dealt += share;
                ThreadSeeds {
                    clients: first..dealt,
                    choose: derived(),
                    throttle: derived(),
                    sample: derived(),
                }
            })
            .collect();
        Self {
            clients: client_generators,
            default_seed,
            threads: thread_seeds,
        }
    }
}

/// Index of the script that a thread runs next, by weight; `choose` is the thread's generator.
///
/// # Panics
/// When the weights sum to zero.
pub fn choose_script(weights: &[u64], choose: &mut Prng) -> usize {
    if weights.len() == 1 {
        return 0;
    }
    let total: u64 = weights.iter().sum();
    let mut ticket = choose.next_up_to(total - 1);
    weights
        .iter()
        .position(|&weight| match ticket.checked_sub(weight) {
            Some(rest) => {
                ticket = rest;
                false
            }
            None => true,
        })
        .unwrap_or_else(|| unreachable!("a ticket is below the sum of the weights"))
}
