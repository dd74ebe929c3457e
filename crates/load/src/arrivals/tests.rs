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
fn shared_arrivals_go_to_the_threads_in_turn_and_are_the_same_for_any_number_of_them() {
    let stages = [stage(500.0, 1_500.0, Some(1.0)), stage(100.0, 100.0, None)];
    for arrivals in [Distribution::Poisson, Distribution::Uniform] {
        let rate = Rate {
            arrivals,
            stages: stages.to_vec(),
        };
        let of_thread = |thread, threads| {
            let mut own = Arrivals::shared(&rate, S, thread, threads, Prng::seeded(7));
            std::iter::from_fn(move || Some(own.next_ns())).take_while(|&at_ns| at_ns < 4 * S)
        };
        let of_one: Vec<u64> = of_thread(0, 1).collect();
        assert!(of_one.len() > 1_000);
        for threads in [2, 3, 7] {
            let of_all: Vec<Vec<u64>> = (0..threads)
                .map(|thread| of_thread(thread, threads).collect())
                .collect();
            for (number, at_ns) in of_one.iter().enumerate() {
                assert_eq!(of_all[number % threads][number / threads], *at_ns);
            }
            assert_eq!(of_all.iter().map(Vec::len).sum::<usize>(), of_one.len());
        }
        let mut many = Arrivals::shared(&rate, S, 1, 3, Prng::seeded(7));
        assert!(many.count_until(4 * S).abs_diff(of_one.len() as u64 / 3) <= 1);
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
    // One by one, and dense.
    for tps in [1e4, 1e6] {
        let stages = [
            stage(tps, tps, Some(1e6 / tps)),
            stage(tps, 3.0 * tps, Some(1e6 / tps)),
            stage(tps, tps, None),
        ];
        let rate = Rate {
            arrivals: Distribution::Uniform,
            stages: stages.to_vec(),
        };
        let million_ns = (1e15 / tps) as u64;
        for (end_ns, expected) in [
            (million_ns / 2, 500_000_u64),
            (2 * million_ns, 3_000_000),
            (3 * million_ns, 4_000_000),
        ] {
            let mut arrivals = Arrivals::new(&rate, 0, 0, 1, Prng::seeded(1));
            let count = arrivals.count_until(end_ns);
            assert!(count.abs_diff(expected) <= 2, "{count} and {expected}");
        }
    }
}

/// Rates of which arrivals are dense: a step, a pause and ramps through every rate.
const DENSE: [Stage; 5] = [
    Stage {
        from_tps: 1e9,
        to_tps: 1e9,
        duration_s: Some(0.001),
    },
    Stage {
        from_tps: 0.0,
        to_tps: 0.0,
        duration_s: Some(0.001),
    },
    Stage {
        from_tps: 0.0,
        to_tps: 1e9,
        duration_s: Some(0.001),
    },
    Stage {
        from_tps: 1e6,
        to_tps: 1e5,
        duration_s: Some(0.1),
    },
    Stage {
        from_tps: 2e6,
        to_tps: 2e6,
        duration_s: None,
    },
];

fn dense(arrivals: Distribution) -> Rate {
    Rate {
        arrivals,
        stages: DENSE.to_vec(),
    }
}

#[test]
fn dense_arrivals_follow_the_rate_to_the_nanosecond() {
    const MS: u64 = S / 1_000;
    for distribution in [Distribution::Poisson, Distribution::Uniform] {
        let mut arrivals = Arrivals::new(&dense(distribution), 0, 0, 1, Prng::seeded(3));
        let due: Vec<u64> = std::iter::from_fn(|| Some(arrivals.next_ns()))
            .take_while(|&at_ns| at_ns < 203 * MS)
            .collect();
        assert!(due.is_sorted());
        for (from_ns, to_ns, expected) in [
            (0, MS, 1e6),
            (MS, 2 * MS, 0.0),
            (2 * MS, 3 * MS, 5e5),
            (3 * MS, 103 * MS, 55_000.0),
            (3 * MS, 13 * MS, 9_550.0),
            (103 * MS, 203 * MS, 200_000.0),
        ] {
            let within = |at_ns: u64| due.partition_point(|&due_ns| due_ns < at_ns);
            let found = (within(to_ns) - within(from_ns)) as f64;
            let tolerance = match distribution {
                Distribution::Poisson => 5.0 * f64::sqrt(expected),
                Distribution::Uniform => 2.0,
            };
            assert!(
                (found - expected).abs() <= tolerance,
                "{found} and {expected}"
            );
        }
        if matches!(distribution, Distribution::Poisson) {
            let gaps = due[due.len() - 100_000..].windows(2);
            let gaps: Vec<f64> = gaps.map(|pair| (pair[1] - pair[0]) as f64).collect();
            let share_above =
                |ns: f64| gaps.iter().filter(|&&gap| gap > ns).count() as f64 / gaps.len() as f64;
            for means in [0.1, 1.0, 3.0] {
                let expected = f64::exp(-means);
                assert!(
                    (share_above(means * 500.0) - expected).abs() < 0.01,
                    "{means}"
                );
            }
        }
    }
}

#[test]
fn counts_of_blocks_vary_as_a_poisson_process_does() {
    let rate = Rate {
        arrivals: Distribution::Poisson,
        stages: vec![stage(1e6, 1e6, None)],
    };
    let mut arrivals = Arrivals::new(&rate, 0, 0, 1, Prng::seeded(11));
    let mut due_ns = arrivals.next_ns();
    let counts: Vec<f64> = (1..=2_000)
        .map(|number| {
            let passed;
            (passed, due_ns) = arrivals.pass(due_ns, number * 5_000_000, u64::MAX);
            passed as f64
        })
        .collect();
    let mean = counts.iter().sum::<f64>() / 2_000.0;
    let variance = counts
        .iter()
        .map(|count| (count - mean).powi(2))
        .sum::<f64>()
        / 1_999.0;
    // Standard errors of 1.6 and 158.
    assert!((mean - 5_000.0).abs() < 8.0, "{mean}");
    assert!((variance - 5_000.0).abs() < 800.0, "{variance}");
}

#[test]
fn what_is_passed_over_is_what_would_have_been_drawn() {
    let slow = Rate {
        arrivals: Distribution::Poisson,
        stages: vec![
            stage(500.0, 1_500.0, Some(0.1)),
            stage(50_000.0, 50_000.0, None),
        ],
    };
    for rate in [
        dense(Distribution::Poisson),
        dense(Distribution::Uniform),
        slow,
    ] {
        for threads in [1, 3] {
            for thread in 0..threads {
                let new = || Arrivals::shared(&rate, 0, thread, threads, Prng::seeded(5));
                let mut one_by_one = new();
                let due: Vec<u64> = std::iter::from_fn(|| Some(one_by_one.next_ns()))
                    .take_while(|&at_ns| at_ns < S / 5)
                    .collect();
                let mut passing = new();
                let mut due_ns = passing.next_ns();
                let mut place = 0;
                for (until_ns, most) in [
                    (10, u64::MAX),
                    (900_123, u64::MAX),
                    (1_500_000, 1_234),
                    (2_900_000, 1),
                    (2_900_000, u64::MAX),
                    (50_000_000, 7_777),
                    (50_000_000, u64::MAX),
                    (49_000_000, u64::MAX),
                    (150_000_000, u64::MAX),
                ] {
                    assert_eq!(due[place], due_ns);
                    let before = due.partition_point(|&at_ns| at_ns < until_ns);
                    let expected = (before.saturating_sub(place) as u64).min(most);
                    let passed;
                    (passed, due_ns) = passing.pass(due_ns, until_ns, most);
                    assert_eq!(passed, expected, "up to {until_ns}, {threads} threads");
                    place += passed as usize;
                }
                assert_eq!(
                    passing.count_until(S / 5 - 1),
                    (due.len() - place - 1) as u64
                );
            }
        }
    }
}

#[test]
fn the_highest_rate_for_a_year_is_counted_at_once() {
    let rate = Rate {
        arrivals: Distribution::Poisson,
        stages: vec![stage(1e9, 1e9, None)],
    };
    let year_ns = 365 * 24 * 3_600 * S;
    let mut arrivals = Arrivals::new(&rate, 0, 0, 1, Prng::seeded(1));
    let count = arrivals.count_until(year_ns);
    assert!(count.abs_diff(year_ns) < 1_000_000, "{count}");
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
