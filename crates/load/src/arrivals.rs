//! When transactions are due in an open loop.
//!
//! A rate that changes is followed by a change of time: the n-th arrival is when the integral of the rate reaches n
//! (evenly spaced arrivals), or when it has grown by a number drawn from the exponential distribution with mean 1 since the
//! arrival before (a Poisson process; Çınlar, Introduction to Stochastic Processes, 1975, section 4.7). While the rate is
//! constant, a Poisson process draws and rounds as pgbench's `getPoissonRand` does, so that the same seed gives the same
//! arrivals.

use plinth_config::ConfigError;
use plinth_script::Prng;
use serde::Deserialize;

use crate::seconds::{LONGEST_S, nanoseconds};

/// An open loop: transactions are due at times of their own, however long others take.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// How arrivals are spread.
    #[serde(default = "poisson")]
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

fn poisson() -> Distribution {
    Distribution::Poisson
}

/// pgbench's limit is the delay's microsecond; far above what a client can do.
const HIGHEST_TPS: f64 = 1e9;

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

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let wrong = |message: String| Err(ConfigError::new("rate", message));
        if self.stages.is_empty() {
            return wrong("no stages, at least 1 is needed".to_owned());
        }
        for (index, stage) in self.stages.iter().enumerate() {
            for tps in [stage.from_tps, stage.to_tps] {
                if !(0.0..=HIGHEST_TPS).contains(&tps) {
                    return wrong(format!(
                        "got {tps}, allowed are transactions per second from 0 to {HIGHEST_TPS}"
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
        let mut stages = shares.into_iter();
        let stage = stages
            .next()
            .unwrap_or_else(|| unreachable!("there is a last stage"));
        Self {
            distribution: rate.arrivals,
            stages,
            stage,
            last_ns: 0,
            expected: 0.0,
            random,
            // Threads take turns, so that the arrivals of all are evenly spaced.
            first_step: Some(thread as f64 / threads as f64),
        }
    }

    /// Time of the next arrival since the start of the run; `u64::MAX` when there is none any more.
    pub(crate) fn next_ns(&mut self) -> u64 {
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

    /// How many more there are up to `end_ns`. Very many are not drawn one by one, but as many as are expected.
    pub(crate) fn count_until(&mut self, end_ns: u64) -> u64 {
        const MOST_DRAWN: u64 = 1_000_000;
        let mut count = 0;
        while self.next_ns() <= end_ns {
            count += 1;
            if count == MOST_DRAWN {
                return count + self.expected_until(end_ns) as u64;
            }
        }
        count
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
            .map(|stage| {
                let ends_ns = stage.ends_ns.min(end_ns);
                let to = stage.rate_at(ends_ns);
                Share {
                    ends_ns,
                    to,
                    ..stage
                }
                .expected()
            })
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    fn stage(from_tps: f64, to_tps: f64, duration_s: Option<f64>) -> Stage {
        Stage {
            from_tps,
            to_tps,
            duration_s,
        }
    }

    fn all(
        arrivals: Distribution,
        stages: &[Stage],
        warmup_ns: u64,
        threads: usize,
        until_ns: u64,
    ) -> Vec<u64> {
        let rate = Rate {
            arrivals,
            stages: stages.to_vec(),
        };
        rate.validate().unwrap();
        let mut due: Vec<u64> = (0..threads)
            .flat_map(|thread| {
                let random = Prng::seeded(thread as u64 + 1);
                let mut arrivals = Arrivals::new(&rate, warmup_ns, thread, threads, random);
                std::iter::from_fn(move || Some(arrivals.next_ns()))
                    .take_while(|&at_ns| at_ns < until_ns)
            })
            .collect();
        due.sort_unstable();
        due
    }

    #[test]
    fn evenly_spaced_over_all_threads() {
        let due = all(Distribution::Uniform, &[stage(100.0, 100.0, None)], 0, 4, S);
        assert_eq!(due.len(), 100);
        for (number, at_ns) in due.iter().enumerate() {
            assert!(
                at_ns.abs_diff(number as u64 * 10_000_000) <= 2,
                "{number}: {at_ns}"
            );
        }
    }

    #[test]
    fn steps_pauses_and_ramps_are_followed() {
        let stages = [
            stage(100.0, 100.0, Some(1.0)),
            stage(0.0, 0.0, Some(1.0)),
            stage(0.0, 200.0, Some(2.0)),
            stage(200.0, 200.0, Some(1.0)),
        ];
        let due = all(Distribution::Uniform, &stages, S, 2, 8 * S);
        let per_second: Vec<_> = (0..8)
            .map(|second| due.iter().filter(|&&at_ns| at_ns / S == second).count())
            .collect();
        // A second of warm-up at the first rate; 200 t^2 / 4 arrivals in the ramp's first t seconds; then the last rate on.
        for (got, expected) in per_second.iter().zip([100, 100, 0, 50, 150, 200, 200, 200]) {
            assert!(got.abs_diff(expected) <= 2, "{per_second:?}");
        }
    }

    #[test]
    fn a_rate_that_ends_at_zero_ends() {
        let stages = [stage(50.0, 0.0, Some(2.0))];
        for arrivals in [Distribution::Uniform, Distribution::Poisson] {
            let due = all(arrivals, &stages, 0, 1, u64::MAX);
            assert!(due.len().abs_diff(50) < 30 && due.iter().all(|&at_ns| at_ns <= 2 * S));
        }
    }

    #[test]
    fn a_constant_poisson_rate_adds_up_what_pgbench_adds_up() {
        let due = all(
            Distribution::Poisson,
            &[stage(250.0, 250.0, Some(2.0))],
            S,
            1,
            60 * S,
        );
        let mut random = Prng::seeded(1);
        let mut trigger_us = 0;
        for at_ns in due {
            // pgbench: (int64) (-log(uniform) * center + 0.5), center = 1000000 / rate * threads
            let uniform = 1.0 - random.next_double();
            trigger_us += (-uniform.ln() * 4_000.0 + 0.5) as u64;
            assert_eq!(at_ns, trigger_us * 1_000);
        }
    }

    proptest! {
        #[test]
        fn arrivals_come_in_order_and_as_many_as_the_rate_says(
            stages in proptest::collection::vec((0_u32..2_000, 0_u32..2_000, 1_u32..4), 1..5),
            threads in 1_usize..4,
            is_poisson in any::<bool>(),
        ) {
            prop_assume!(stages.iter().any(|(from, to, _)| from + to > 0));
            let expected: f64 = stages.iter().map(|(from, to, s)| f64::from((from + to) * s) / 2.0).sum();
            let end_ns = stages.iter().map(|(_, _, s)| u64::from(*s) * S).sum::<u64>();
            let stages: Vec<_> = stages
                .into_iter()
                .map(|(from, to, s)| stage(from.into(), to.into(), Some(s.into())))
                .collect();
            let arrivals = if is_poisson { Distribution::Poisson } else { Distribution::Uniform };
            let due = all(arrivals, &stages, 0, threads, end_ns);
            // Six standard deviations of a Poisson process, or a rounded arrival a thread.
            let tolerance = if is_poisson { 6.0 * expected.sqrt() + 3.0 } else { threads as f64 + 1.0 };
            prop_assert!((due.len() as f64 - expected).abs() <= tolerance, "{} of {expected}", due.len());

            let rate = Rate { arrivals, stages };
            let mut one = Arrivals::new(&rate, 0, 0, threads, Prng::seeded(9));
            let mut last_ns = 0;
            for _ in 0..1_000 {
                let next_ns = one.next_ns();
                prop_assert!(next_ns >= last_ns);
                last_ns = next_ns;
            }
        }
    }

    #[test]
    fn what_is_left_is_counted_also_when_it_is_very_much() {
        let stages = [
            stage(1e6, 1e6, Some(1.0)),
            stage(1e6, 3e6, Some(1.0)),
            stage(1e6, 1e6, None),
        ];
        let rate = Rate {
            arrivals: Distribution::Uniform,
            stages: stages.to_vec(),
        };
        for (end_ns, expected) in [(S / 2, 500_000_u64), (2 * S, 3_000_000), (3 * S, 4_000_000)] {
            let mut arrivals = Arrivals::new(&rate, 0, 0, 1, Prng::seeded(1));
            let count = arrivals.count_until(end_ns);
            assert!(count.abs_diff(expected) <= 2, "{count} and {expected}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (stages, words) in [
            (vec![], "at least 1"),
            (vec![stage(-1.0, 1.0, None)], "got -1"),
            (vec![stage(f64::NAN, 1.0, None)], "got NaN"),
            (vec![stage(0.0, 0.0, None)], "every rate is 0"),
            (vec![stage(1.0, 2.0, None)], "needs a duration_s"),
            (
                vec![stage(1.0, 1.0, None), stage(1.0, 1.0, None)],
                "only the last",
            ),
            (vec![stage(1.0, 1.0, Some(0.0))], "above 0"),
        ] {
            let rate = Rate {
                arrivals: Distribution::Poisson,
                stages,
            };
            let error = rate.validate().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
