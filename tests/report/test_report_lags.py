"""How far standbys are behind: lines over time, and a line of text for each, from samples of known lags."""

from dataclasses import replace

import numpy as np
import pytest

from plinth.model.contents import BundleContents, TrialContents
from plinth.model.report import Report
from plinth.model.trial import Points
from plinth.report import build_report
from plinth.report.catalogue import Reading
from plinth.report.lags import Lag, lag_lines, lag_of, lag_words
from reported import Reported

S = 1_000_000_000
LAGS_S = {"write": 0.010, "flush": 0.012, "replay": 0.050}


def with_lags(trial: TrialContents) -> TrialContents:
    """Standby a, by two connections: the second from the 20th second on; its slot; and nothing behind in the last seconds."""
    samples = dict(trial.read_samples())
    for pid, seconds in (("11", np.arange(0, 18)), ("12", np.arange(20, 34))):
        for step, lag_s in LAGS_S.items():
            samples["pg_replication", f"a/{pid}", f"{step}_lag_s"] = Points(seconds * S, np.full(len(seconds), lag_s))
        for place, step in enumerate(("sent", "write", "flush", "replay")):
            behind = np.full(len(seconds), 1e6 * (place + 1))
            samples["pg_replication", f"a/{pid}", f"{step}_behind_bytes"] = Points(seconds * S, behind)
    seconds = np.arange(0, 34)
    samples["pg_slots", "a", "retained_bytes"] = Points(seconds * S, seconds.astype(np.float64) * 1e6)
    samples["pg_slots", "a", "active"] = Points(seconds * S, np.ones(34))
    samples["read_your_writes", "a", "wait_s"] = Points(seconds * S, seconds / 1000)
    samples["read_your_writes", "a", "timed_out"] = Points(np.array([8, 9, 33]) * S, np.array([0.0, 1.0, 1.0]))
    return replace(trial, read_samples=lambda: samples)


@pytest.fixture(scope="module")
def report(ramdisk: Reported) -> Report:
    trials = tuple(map(with_lags, ramdisk.contents.trials))
    contents: BundleContents = replace(ramdisk.contents, trials=trials)
    return build_report(contents, ramdisk.report.analysis)


def column(report: Report, panel: str, label: str) -> tuple:
    place = next(i for i, series in enumerate(report.series) if (series.panel, series.label) == (panel, label))
    values = report.trials[0].columns[place]
    assert values is not None
    return values


def test_each_step_has_a_line_over_all_connections(report: Report) -> None:
    drawn = {panel: [one.label for one in report.series if one.panel == panel] for panel in ("lag", "lag_bytes")}
    assert drawn["lag"] == ["a written", "a flushed", "a replayed", "a waited for"]
    assert column(report, "lag", "a waited for")[10] == pytest.approx(10.5e6)
    assert drawn["lag_bytes"] == ["a sent", "a written", "a flushed", "a replayed"]
    flushed = column(report, "lag", "a flushed")
    assert flushed[5] == pytest.approx(12e6) and flushed[25] == pytest.approx(12e6), "in ns"
    assert flushed[18] is None, "there was no connection: a hole, not zero"
    assert column(report, "lag_bytes", "a replayed")[5] == pytest.approx(4e6)
    assert column(report, "retained", "a")[10] == pytest.approx(10.5e6)


def test_there_are_no_such_panels_without_standbys(ramdisk: Reported) -> None:
    assert not {panel.id for panel in ramdisk.report.panels} & {"lag", "lag_bytes", "retained"}


def test_the_words_are_of_the_measured_time(ramdisk: Reported) -> None:
    trial = with_lags(ramdisk.contents.trials[0])
    tracks = {Reading(*key): (points.t_ns / 1e9, points.values) for key, points in trial.read_samples().items()}
    lag = lag_of("a", tracks, 5.0, 30.0)
    assert lag is not None
    assert lag.means_s == pytest.approx(LAGS_S)
    assert (lag.most_behind_bytes, lag.most_retained_bytes) == (4e6, 30e6)
    assert (lag.usual_wait_s, lag.longest_wait_s, lag.timeouts) == (pytest.approx(0.0175), 0.030, 1)
    assert lag_of("b", tracks, 5.0, 30.0) is None
    assert lag_of("a", tracks, 40.0, 50.0) is None, "nothing was sampled then"
    waited = "a session there waited {} to see what was committed before, at most 30 ms, {} for that did not end within 0.9 s"
    assert lag_words({"near": [lag]}, "b").endswith(f"nothing is sampled, {waited.format('17.5 ms', '1 wait')}")
    twice = lag._replace(means_s={step: 2 * mean_s for step, mean_s in lag.means_s.items()}, usual_wait_s=0.02)
    assert lag_words({"near": [lag], "far": [twice]}, None) == (
        "written 10 ms to 20 ms, flushed 12 ms to 24 ms, replayed 50 ms to 100 ms after the primary, at most 4 MB behind, "
        f"at most 30 MB of WAL kept for it, {waited.format('17.5 ms to 20 ms', '2 waits')}"
    )


def test_what_is_not_known_is_said() -> None:
    assert lag_words({}, None) == "n/a: nothing was sampled of it"
    assert lag_words({}, "a") == "n/a: it streams from a, of which nothing is sampled"
    assert lag_words({"v": [Lag({}, 0.0, None)]}, None).startswith("nothing was behind when it was looked")


def test_what_is_drawn_is_what_the_observer_documents() -> None:
    import plinth.observe

    documented = plinth.observe.__doc__ or ""
    readings = [Reading("pg_replication", "a/1", "flush_lag_s"), Reading("pg_slots", "a", "retained_bytes")]
    assert [line.label for line in lag_lines(readings)] == ["a flushed", "a"]
    for reading in readings:
        assert reading.source in documented and reading.metric in documented
