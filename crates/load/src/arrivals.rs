//! When transactions are due in an open loop.
//!
//! Arrivals do not depend on answers, and latency counts from when a transaction was due. So a slow server cannot slow the load
//! down and thereby hide its own delays: that distortion of closed loops is known as coordinated omission.
//!
//! A rate that changes is followed by a change of time: the n-th arrival is when the integral of the rate reaches n
//! (evenly spaced arrivals), or when it has grown by a number drawn from the exponential distribution with mean 1 since the
//! arrival before (a Poisson process; Çınlar, Introduction to Stochastic Processes, 1975, section 4.7). While the rate is
//! constant, a Poisson process draws and rounds as pgbench's `getPoissonRand` does, so that the same seed gives the same
//! arrivals. Its delays are whole microseconds, which is a few per cent wrong where they are one microsecond on average, and never
//! anything but 0 where they are a tenth: arrivals as close as that are drawn in another way ([`dense`]).

use plinth_config::ConfigError;
use plinth_script::Prng;
use serde::Deserialize;

use crate::limits::{self, LONGEST_S, MOST_TPS};
use crate::seconds::nanoseconds;
use dense::Dense;

/// An open loop: transactions are due at times of their own, however long others take.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// How arrivals are spread.
    #[serde(default = "limits::arrivals")]
    pub arrivals: Distribution,
    /// One after the other from the start of measuring; the first one's first rate holds during the warm-up, the last
    /// one's last rate until the end.
    pub stages: Vec<Stage>,
}

/// How arrivals are spread in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Independent of one another, as of many users who do not know of each other: pgbench's `--rate`.
    Poisson,
    /// Evenly spaced.
    Uniform,
}

/// A rate that holds for a while, or changes linearly.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Transactions per second, over all threads, when it begins.
    pub from_tps: f64,
    /// And when it ends.
    pub to_tps: f64,
    /// How long it lasts; `None`, only allowed for the last, is until the end of the run.
    #[serde(default)]
    pub duration_s: Option<f64>,
}

/// Above this, arrivals of a process are [`dense`]: pgbench's rounding is 0.04 % wrong there, and one by one they take a hundredth
/// of the time that they span.
const DENSE_TPS: f64 = 100_000.0;

impl Rate {
    /// Whether one rate holds all along, whenever the warm-up ends.
    pub(crate) fn is_constant(&self) -> bool {
        let mut rates = self
            .stages
            .iter()
            .flat_map(|stage| [stage.from_tps, stage.to_tps]);
        let first = rates.next();
        rates.all(|tps| Some(tps) == first)
    }

    /// The highest rate.
    fn peak_tps(&self) -> f64 {
        let rates = self
            .stages
            .iter()
            .map(|stage| stage.from_tps.max(stage.to_tps));
        rates.fold(0.0, f64::max)
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let wrong = |message: String| Err(ConfigError::new("rate", message));
        if self.stages.is_empty() {
            return wrong("no stages, at least 1 is needed".to_owned());
        }
        for (index, stage) in self.stages.iter().enumerate() {
            for tps in [stage.from_tps, stage.to_tps] {
                if !(0.0..=MOST_TPS).contains(&tps) {
                    return wrong(format!(
                        "got {tps}, allowed are transactions per second from 0 to {MOST_TPS}"
                    ));
                }
            }
            let is_last = index + 1 == self.stages.len();
            match stage.duration_s {
                None if !is_last => {
                    return wrong("only the last stage may be without a duration_s".to_owned());
                }
                None if stage.from_tps != stage.to_tps => {
                    return wrong("a rate that changes needs a duration_s".to_owned());
                }
                Some(duration_s) if !(duration_s > 0.0 && duration_s <= LONGEST_S) => {
                    return wrong(format!(
                        "got a stage of {duration_s} s, allowed are seconds above 0 up to {LONGEST_S}"
                    ));
                }
                _ => {}
            }
        }
        if self
            .stages
            .iter()
            .all(|stage| stage.from_tps + stage.to_tps == 0.0)
        {
            return wrong("every rate is 0: nothing would ever be due".to_owned());
        }
        Ok(())
    }
}

/// A stage as one thread sees it.
#[derive(Debug, Clone, Copy)]
struct Share {
    begins_ns: u64,
    /// `u64::MAX` for the last.
    ends_ns: u64,
    /// Arrivals a nanosecond.
    from: f64,
    to: f64,
    /// pgbench's `throttle_delay`: mean microseconds between two arrivals, when the rate is constant.
    delay_us: Option<f64>,
}

impl Share {
    fn length_ns(&self) -> f64 {
        (self.ends_ns - self.begins_ns) as f64
    }

    fn rate_at(&self, at_ns: u64) -> f64 {
        let share = (at_ns - self.begins_ns) as f64 / self.length_ns();
        self.from + (self.to - self.from) * share
    }

