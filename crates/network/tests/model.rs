//! The model against what its settings promise, for any traffic.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::Ipv4Addr;

use plinth_network::model::{
    Changes, Fate, JitterDistribution, Link, LinkSettings, SettingsError, Star,
};
use proptest::prelude::*;

fn any_settings() -> impl Strategy<Value = LinkSettings> {
    (
        0_u64..50_000_000,
        0_u64..5_000_000,
        any::<bool>(),
        0.0..0.5,
        prop_oneof![Just(0), 1_000_000_u64..1_000_000_000],
        65_535_u64..1 << 20,
    )
        .prop_map(
            |(delay_ns, jitter_ns, uniform, loss, rate_bits_per_s, queue_bytes)| LinkSettings {
                delay_ns,
                jitter_ns,
                jitter_distribution: if uniform {
                    JitterDistribution::Uniform
                } else {
                    JitterDistribution::Normal
                },
                loss,
                rate_bits_per_s,
                queue_bytes,
                partitioned: false,
            },
        )
}

/// Times between packets, and their sizes.
fn any_traffic() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0_u64..2_000_000, 40_u64..1500), 1..300)
}

fn fates(link: &mut Link, traffic: &[(u64, u64)]) -> Vec<(u64, Fate)> {
    let mut now_ns = 1_000_000_000;
    traffic
        .iter()
        .map(|&(pause_ns, bytes)| {
            now_ns += pause_ns;
            (now_ns, link.send(now_ns, bytes))
        })
        .collect()
}

proptest! {
    #[test]
    fn packets_keep_their_order_and_none_is_early(settings in any_settings(), traffic in any_traffic(), seed: u64) {
        let mut link = Link::new(settings, seed, 0);
        let mut last_ns = 0;
        for ((sent_ns, fate), (_, bytes)) in fates(&mut link, &traffic).into_iter().zip(&traffic) {
            let Fate::Due(due_ns) = fate else { continue };
            prop_assert!(due_ns >= last_ns);
            last_ns = due_ns;
            let least_delay_ns = if settings.jitter_ns == 0 { settings.delay_ns } else { 0 };
            let on_the_wire_ns = (bytes * 8 * 1_000_000_000).checked_div(settings.rate_bits_per_s).unwrap_or(0);
            prop_assert!(due_ns >= sent_ns + least_delay_ns + on_the_wire_ns);
        }
    }

    #[test]
    fn no_more_passes_than_the_rate_and_a_backlog_passes_at_it(
        rate in 1_000_000_u64..1_000_000_000, sizes in prop::collection::vec(40_u64..1500, 20..40),
    ) {
        let settings = LinkSettings { rate_bits_per_s: rate, ..LinkSettings::default() };
        let mut link = Link::new(settings, 1, 0);
        let total: u64 = sizes.iter().sum();
        let all = fates(&mut link, &sizes.iter().map(|&bytes| (0, bytes)).collect::<Vec<_>>());
        let Fate::Due(last_ns) = all.last().unwrap().1 else { panic!("the queue has room for them") };
        let took_s = (last_ns - 1_000_000_000) as f64 / 1e9;
        let asked_s = (total * 8) as f64 / rate as f64;
        // Each packet's time is rounded up to a nanosecond.
        prop_assert!(took_s >= asked_s - 1e-9 && took_s <= asked_s + sizes.len() as f64 * 1e-9);
    }

    #[test]
    fn the_queue_holds_what_it_may_and_drops_the_rest(queue_bytes in 65_535_u64..200_000) {
        let settings = LinkSettings { rate_bits_per_s: 1_000_000, queue_bytes, ..LinkSettings::default() };
        let mut link = Link::new(settings, 1, 0);
        let all = fates(&mut link, &[(0, 1000); 300]);
        let passed = all.iter().filter(|(_, fate)| matches!(fate, Fate::Due(_))).count() as u64;
        prop_assert_eq!(passed, queue_bytes / 1000);
        prop_assert_eq!(link.counters().overflowed, 300 - passed);
    }

    #[test]
    fn a_seed_is_a_network(settings in any_settings(), traffic in any_traffic(), seed: u64) {
        let run = |stream| fates(&mut Link::new(settings, seed, stream), &traffic);
        prop_assert_eq!(run(3), run(3));
    }

    #[test]
    fn every_packet_is_counted_once(settings in any_settings(), traffic in any_traffic(), cut in 0_usize..300) {
        let mut star = star(settings);
        let mut now_ns = 1_000_000_000;
        for (index, &(pause_ns, bytes)) in traffic.iter().enumerate() {
            now_ns += pause_ns;
            if index == cut {
                star.link_mut(0, 1).set(LinkSettings { partitioned: true, ..settings });
            }
            star.send(now_ns, 0, &packet(2, bytes as usize));
        }
        let mut received = 0;
        while let Some(arrival) = star.receive(u64::MAX) {
            prop_assert_eq!(arrival.to, 1);
            received += 1;
        }
        let counted = star.link(0, 1).counters();
        prop_assert_eq!(counted.delivered, received);
        prop_assert_eq!(counted.sent, traffic.len() as u64);
        prop_assert_eq!(
            counted.sent,
            counted.delivered + counted.lost + counted.overflowed + counted.partitioned
        );
    }
}

fn star(settings: LinkSettings) -> Star {
    let addresses = (1..=3).map(|last| Ipv4Addr::new(10, 0, 0, last)).collect();
    Star::new(addresses, 1, |_, _| settings)
}

