"""The standby and the step of replication that commits waited for, from synthetic lags of pg_stat_replication."""

import numpy as np
import pytest

from plinth.analyse.replication import lag_evidence, standby_lags, step_sentence, waited_for
from plinth.analyse.window import Window
from plinth.model.trial import Points

S = 1_000_000_000
MEASURED_NS = 4 * S


def window(**lags_ms: tuple[float | None, float | None, float | None]) -> Window:
    """Write, flush and replay lag of each standby."""
    samples = {
        ("pg_replication", f"{name}/12{place}", f"{what}_lag_s"): Points(
            np.array([1, 2, 3]) * S, np.full(3, lag / 1000)
        )
        for place, (name, lags) in enumerate(lags_ms.items())
        for what, lag in zip(("write", "flush", "replay"), lags, strict=True)
        if lag is not None
    }
    return Window(0, MEASURED_NS, samples)


SLOW_NETWORK, SLOW_FLUSH, SLOW_REPLAY = (41.0, 43.0, 44.0), (6.0, 22.0, 23.0), (1.0, 3.0, 150.0)


@pytest.mark.parametrize(
    ("names", "commit", "lags", "expected"),
    [
        ("FIRST 1 (a)", "on", {"a": SLOW_NETWORK}, ("a", "network")),
        ("FIRST 1 (a)", "on", {"a": SLOW_FLUSH}, ("a", "flush")),
        ("FIRST 1 (a)", "remote_apply", {"a": SLOW_REPLAY}, ("a", "replay")),
        ("FIRST 1 (a)", "on", {"a": SLOW_REPLAY}, ("a", "flush")),  # replay is not waited for
        ("FIRST 1 (a)", "remote_write", {"a": SLOW_FLUSH}, ("a", "flush")),  # it writes nothing while it flushes
        ("FIRST 1 (a)", "remote_write", {"a": SLOW_NETWORK}, ("a", "network")),
        (
            "FIRST 1 (a)",
            "on",
            {"a": (9.5, 19.0, 19.5)},
            ("a", "flush"),
        ),  # most of the 9.5 ms is waiting for the flush under way
        ("FIRST 1 (b, a)", "on", {"a": SLOW_NETWORK, "b": SLOW_FLUSH}, ("b", "flush")),
        ("FIRST 2 (a, b)", "on", {"a": SLOW_NETWORK, "b": SLOW_FLUSH}, ("a", "network")),
        ("ANY 1 (a, b)", "on", {"a": SLOW_NETWORK, "b": SLOW_FLUSH}, ("b", "flush")),
        ("ANY 2 (a, b)", "on", {"a": SLOW_NETWORK, "b": SLOW_FLUSH}, ("a", "network")),
        ("*", "on", {"a": SLOW_FLUSH}, ("a", "flush")),
    ],
)
def test_the_step_and_the_standby_that_commits_waited_for(names, commit, lags, expected) -> None:
    settings = {"synchronous_standby_names": names, "Synchronous_Commit": commit}
    found = waited_for(window(**lags), settings)
    assert found is not None
    assert (found[0].name, found[1]) == expected
    assert f"mostly standby {expected[0]}: " in step_sentence(found)


def test_nothing_is_claimed_without_lags_or_without_a_quorum() -> None:
    assert waited_for(window(a=SLOW_FLUSH), {}) is None
    assert waited_for(window(a=SLOW_FLUSH), {"synchronous_standby_names": "b"}) is None
    assert waited_for(window(a=(None, None, None)), {"synchronous_standby_names": "a"}) is None


def test_a_stall_shows_in_the_wal_that_is_behind_where_the_lags_are_those_of_before_it() -> None:
    """1 MB of WAL a second, of which 200 kB were not replayed: 0.2 s, regardless of the last reported lag."""
    before = window(a=(1.0, 1.5, 2.0))
    behind = {"write": 0, "flush": 500, "replay": 200_500}
    samples = {
        **before.samples,
        ("pg_wal", "all", "wal_bytes"): Points(np.array([0, 1, 2, 3]) * S, np.array([0.0, 1e6, 2e6, 3e6])),
        **{
            ("pg_replication", "a/120", f"{what}_behind_bytes"): Points(
                np.array([1, 2, 3]) * S, np.full(3, float(size))
            )
            for what, size in behind.items()
        },
    }
    settings = {"synchronous_standby_names": "a", "synchronous_commit": "remote_apply"}
    found = waited_for(Window(0, MEASURED_NS, samples), settings)
    assert found is not None and (found[0].name, found[1]) == ("a", "replay")
    assert found[0].steps_s == pytest.approx({"network": 1e-3, "flush": 0.5e-3, "replay": 0.2})


def test_steps_are_what_lies_between_the_lags() -> None:
    (lag,) = standby_lags(window(a=(2.0, 5.0, 4.5)))
    assert lag.name == "a"
    assert {step: round(took_s * 1000, 3) for step, took_s in lag.steps_s.items()} == {
        "network": 2.0,
        "flush": 3.0,
        "replay": 0.0,
    }
    evidence = {one.what: one.value for one in lag_evidence(window(a=(2.0, 5.0, None)))}
    assert evidence == pytest.approx({"standby a: the network, and its write": 2e6, "standby a: its flush of WAL": 3e6})