    /// Arrivals expected in the whole stage.
    fn expected(&self) -> f64 {
        (self.from + self.to) / 2.0 * self.length_ns()
    }

    /// The part of the stage before `at_ns`, if that is within it.
    fn until(&self, at_ns: u64) -> Self {
        let ends_ns = self.ends_ns.min(at_ns);
        Self {
            ends_ns,
            to: self.rate_at(ends_ns),
            ..*self
        }
    }

    /// How long after its begin `expected` arrivals are expected: where the integral of the rate reaches it.
    fn reached_ns(&self, expected: f64) -> f64 {
        let slope = (self.to - self.from) / self.length_ns();
        // The root of slope t^2 / 2 + from t = expected, in the form that does not cancel.
        let root = (self.from * self.from + 2.0 * slope * expected)
            .max(0.0)
            .sqrt();
        2.0 * expected / (self.from + root)
    }
}

/// The arrivals of one thread, in order.
#[derive(Debug)]
pub(crate) struct Arrivals {
    process: Process,
    /// Arrivals of other threads before the next of this one, and between two of this one.
    others: u64,
    others_between: u64,
}

#[derive(Debug)]
enum Process {
    Steps(Steps),
    Dense(Dense),
}

/// Arrivals that are drawn one by one.
#[derive(Debug)]
struct Steps {
    distribution: Distribution,
    stages: std::vec::IntoIter<Share>,
    stage: Share,
    /// The arrival before.
    last_ns: u64,
    /// Arrivals expected in this stage up to the one before.
    expected: f64,
    random: Prng,
    /// What has to be expected further before the next one, when it is not drawn.
    first_step: Option<f64>,
}

impl Arrivals {
    /// Those of thread number `thread` of `threads`; `random` is the thread's generator for them.
    pub(crate) fn new(
        rate: &Rate,
        warmup_ns: u64,
        thread: usize,
        threads: usize,
        random: Prng,
    ) -> Self {
        let shares = shares(rate, warmup_ns, threads);
        // Threads take turns, so that the arrivals of all are evenly spaced.
        let first = thread as f64 / threads as f64;
        let process = if rate.peak_tps() / threads as f64 > DENSE_TPS {
            Process::Dense(Dense::new(rate.arrivals, shares, random, first))
        } else {
            Process::Steps(Steps::new(rate.arrivals, shares, random, first))
        };
        Self {
            process,
            others: 0,
            others_between: 0,
        }
    }

    /// Those of one process of arrivals that all threads share: the i-th is due in thread i modulo `threads`. `random` is the
    /// same in all threads. So arrivals do not depend on the number of threads, nor on where these run.
    pub(crate) fn shared(
        rate: &Rate,
        warmup_ns: u64,
        thread: usize,
        threads: usize,
        random: Prng,
    ) -> Self {
        Self {
            others: thread as u64,
            others_between: threads as u64 - 1,
            ..Self::new(rate, warmup_ns, 0, 1, random)
        }
    }

    /// Time of the thread's next arrival since the start of the run; `u64::MAX` when there is none any more.
    pub(crate) fn next_ns(&mut self) -> u64 {
        for _ in 0..std::mem::replace(&mut self.others, self.others_between) {
            if self.process.next_ns() == u64::MAX {
                return u64::MAX;
            }
        }
        self.process.next_ns()
    }

    /// Passes over arrivals of the thread that are due before `until_ns`, at most `most` of them; returns how many, and when the
    /// next is due. `due_ns` is the last that [`Self::next_ns`] has returned, which is passed over, too.
    pub(crate) fn pass(&mut self, mut due_ns: u64, until_ns: u64, most: u64) -> (u64, u64) {
        let mut passed = 0;
        while due_ns < until_ns && passed < most {
            passed += 1;
            if let Process::Dense(dense) = &mut self.process {
                let threads = self.others_between + 1;
                let of_all = (most - passed)
                    .saturating_mul(threads)
                    .saturating_sub(self.others_between - self.others);
                let of_all = dense.pass(until_ns, of_all);
                passed += self.own_of(of_all);
            }
            due_ns = self.next_ns();
        }
        (passed, due_ns)
    }

    /// How many of the next `of_all` arrivals, which are over, are this thread's.
    fn own_of(&mut self, of_all: u64) -> u64 {
        let Some(after_first) = of_all.checked_sub(self.others + 1) else {
            self.others -= of_all;
            return 0;
        };
        let threads = self.others_between + 1;
        self.others = self.others_between - after_first % threads;
        1 + after_first / threads
    }

