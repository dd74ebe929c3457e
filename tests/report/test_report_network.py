"""The links of the emulated network in words: what was asked, what was measured, and whether the emulation was exact."""

from dataclasses import replace

import pytest

from analyse_bundles import sweep
from plinth.model.contents import BundleContents
from plinth.model.network import Lateness, LinkCounters, LinkSettings, MeasuredLink, TrialNetwork
from plinth.report.sections.network import link_sentence, link_texts

US, MS = 1_000, 1_000_000


def contents(asked: LinkSettings, round_trip_ns: int | None) -> BundleContents:
    """Two trials with a link that was asked for in both directions."""
    made = sweep({"server.settings.work_mem": ["4MB", "8MB"]}, lambda variant, block: 100.0)
    none = LinkCounters(sent=500, delivered=500, delivered_bytes=1, lost=0, overflowed=0, partitioned=0)
    link = MeasuredLink(
        upstream="primary",
        standby="a",
        to_standby=asked,
        to_upstream=asked,
        round_trips_ns=(round_trip_ns,) * 3,
        sent_to_standby=none,
        sent_to_upstream=none,
    )
    trials = tuple(
        replace(
            one,
            trial=one.trial.model_copy(
                update={
                    "network": TrialNetwork(
                        links=(link,),
                        lateness=Lateness(packets=1000 * (number + 1), p50_ns=29 * US, p99_ns=122 * US, max_ns=2 * MS),
                    )
                }
            ),
        )
        for number, one in enumerate(made.trials[:2])
    )
    return replace(made, trials=trials)


def round_trip(asked: LinkSettings, round_trip_ns: int | None) -> str:
    return link_texts(contents(asked, round_trip_ns))[0].round_trip


@pytest.mark.parametrize(
    ("delay_ms", "round_trip_us", "words"),
    [
        (5, 10_190, "10.2 ms, of which 10 ms are the delays"),
        (5, 10_210, "10.2 ms, of which 10 ms are the delays (not within 200 us: 100 us or 2 % each way)"),
        (20, 40_790, "40.8 ms, of which 40 ms are the delays"),
        (20, 39_100, "39.1 ms, of which 40 ms are the delays (not within 800 us: 100 us or 2 % each way)"),
        (0, 900, "900 us"),
    ],
)
def test_a_round_trip_that_is_not_exact_is_named(delay_ms: int, round_trip_us: int, words: str) -> None:
    assert round_trip(LinkSettings(delay_ns=delay_ms * MS), round_trip_us * US) == words


def test_what_was_asked_for_is_no_inexactness() -> None:
    """Jitter, and what sending takes at a rate: 64 bytes at 1 Mbit/s are 512 us, each way."""
    assert "not within" not in round_trip(LinkSettings(delay_ns=5 * MS, jitter_ns=MS), 11_900 * US)
    assert "not within" not in round_trip(LinkSettings(delay_ns=5 * MS, rate_bits_per_s=1_000_000), 11_100 * US)
    assert "not within 1.22 ms" in round_trip(LinkSettings(delay_ns=5 * MS, rate_bits_per_s=1_000_000), 12_000 * US)
    assert round_trip(LinkSettings(delay_ns=5 * MS), None) == "n/a: no packet came back"


def test_how_late_packets_came_is_said_of_all_links() -> None:
    one, of_all = link_texts(contents(LinkSettings(delay_ns=5 * MS), 10 * MS))
    assert link_sentence(one) == (
        "delay 5 ms each way; round trip 10 ms, of which 10 ms are the delays; 2,000 packets in 2 trials"
    )
    assert (of_all.link, link_sentence(of_all)) == (
        "all links",
        "2,000 packets, late by 29 us (median), 122 us (p99), 2 ms at most in 2 trials",
    )
