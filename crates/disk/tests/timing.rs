//! When requests end: every profile and its numbers, by the pure model.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use plinth_disk::model::{Extent, Operation, Overrides, PROFILES, Physics, Timing, profile};
use proptest::prelude::*;

const SIZE: u64 = 4 << 30;
const PAGE: u64 = 8192;
const SECOND: u64 = 1_000_000_000;
const WRITE: Operation = Operation::Write { through: false };

fn physics(name: &str, overrides: &str) -> Physics {
    let overrides: Overrides = serde_json::from_str(overrides).unwrap();
    overrides.apply(&profile(name).unwrap().physics).unwrap()
}

fn page(number: u64) -> Extent {
    Extent {
        offset: number * PAGE % SIZE,
        length: PAGE,
    }
}

/// Pages at random (splitmix64).
fn scattered(number: u64) -> Extent {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    page((mixed ^ (mixed >> 31)) % (SIZE / PAGE))
}

fn nowhere() -> Extent {
    Extent {
        offset: 0,
        length: 0,
    }
}

/// Requests that end in a second when `depth` of them are always there.
fn per_second(
    physics: &Physics,
    depth: usize,
    count: u64,
    request: impl Fn(u64) -> (Operation, Extent),
) -> f64 {
    let mut timing = Timing::new(physics.clone(), SIZE, 1);
    let mut ends = std::collections::BinaryHeap::new();
    let mut now_ns = 0;
    for number in 0..count {
        if ends.len() == depth {
            let std::cmp::Reverse(end_ns) = ends.pop().unwrap();
            now_ns = end_ns;
        }
        let (operation, extent) = request(number);
        ends.push(std::cmp::Reverse(timing.admit(now_ns, operation, extent)));
    }
    let last_ns = ends.into_iter().map(|end| end.0).max().unwrap();
    count as f64 / (last_ns as f64 / SECOND as f64)
}

fn median_ns(physics: &Physics, request: impl Fn(u64) -> (Operation, Extent)) -> u64 {
    let mut timing = Timing::new(physics.clone(), SIZE, 1);
    let mut now_ns = 0;
    let mut taken: Vec<u64> = (0..4001)
        .map(|number| {
            let (operation, extent) = request(number);
            let end_ns = timing.admit(now_ns, operation, extent);
            let taken_ns = end_ns - now_ns;
            now_ns = end_ns + 40_000; // the host's share
            taken_ns
        })
        .collect();
    taken.sort_unstable();
    taken[2000]
}

fn assert_near(found: f64, wanted: f64, tolerance: f64, what: &str) {
    assert!(
        (found / wanted - 1.0).abs() <= tolerance,
        "{what}: {found}, not {wanted}"
    );
}

#[test]
fn at_depth_one_half_of_the_requests_take_less_than_the_latency_asked_for() {
    for profile in PROFILES.iter().filter(|profile| profile.physics.rpm == 0) {
        let physics = &profile.physics;
        for (operation, latency_ns) in [
            (Operation::Read, physics.read_latency_ns),
            (WRITE, physics.write_latency_ns),
            (Operation::Flush, physics.flush_latency_ns),
        ] {
            let found_ns = median_ns(physics, |number| (operation, scattered(number)));
            let slack_ns = latency_ns / 50 + 1;
            assert!(
                found_ns.abs_diff(latency_ns) <= slack_ns,
                "{} {operation:?}: {found_ns}",
                profile.name
            );
        }
    }
}

