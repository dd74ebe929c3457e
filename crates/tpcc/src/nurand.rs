//! NURand, the non-uniform random numbers of clause 2.1.6, and the constants C that belong to it.

use plinth_script::Prng;
use plinth_script::distributions::uniform;

use crate::{CUSTOMERS, ITEMS, LAST_NAMES, mix, scaled};

/// `NURand(A, x, y)` with its constant C, which all terminals of a run share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nurand {
    a: i64,
    c: i64,
    min: i64,
    max: i64,
}

impl Nurand {
    /// A number from `min` to `max`.
    pub fn draw(self, random: &mut Prng) -> i64 {
        let hot = uniform(random, 0, self.a);
        let any = uniform(random, self.min, self.max);
        ((hot | any) + self.c) % (self.max - self.min + 1) + self.min
    }
}

#[cfg(any(test, feature = "testing"))]
impl Nurand {
    /// Of each number from `min` to `max` its probability, exactly: the pairs of numbers that lead to it, counted. `A` is
    /// one less than a power of 2, so that only the low bits of the second number meet those of the first.
    ///
    /// # Panics
    /// When the probabilities do not add up to 1.
    #[must_use]
    pub fn probabilities(self) -> Vec<f64> {
        let Self { a, c, min, max } = self;
        let values = (max - min + 1) as usize;
        let low_values = (a + 1) as usize;
        let mut pairs = vec![0_u64; values];
        for high in (min / (a + 1))..=(max / (a + 1)) {
            // Of each low part, the first numbers that give it, summed over all its subsets.
            let mut sums = vec![0_u64; low_values];
            for (low, sum) in sums.iter_mut().enumerate() {
                let any = high * (a + 1) + low as i64;
                if (min..=max).contains(&any) {
                    *sum = 1 << low.count_ones();
                }
            }
            let mut bit = 1;
            while bit < low_values {
                for low in 0..low_values {
                    if low & bit != 0 {
                        sums[low] += sums[low ^ bit];
                    }
                }
                bit *= 2;
            }
            for (low, sum) in sums.iter().enumerate() {
                let both = high * (a + 1) + low as i64;
                pairs[((both + c) % values as i64) as usize] += sum;
            }
        }
        let all = (low_values * values) as f64;
        assert_eq!(pairs.iter().sum::<u64>() as f64, all);
        pairs.iter().map(|&count| count as f64 / all).collect()
    }
}

/// The constants C of a dataset and of the runs on it. They are functions of the dataset's seed, so that every client of
/// every trial has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constants {
    last_name_load: i64,
    last_name_run: i64,
    customer: i64,
    item: i64,
}

const LAST_NAME_A: i64 = 255;
const CUSTOMER_A: i64 = 1_023;
const ITEM_A: i64 = 8_191;

impl Constants {
    /// Those of the dataset with this seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let base = mix(seed);
        let drawn = |number: u64, a: i64| {
            scaled(mix(base.wrapping_add(number)), (a + 1).cast_unsigned()).cast_signed()
        };
        let last_name_load = drawn(1, LAST_NAME_A);
        let allowed: Vec<i64> = (0..=LAST_NAME_A)
            .filter(|run| is_allowed_delta((run - last_name_load).abs()))
            .collect();
        let place = scaled(mix(base.wrapping_add(2)), allowed.len() as u64);
        Self {
            last_name_load,
            last_name_run: allowed[place as usize],
            customer: drawn(3, CUSTOMER_A),
            item: drawn(4, ITEM_A),
        }
    }

    /// The numbers of last names of customers when they are loaded.
    #[must_use]
    pub fn last_names_loaded(self) -> Nurand {
        Nurand {
            a: LAST_NAME_A,
            c: self.last_name_load,
            min: 0,
            max: LAST_NAMES as i64 - 1,
        }
    }

    /// The numbers of last names that transactions ask for.
    #[must_use]
    pub fn last_names_asked(self) -> Nurand {
        Nurand {
            c: self.last_name_run,
            ..self.last_names_loaded()
        }
    }

    /// The customers of a district that transactions choose.
    #[must_use]
    pub fn customers(self) -> Nurand {
        Nurand {
            a: CUSTOMER_A,
            c: self.customer,
            min: 1,
            max: CUSTOMERS as i64,
        }
    }

    /// The items that transactions choose.
    #[must_use]
    pub fn items(self) -> Nurand {
        Nurand {
            a: ITEM_A,
            c: self.item,
            min: 1,
            max: ITEMS as i64,
        }
    }
}

/// Clause 2.1.6.1: how far the constant of a run may be from that of the load.
fn is_allowed_delta(delta: i64) -> bool {
    (65..=119).contains(&delta) && delta != 96 && delta != 112
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::deviations;

    fn counts(nurand: Nurand, mut draw: impl FnMut(&mut Prng) -> i64, draws: u64) -> Vec<u64> {
        let mut random = Prng::seeded(3);
        let mut counts = vec![0; (nurand.max - nurand.min + 1) as usize];
        for _ in 0..draws {
            counts[(draw(&mut random) - nurand.min) as usize] += 1;
        }
        counts
    }

    const DRAWS: u64 = 400_000;

    fn all(constants: Constants) -> [Nurand; 4] {
        [
            constants.last_names_loaded(),
            constants.last_names_asked(),
            constants.customers(),
            constants.items(),
        ]
    }

    #[test]
    fn draws_have_the_exact_probabilities() {
        for nurand in all(Constants::of_seed(42)) {
            let drawn = counts(nurand, |random| nurand.draw(random), DRAWS);
            let found = deviations(&drawn, &nurand.probabilities());
            assert!(found.abs() < 5.0, "{nurand:?}: {found}");
        }
    }

    #[test]
    fn a_constant_drawn_anew_for_each_call_is_found() {
        for nurand in all(Constants::of_seed(42)) {
            let redrawn = |random: &mut Prng| {
                let c = uniform(random, 0, nurand.a);
                Nurand { c, ..nurand }.draw(random)
            };
            let found = deviations(&counts(nurand, redrawn, DRAWS), &nurand.probabilities());
            assert!(found > 20.0, "{nurand:?}: {found}");
        }
    }

    #[test]
    fn the_hottest_hundredth_of_the_items_gets_nearly_a_third_of_the_accesses() {
        let mut of_items = Constants::of_seed(1).items().probabilities();
        of_items.sort_by(|one, other| other.total_cmp(one));
        let hottest: f64 = of_items[..1_000].iter().sum();
        assert!((hottest - 0.305).abs() < 0.001, "{hottest}");
    }

    #[test]
    fn constants_of_load_and_run_are_as_far_apart_as_they_must_be() {
        let mut loads = vec![false; 256];
        for seed in 0..5_000 {
            let constants = Constants::of_seed(seed);
            let delta = (constants.last_name_run - constants.last_name_load).abs();
            assert!(
                (65..=119).contains(&delta) && ![96, 112].contains(&delta),
                "{seed}: {delta}"
            );
            loads[constants.last_name_load as usize] = true;
            assert!((0..=1_023).contains(&constants.customer));
            assert!((0..=8_191).contains(&constants.item));
        }
        assert!(loads.iter().all(|&load| load));
    }
}
