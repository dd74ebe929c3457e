//! Keying and think times: what a client waits for between its transactions, as a terminal with a user does.
//!
//! A client keys for a constant time before a transaction, and thinks afterwards for a time of an exponential distribution that is
//! cut at ten times its mean (clause 5.2.5.4 of the TPC-C specification, revision 5.11). Neither is part of a latency.

use plinth_config::ConfigError;
use plinth_script::Prng;

use crate::limits::LONGEST_S;
use crate::seconds::nanoseconds;
use crate::source::TransactionSource;

/// The longest think time, in means.
const MOST_MEANS: f64 = 10.0;

/// The waits of a thread's clients.
#[derive(Debug)]
pub(crate) struct Pacing {
    random: Prng,
    /// By script.
    waits: Vec<Waits>,
}

/// The waits around a transaction of a script.
#[derive(Debug, Clone, Copy)]
struct Waits {
    keying_ns: u64,
    mean_think_ns: u64,
    is_deferred: bool,
}

impl Pacing {
    /// Of clients that run `scripts`; `None` if none of these has a wait.
    pub(crate) fn new(scripts: &[TransactionSource], random: Prng) -> Option<Self> {
        let waits = scripts.iter().map(|script| Waits {
            keying_ns: nanoseconds(script.keying_s),
            mean_think_ns: nanoseconds(script.think_s),
            is_deferred: script.deferred,
        });
        is_paced(scripts).then(|| Self {
            random,
            waits: waits.collect(),
        })
    }

    /// When a transaction of script `next` is due after one of script `before`, which was due at `due_ns` and has ended at
    /// `now_ns`. After a deferred one that may have passed: whoever sent it did not wait for it.
    pub(crate) fn next_ns(&mut self, before: usize, next: usize, due_ns: u64, now_ns: u64) -> u64 {
        let from_ns = if self.waits[before].is_deferred {
            due_ns
        } else {
            now_ns
        };
        from_ns + self.between_ns(before, next)
    }

    /// The think time after a transaction of script `before`, and the keying time of one of script `next`.
    fn between_ns(&mut self, before: usize, next: usize) -> u64 {
        self.think_ns(before) + self.waits[next].keying_ns
    }

    /// From the beginning of the run to a client's first transaction: any part of such a wait, so that clients do not begin
    /// together.
    pub(crate) fn first_ns(&mut self, next: usize) -> u64 {
        let whole_ns = self.between_ns(next, next);
        (self.random.next_double() * whole_ns as f64) as u64
    }

    fn think_ns(&mut self, script: usize) -> u64 {
        // From 0 to below 1; its logarithm is always defined this way.
        let means = -(1.0 - self.random.next_double()).ln();
        (means.min(MOST_MEANS) * self.waits[script].mean_think_ns as f64) as u64
    }
}

/// Whether clients wait between transactions.
pub(crate) fn is_paced(scripts: &[TransactionSource]) -> bool {
    scripts
        .iter()
        .any(|script| script.keying_s > 0.0 || script.think_s > 0.0)
}

