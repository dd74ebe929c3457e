//! Arrivals so close to one another that they are counted in blocks where they are only passed over.
//!
//! In units of the arrivals expected so far, a Poisson process has rate 1 at any rate. There it is drawn in blocks of
//! equal length: how many arrivals a block has is drawn first, from the Poisson distribution, and only where single ones are asked
//! for, where in the block they are, evenly distributed (Devroye, Non-Uniform Random Variate Generation, 1986, section VI.1.3). So
//! what is passed over is counted exactly, and all threads that draw from the same generator see the same arrivals, whichever
//! of them they look at.

use std::sync::LazyLock;

use plinth_script::Prng;

use super::{Distribution, Share};

/// Arrivals expected in a block.
const BLOCK: f64 = 1_000.0;

/// Counts of a block this many standard deviations from its mean do not occur: their share is below an f64's precision.
const DEVIATIONS: f64 = 9.0;

/// Blocks that are drawn at the end, for which nobody waits long; of what is left then, the expected number is taken.
const MOST_BLOCKS: u64 = 1_000_000;

/// The least count of a block, and how likely this count and each higher one, or a lower one, is.
static COUNTS: LazyLock<(u64, Vec<f64>)> = LazyLock::new(|| {
    let reach = DEVIATIONS * BLOCK.sqrt();
    let (least, most) = ((BLOCK - reach) as u64, (BLOCK + reach) as u64);
    let mut likely = 1.0;
    let mut sum = 0.0;
    let mut up_to: Vec<f64> = (least..=most)
        .map(|count| {
            sum += likely;
            likely *= BLOCK / (count + 1) as f64;
            sum
        })
        .collect();
    up_to.iter_mut().for_each(|share| *share /= sum);
    (least, up_to)
});

/// Arrivals of one process, in order, of which the next is known.
#[derive(Debug)]
pub(super) struct Dense {
    /// With the arrivals that are expected before each.
    stages: Vec<(f64, Share)>,
    /// The stage of the arrival before.
    stage: usize,
    /// Arrivals expected up to the next.
    next: f64,
    spacing: Spacing,
}

#[derive(Debug)]
enum Spacing {
    /// One expected arrival from the next to the one after it.
    Even,
    Random(Block),
}

/// The block of the next arrival.
#[derive(Debug)]
struct Block {
    /// Of the counts of blocks, and of the generators of places.
    random: Prng,
    number: u64,
    /// Arrivals in it after the next.
    left: u64,
    /// Where in it the next is.
    place: f64,
    /// Of the places of its arrivals.
    places: Prng,
}

impl Dense {
    /// `first` is how much is expected before the first of evenly spaced arrivals.
    pub(super) fn new(
        distribution: Distribution,
        stages: Vec<Share>,
        random: Prng,
        first: f64,
    ) -> Self {
        let mut before = 0.0;
        let stages = stages
            .into_iter()
            .map(|stage| {
                let from = before;
                before += stage.expected();
                (from, stage)
            })
            .collect();
        match distribution {
            Distribution::Uniform => Self {
                stages,
                stage: 0,
                next: first,
                spacing: Spacing::Even,
            },
            Distribution::Poisson => {
                let mut block = Block {
                    random,
                    number: 0,
                    left: 0,
                    place: 0.0,
                    places: random,
                };
                block.draw();
                let next = block.open();
                Self {
                    stages,
                    stage: 0,
                    next,
                    spacing: Spacing::Random(block),
                }
            }
        }
    }

    /// Time of the next arrival, which is thereby over; `u64::MAX` when there is none any more.
    pub(super) fn next_ns(&mut self) -> u64 {
        let at_ns = self.time_ns(self.next);
        self.advance();
        at_ns
    }

    /// Passes over the arrivals before `until_ns`, at most `most`; returns how many.
    pub(super) fn pass(&mut self, until_ns: u64, most: u64) -> u64 {
        self.pass_blocks(self.expected_at(until_ns), most, u64::MAX)
    }

    /// Counts the arrivals before `until_ns`: the last thing that is asked.
    pub(super) fn count_until(&mut self, until_ns: u64) -> u64 {
        let until = self.expected_at(until_ns);
        let count = self.pass_blocks(until, u64::MAX, MOST_BLOCKS);
        count + (until - self.next).max(0.0) as u64
    }

    /// Passes over what is before `until`: at most `most` arrivals, and `most_blocks` whole blocks.
    fn pass_blocks(&mut self, until: f64, most: u64, most_blocks: u64) -> u64 {
        let mut count = 0;
        let mut blocks = 0;
        while self.next < until && count < most && blocks < most_blocks {
            match &mut self.spacing {
                Spacing::Even => {
                    let passed = ((until - self.next).ceil() as u64).min(most - count);
                    self.next += passed as f64;
                    count += passed;
                }
                // The whole rest of the block.
                Spacing::Random(block) if block.ends() <= until && block.left < most - count => {
                    count += block.left + 1;
                    block.draw();
                    while block.ends() <= until
                        && block.left <= most - count
                        && blocks < most_blocks
                    {
                        count += block.left;
                        blocks += 1;
                        block.draw();
                    }
                    self.next = block.open();
                }
                Spacing::Random(_) => {
                    self.advance();
                    count += 1;
                }
            }
        }
        count
    }

    fn advance(&mut self) {
        match &mut self.spacing {
            Spacing::Even => self.next += 1.0,
            Spacing::Random(block) if block.left > 0 => self.next = block.step(),
            Spacing::Random(block) => {
                block.draw();
                self.next = block.open();
            }
        }
    }

    /// When as many arrivals are expected as `expected`; not before the arrival before.
    fn time_ns(&mut self, expected: f64) -> u64 {
        while let Some((before, stage)) = self.stages.get(self.stage) {
            let into = expected - before;
            if into <= stage.expected() {
                return stage.begins_ns + stage.reached_ns(into) as u64;
            }
            self.stage += 1;
        }
        u64::MAX
    }

    /// Arrivals expected before `at_ns`.
    fn expected_at(&self, at_ns: u64) -> f64 {
        let stages = &self.stages[..self
            .stages
            .partition_point(|(_, stage)| stage.begins_ns <= at_ns)];
        stages.last().map_or(0.0, |(before, stage)| {
            before + stage.until(at_ns).expected()
        })
    }
}

impl Block {
    fn ends(&self) -> f64 {
        self.number as f64 * BLOCK
    }

    /// Goes on to the following block, all of whose arrivals are left.
    fn draw(&mut self) {
        let (least, up_to) = &*COUNTS;
        let drawn = self.random.next_double();
        self.left = least + up_to.partition_point(|share| *share <= drawn) as u64;
        self.places = self.random;
        self.random.next_u64();
        self.number += 1;
        self.place = 0.0;
    }

    /// The first arrival of the block. It has some: fewer than hundreds do not occur.
    fn open(&mut self) -> f64 {
        self.places = Prng::seeded(self.places.next_u64());
        self.step()
    }

    /// The next of `left` arrivals that are evenly distributed over what follows `place`.
    fn step(&mut self) -> f64 {
        let share = (1.0 - self.places.next_double()).powf(1.0 / self.left as f64);
        self.place = 1.0 - (1.0 - self.place) * share;
        self.left -= 1;
        (self.number as f64 - 1.0 + self.place) * BLOCK
    }
}