#[test]
fn a_cap_on_requests_holds_at_every_depth_and_for_its_own_kind_only() {
    for (key, operation, other) in [
        ("read_iops", Operation::Read, WRITE),
        ("write_iops", WRITE, Operation::Read),
    ] {
        let physics = physics("ideal", &format!(r#"{{"{key}": 2000}}"#));
        for depth in [1, 4, 32] {
            let found = per_second(&physics, depth, 20_000, |number| {
                (operation, scattered(number))
            });
            assert_near(found, 2000.0, 0.01, key);
        }
        let found = per_second(&physics, 32, 20_000, |number| (other, scattered(number)));
        assert!(found > 1e6, "{found}");
    }
}

#[test]
fn a_cap_on_bytes_holds_for_small_and_large_requests() {
    for length in [PAGE, 1 << 20] {
        let physics = physics("ideal", r#"{"read_bytes_per_s": 100000000}"#);
        let found = per_second(&physics, 8, 4000, |number| {
            let offset = number * length % SIZE;
            (Operation::Read, Extent { offset, length })
        });
        assert_near(found * length as f64, 1e8, 0.01, "bytes a second");
    }
}

#[test]
fn channels_work_side_by_side_and_no_more() {
    for channels in [1_u32, 8] {
        let overrides = format!(r#"{{"read_latency_ns": 100000, "channels": {channels}}}"#);
        let physics = physics("ideal", &overrides);
        let found = per_second(&physics, 64, 20_000, |number| {
            (Operation::Read, scattered(number))
        });
        assert_near(
            found,
            10_000.0 * f64::from(channels),
            0.01,
            "reads a second",
        );
    }
}

#[test]
fn writes_are_fast_until_the_cache_is_full_and_then_as_fast_as_it_drains() {
    let physics = physics(
        "ideal",
        r#"{"cache_bytes": 8388608, "drain_bytes_per_s": 10000000, "write_latency_ns": 1000}"#,
    );
    let mut timing = Timing::new(physics, SIZE, 1);
    let mut now_ns = 0;
    let mut ends = Vec::new();
    for number in 0..4096 {
        now_ns = timing.admit(now_ns, WRITE, page(number));
        ends.push(now_ns);
    }
    assert!(
        ends[1000] < 5_000_000,
        "the first 8 MiB are in the cache at once: {}",
        ends[1000]
    );
    let drained = (3000 * PAGE) as f64 / ((ends[4095] - ends[1095]) as f64 / SECOND as f64);
    assert_near(drained, 1e7, 0.02, "bytes a second");
    // A flush waits for all that is in it.
    let flushed_ns = timing.admit(now_ns, Operation::Flush, nowhere()) - now_ns;
    assert_near(flushed_ns as f64, 8_388_608.0 / 1e7 * 1e9, 0.02, "flush");
    // A second one finds nothing, and one after a pause finds what has not drained yet.
    let now_ns = now_ns + flushed_ns;
    assert_eq!(timing.admit(now_ns, Operation::Flush, nowhere()), now_ns);
    let written_ns = timing.admit(
        now_ns,
        WRITE,
        Extent {
            offset: 0,
            length: 1_000_000,
        },
    );
    let later_ns = written_ns + 60_000_000;
    let flushed_ns = timing.admit(later_ns, Operation::Flush, nowhere()) - later_ns;
    assert_near(flushed_ns as f64, 40_000_000.0, 0.02, "flush after a pause");
}

#[test]
fn a_write_through_a_cache_pays_for_the_medium() {
    let physics = physics("sata-ssd", r#"{"spread": 0.0}"#);
    let through = Operation::Write { through: true };
    let found_ns = median_ns(&physics, |number| (through, scattered(number)));
    assert_eq!(
        found_ns,
        physics.write_latency_ns + physics.flush_latency_ns
    );
}

#[test]
fn a_head_is_slow_at_random_and_fast_in_a_row_and_a_log_costs_a_revolution() {
    let physics = physics("hdd-10k-sas", "{}");
    let random = per_second(&physics, 1, 3000, |number| {
        (Operation::Read, scattered(number))
    });
    assert!((110.0..150.0).contains(&random), "{random}");
    let queued = per_second(&physics, 32, 3000, |number| {
        (Operation::Read, scattered(number))
    });
    assert!((1.8..2.6).contains(&(queued / random)), "{queued} {random}");
    // 128 KiB is what the kernel's read-ahead asks for.
    let length = 128 * 1024;
    let row = per_second(&physics, 1, 5_000, |number| {
        let offset = number * length;
        (Operation::Read, Extent { offset, length })
    });
    let medium = physics.read_bytes_per_s as f64;
    assert_near(row * length as f64, medium, 0.03, "bytes a second");
    let log_ns = median_ns(&physics, |number| (WRITE, page(number)));
    assert_near(log_ns as f64, 6_000_000.0, 0.1, "a page of a log");
}

#[test]
fn a_journal_elsewhere_costs_a_head_more_than_twice_what_the_log_alone_does() {
    // What an fsync on ext4 writes: data, journal blocks, flush, commit record, flush.
    let physics = physics("hdd-10k-sas", "{}");
    let mut timing = Timing::new(physics, SIZE, 1);
    let journal = SIZE / 2 / PAGE;
    let mut now_ns = 0;
    let mut log_only_ns = 0;
    let mut with_journal_ns = 0;
    let go = |timing: &mut Timing, now_ns: u64, operation, extent| {
        timing.admit(now_ns, operation, extent) + 50_000
    };
    for number in 0..500 {
        let began_ns = now_ns;
        now_ns = go(&mut timing, now_ns, WRITE, page(number));
        now_ns = go(&mut timing, now_ns, Operation::Flush, nowhere());
        log_only_ns += now_ns - began_ns;
    }
    for number in 0..500 {
        let began_ns = now_ns;
        for (operation, extent) in [
            (WRITE, page(number)),
            (WRITE, page(journal + number * 2)),
            (Operation::Flush, nowhere()),
            (WRITE, page(journal + number * 2 + 1)),
            (Operation::Flush, nowhere()),
        ] {
            now_ns = go(&mut timing, now_ns, operation, extent);
        }
        with_journal_ns += now_ns - began_ns;
    }
    let ratio = with_journal_ns as f64 / log_only_ns as f64;
    assert!((2.0..5.0).contains(&ratio), "{ratio}");
}

#[test]
fn a_disk_with_a_cache_takes_random_writes_in_and_pays_at_the_flush() {
    let physics = physics("hdd-7200", "{}");
    let mut timing = Timing::new(physics.clone(), SIZE, 1);
    let mut now_ns = SECOND;
    for number in 0..100 {
        now_ns = timing.admit(now_ns, WRITE, scattered(number));
    }
    assert!(now_ns - SECOND < 100 * 400_000, "{}", now_ns - SECOND);
    let flush_ns = timing.admit(now_ns, Operation::Flush, nowhere()) - now_ns;
    assert!(
        (300_000_000..1_200_000_000).contains(&flush_ns),
        "{flush_ns}"
    );
    // A read meanwhile waits for the head.
    let read_ns = timing.admit(now_ns, Operation::Read, page(1)) - now_ns;
    assert!(read_ns > flush_ns, "{read_ns}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn time_goes_forward_and_the_same_requests_take_the_same(
        which in 0..PROFILES.len(),
        requests in prop::collection::vec((0_u8..5, 0_u64..SIZE / PAGE, 1_u64..64, 0_u64..3_000_000), 1..200),
        seed: u64,
    ) {
        let run = || {
            let mut timing = Timing::new(PROFILES[which].physics.clone(), SIZE, seed);
            let mut now_ns = 0;
            requests.iter().map(|&(kind, place, pages, pause_ns)| {
                now_ns += pause_ns;
                let operation = match kind {
                    0 => Operation::Read,
                    1 => WRITE,
                    2 => Operation::Write { through: true },
                    3 => Operation::Discard,
                    _ => Operation::Flush,
                };
                let offset = place * PAGE;
                let length = (pages * PAGE).min(SIZE - offset);
                let end_ns = timing.admit(now_ns, operation, Extent { offset, length });
                (now_ns, end_ns)
            }).collect::<Vec<_>>()
        };
        let found = run();
        prop_assert!(found.iter().all(|&(now_ns, end_ns)| now_ns <= end_ns && end_ns < now_ns + 600 * SECOND));
        prop_assert_eq!(found, run());
    }
}