/// Checks the waits of all scripts; whether the loop is open.
pub(crate) fn validate(
    scripts: &[TransactionSource],
    is_open_loop: bool,
) -> Result<(), ConfigError> {
    for script in scripts {
        for (key, seconds) in [
            ("scripts.keying_s", script.keying_s),
            ("scripts.think_s", script.think_s),
        ] {
            if !(0.0..=LONGEST_S).contains(&seconds) {
                let message =
                    format!("got {seconds}, allowed are seconds from 0 up to {LONGEST_S}");
                return Err(ConfigError::new(key, message));
            }
        }
    }
    if let Some(script) = scripts.iter().find(|script| script.deferred)
        && script.keying_s + script.think_s == 0.0
    {
        let message = format!(
            "got true of {}, which has no keying and think times: there is no time in which it could be carried out",
            script.name
        );
        return Err(ConfigError::new("scripts.deferred", message));
    }
    if is_open_loop && is_paced(scripts) {
        let message = "not with keying or think times: one of both says when transactions begin";
        return Err(ConfigError::new("rate", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: f64 = 1e9;

    fn source(keying_s: f64, think_s: f64) -> TransactionSource {
        TransactionSource {
            name: "a".to_owned(),
            source: Some(String::new()),
            compiled: None,
            weight: 1,
            keying_s,
            think_s,
            deferred: false,
        }
    }

    fn pacing(sources: &[TransactionSource]) -> Pacing {
        Pacing::new(sources, Prng::seeded(7)).unwrap()
    }

    /// Chi-squared of counts that are expected to be equal, as standard deviations from its mean.
    fn deviations(counts: &[u64]) -> f64 {
        let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        let squares = counts
            .iter()
            .map(|&count| (count as f64 - expected).powi(2));
        let degrees = counts.len() as f64 - 1.0;
        (squares.sum::<f64>() / expected - degrees) / (2.0 * degrees).sqrt()
    }

    /// Counts of draws in parts of their distribution that are equally likely, of which `share_below` tells how much of it is
    /// below a draw.
    fn parts(draws: impl Iterator<Item = f64>, share_below: impl Fn(f64) -> f64) -> Vec<u64> {
        let mut counts = vec![0; 50];
        for draw in draws {
            let part = (share_below(draw) * counts.len() as f64) as usize;
            let last = counts.len() - 1;
            counts[part.min(last)] += 1;
        }
        counts
    }

    #[test]
    fn think_times_are_exponential_and_cut_at_ten_means() {
        let mut pacing = pacing(&[source(18.0, 12.0)]);
        let mut thinks: Vec<f64> = (0..200_000)
            .map(|_| pacing.between_ns(0, 0) as f64 / S - 18.0)
            .collect();
        assert!(thinks.iter().all(|think| (0.0..=120.0).contains(think)));
        let exponential = |think: f64| 1.0 - (-think / 12.0).exp();
        let found = deviations(&parts(thinks.iter().copied(), exponential));
        assert!(found.abs() < 5.0, "{found}");
        // One in 22,026 is cut: 9 expected.
        let cut = thinks.iter().filter(|think| **think == 120.0).count();
        assert!((1..30).contains(&cut), "{cut}");
        // The control: another mean is found.
        thinks.iter_mut().for_each(|think| *think *= 1.05);
        assert!(deviations(&parts(thinks.into_iter(), exponential)) > 20.0);
    }

    #[test]
    fn a_wait_is_the_think_time_of_what_was_and_the_keying_time_of_what_comes() {
        let mut pacing = pacing(&[source(18.0, 12.0), source(2.0, 0.0)]);
        for _ in 0..1000 {
            assert_eq!(pacing.between_ns(1, 0) as f64, 18.0 * S);
            assert!((2.0 * S..=122.0 * S).contains(&(pacing.between_ns(0, 1) as f64)));
        }
    }

    #[test]
    fn nobody_waits_for_the_end_of_a_deferred_transaction() {
        let deferred = TransactionSource {
            deferred: true,
            ..source(3.0, 0.0)
        };
        let mut pacing = pacing(&[source(18.0, 0.0), deferred]);
        let s = 1_000_000_000;
        assert_eq!(pacing.next_ns(0, 1, 50 * s, 60 * s), 63 * s);
        assert_eq!(pacing.next_ns(1, 0, 50 * s, 60 * s), 68 * s);
        // It took longer than the next one needs to be due.
        assert_eq!(pacing.next_ns(1, 1, 50 * s, 60 * s), 53 * s);
    }

    #[test]
    fn clients_begin_evenly_spread() {
        let mut pacing = pacing(&[source(18.0, 0.0)]);
        let firsts = (0..100_000).map(|_| pacing.first_ns(0) as f64 / S);
        let found = deviations(&parts(firsts, |first| first / 18.0));
        assert!(found.abs() < 5.0, "{found}");
    }

    #[test]
    fn scripts_without_waits_have_no_pacing() {
        assert!(Pacing::new(&[source(0.0, 0.0)], Prng::seeded(7)).is_none());
    }

    #[test]
    fn waits_that_cannot_be_are_refused() {
        for (keying_s, think_s, is_open_loop, key) in [
            (-1.0, 0.0, false, "scripts.keying_s"),
            (0.0, f64::NAN, false, "scripts.think_s"),
            (0.0, 1e300, false, "scripts.think_s"),
            (0.0, 1.0, true, "rate"),
        ] {
            let refused = validate(&[source(keying_s, think_s)], is_open_loop);
            assert_eq!(refused.unwrap_err().key, key);
        }
        let deferred = TransactionSource {
            deferred: true,
            ..source(0.0, 0.0)
        };
        let refused = validate(&[source(1.0, 0.0), deferred], false);
        assert_eq!(refused.unwrap_err().key, "scripts.deferred");
        validate(&[source(0.0, 0.0)], true).unwrap();
        validate(&[source(18.0, 12.0)], false).unwrap();
    }
}