/// A packet of IPv4 to 10.0.0.`to`; nothing else in it is looked at.
fn packet(to: u8, bytes: usize) -> Vec<u8> {
    let mut packet = vec![0; bytes.max(20)];
    packet[0] = 0x45;
    packet[16..20].copy_from_slice(&[10, 0, 0, to]);
    packet
}

fn delays_ns(settings: LinkSettings) -> Vec<f64> {
    let mut link = Link::new(settings, 5, 0);
    // A second apart, so that keeping their order changes nothing.
    let all = fates(&mut link, &[(1_000_000_000, 100); 20_000]);
    all.into_iter()
        .filter_map(|(sent_ns, fate)| match fate {
            Fate::Due(due_ns) => Some((due_ns - sent_ns) as f64),
            _ => None,
        })
        .collect()
}

#[test]
fn jitter_has_the_distribution_that_was_asked_for() {
    let settings = LinkSettings {
        delay_ns: 10_000_000,
        jitter_ns: 1_000_000,
        ..LinkSettings::default()
    };
    let moments = |drawn: &[f64]| {
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance =
            drawn.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        (mean, variance.sqrt())
    };
    let normal = delays_ns(settings);
    let (mean, deviation) = moments(&normal);
    assert!(
        (mean - 10e6).abs() < 30e3 && (deviation - 1e6).abs() < 20e3,
        "{mean} {deviation}"
    );
    let uniform = delays_ns(LinkSettings {
        jitter_distribution: JitterDistribution::Uniform,
        ..settings
    });
    let (mean, deviation) = moments(&uniform);
    assert!((mean - 10e6).abs() < 30e3, "{mean}");
    assert!((deviation - 1e6 / 3_f64.sqrt()).abs() < 20e3, "{deviation}");
    assert!(uniform.iter().all(|one| (9e6..=11e6).contains(one)));
}

#[test]
fn loss_is_as_probable_as_asked_for() {
    let settings = LinkSettings {
        loss: 0.1,
        ..LinkSettings::default()
    };
    let lost = 20_000 - delays_ns(settings).len();
    assert!((1_850..2_150).contains(&lost), "{lost}");
    assert!(
        delays_ns(LinkSettings {
            loss: 1.0,
            ..settings
        })
        .is_empty()
    );
}

#[test]
fn a_partition_of_one_direction_leaves_the_other_and_drops_what_is_in_flight() {
    let mut star = star(LinkSettings {
        delay_ns: 1_000,
        ..LinkSettings::default()
    });
    star.send(0, 0, &packet(2, 40));
    let cut = star
        .link(0, 1)
        .settings()
        .with(&Changes {
            partitioned: Some(true),
            ..Changes::default()
        })
        .unwrap();
    star.link_mut(0, 1).set(cut);
    star.send(10, 0, &packet(2, 40));
    star.send(20, 1, &packet(1, 40));
    star.send(30, 0, &packet(3, 40));
    let arrived: Vec<(usize, u64)> = std::iter::from_fn(|| star.receive(10_000))
        .map(|arrival| (arrival.to, arrival.due_ns))
        .collect();
    assert_eq!(arrived, [(0, 1_020), (2, 1_030)]);
    assert_eq!(star.link(0, 1).counters().partitioned, 2);
    star.link_mut(0, 1).set(LinkSettings::default());
    star.send(20_000, 0, &packet(2, 40));
    assert_eq!(star.receive(20_000).unwrap().to, 1);
}

#[test]
fn what_is_for_nobody_goes_nowhere() {
    let mut star = star(LinkSettings::default());
    let mut six = packet(2, 60);
    six[0] = 0x60;
    for wrong in [
        packet(9, 40),
        packet(1, 40),
        six,
        vec![0x45; 19],
        Vec::new(),
    ] {
        star.send(0, 0, &wrong);
    }
    assert_eq!(star.unroutable(), 5);
    assert_eq!(star.receive(u64::MAX), None);
}

#[test]
fn a_shorter_delay_does_not_let_packets_overtake() {
    let mut link = Link::new(
        LinkSettings {
            delay_ns: 5_000,
            ..LinkSettings::default()
        },
        1,
        0,
    );
    assert_eq!(link.send(0, 40), Fate::Due(5_000));
    link.set(LinkSettings::default());
    assert_eq!(link.send(10, 40), Fate::Due(5_000));
    assert_eq!(link.send(6_000, 40), Fate::Due(6_000));
}

#[test]
fn settings_that_no_link_can_have_are_refused() {
    let refused = |changes| LinkSettings::default().with(&changes).unwrap_err();
    let none = Changes::default();
    let loss = |loss| {
        refused(Changes {
            loss: Some(loss),
            ..none
        })
    };
    assert_eq!(loss(1.5), SettingsError::Loss(1.5));
    assert!(matches!(loss(f64::NAN), SettingsError::Loss(_)));
    let rate = Changes {
        rate_bits_per_s: Some(999),
        ..none
    };
    assert_eq!(refused(rate), SettingsError::Rate(999));
    let queue = Changes {
        queue_bytes: Some(1_500),
        ..none
    };
    assert_eq!(refused(queue), SettingsError::Queue(1_500));
    let delay = Changes {
        delay_ns: Some(61_000_000_000),
        ..none
    };
    assert!(matches!(
        refused(delay),
        SettingsError::TooLong {
            key: "delay_ns",
            ..
        }
    ));
}