    /// How many more there are up to `end_ns`. Very many are not drawn one by one, but as many as are expected.
    pub(crate) fn count_until(&mut self, end_ns: u64) -> u64 {
        const MOST_DRAWN: u64 = 1_000_000;
        if let Process::Dense(dense) = &mut self.process {
            let of_all = dense.count_until(end_ns.saturating_add(1));
            return self.own_of(of_all);
        }
        let mut count = 0;
        while self.next_ns() <= end_ns {
            count += 1;
            if count == MOST_DRAWN
                && let Process::Steps(steps) = &self.process
            {
                let others = self.others_between as f64;
                return count + (steps.expected_until(end_ns) / (others + 1.0)) as u64;
            }
        }
        count
    }
}

impl Process {
    /// Time of the next arrival, whichever thread's it is.
    fn next_ns(&mut self) -> u64 {
        match self {
            Self::Steps(steps) => steps.next_ns(),
            Self::Dense(dense) => dense.next_ns(),
        }
    }
}

impl Steps {
    fn new(distribution: Distribution, stages: Vec<Share>, random: Prng, first: f64) -> Self {
        let mut stages = stages.into_iter();
        let stage = stages
            .next()
            .unwrap_or_else(|| unreachable!("there is a last stage"));
        Self {
            distribution,
            stages,
            stage,
            last_ns: 0,
            expected: 0.0,
            random,
            first_step: Some(first),
        }
    }

    fn next_ns(&mut self) -> u64 {
        let mut step = match self.distribution {
            Distribution::Uniform => self.first_step.take().unwrap_or(1.0),
            Distribution::Poisson => -(1.0 - self.random.next_double()).ln(),
        };
        loop {
            let next_ns = match (self.distribution, self.stage.delay_us) {
                (Distribution::Poisson, Some(delay_us)) => {
                    let gap_us = (step * delay_us + 0.5) as u64;
                    self.last_ns.saturating_add(gap_us.saturating_mul(1_000))
                }
                _ if self.expected + step <= self.stage.expected() => {
                    self.stage.begins_ns + self.stage.reached_ns(self.expected + step) as u64
                }
                _ => u64::MAX,
            };
            if next_ns < self.stage.ends_ns {
                self.last_ns = next_ns;
                self.expected += step;
                return next_ns;
            }
            let Some(stage) = self.stages.next() else {
                return u64::MAX;
            };
            // What is missing after this stage has to come from the next.
            step -= self.left_of_stage().min(step);
            self.expected = 0.0;
            self.last_ns = stage.begins_ns;
            self.stage = stage;
        }
    }

    /// Arrivals expected after the last up to `end_ns`.
    fn expected_until(&self, end_ns: u64) -> f64 {
        let now = std::iter::once(Share {
            begins_ns: self.last_ns,
            from: self.stage.rate_at(self.last_ns),
            ..self.stage
        });
        now.chain(self.stages.clone())
            .filter(|stage| stage.begins_ns < end_ns)
            .map(|stage| stage.until(end_ns).expected())
            .sum()
    }

    /// Arrivals still expected in this stage after the last.
    fn left_of_stage(&self) -> f64 {
        match (self.distribution, self.stage.delay_us) {
            (Distribution::Poisson, Some(_)) => {
                self.stage.from * (self.stage.ends_ns - self.last_ns) as f64
            }
            _ => self.stage.expected() - self.expected,
        }
    }
}

/// The stages as one of `threads` sees them, warm-up and end included.
fn shares(rate: &Rate, warmup_ns: u64, threads: usize) -> Vec<Share> {
    let share = |begins_ns, ends_ns, from_tps: f64, to_tps: f64| Share {
        begins_ns,
        ends_ns,
        from: from_tps / threads as f64 / 1e9,
        to: to_tps / threads as f64 / 1e9,
        delay_us: (from_tps == to_tps && from_tps > 0.0)
            .then(|| 1_000_000.0 / from_tps * threads as f64),
    };
    let mut shares = Vec::new();
    let mut at_ns = warmup_ns;
    if let Some(first) = rate.stages.first().filter(|_| warmup_ns > 0) {
        shares.push(share(0, warmup_ns, first.from_tps, first.from_tps));
    }
    for stage in &rate.stages {
        let ends_ns = match stage.duration_s {
            Some(duration_s) => at_ns + nanoseconds(duration_s),
            None => u64::MAX,
        };
        shares.push(share(at_ns, ends_ns, stage.from_tps, stage.to_tps));
        at_ns = ends_ns;
    }
    if let Some(last) = rate.stages.last().filter(|_| at_ns < u64::MAX) {
        shares.push(share(at_ns, u64::MAX, last.to_tps, last.to_tps));
    }
    // One rate all along is one stage, for rounding to be pgbench's from the first to the last arrival.
    shares.dedup_by(|next, last| {
        let is_same = [last.to, next.from, next.to]
            .iter()
            .all(|rate| *rate == last.from);
        if is_same {
            last.ends_ns = next.ends_ns;
        }
        is_same
    });
    shares
}

mod dense;

#[cfg(test)]
mod tests;
