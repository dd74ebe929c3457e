"""The time series: which lines there are, what they show, and why a panel is empty."""

from dataclasses import replace

import pytest

import report_bundles
from plinth.model.base import Gap
from plinth.model.contents import BundleContents
from plinth.model.report import Report, ReportTrial, Value
from plinth.model.trial import Samples
from plinth.report.catalogue import MAX_WAITS, PANELS, Reading, is_drawn, wait_lines
from plinth.report.timeline import timelines
from reported import Reported


def labels(report: Report, panel: str) -> list[str]:
    return [series.label for series in report.series if series.panel == panel]


def column(report: Report, trial: ReportTrial, panel: str, label: str) -> tuple[Value, ...] | None:
    place = next(i for i, series in enumerate(report.series) if (series.panel, series.label) == (panel, label))
    return trial.columns[place]


def first_of(report: Report, variant: str) -> ReportTrial:
    return next(trial for trial in report.trials if trial.variant == variant)


def reason(trial: ReportTrial, panel: str) -> str:
    return next(gap.reason for gap in trial.panel_gaps if gap.panel == panel)


def test_every_second_of_the_load_is_there(ramdisk: Reported) -> None:
    for trial, read in zip(ramdisk.report.trials, ramdisk.contents.trials, strict=True):
        assert column(ramdisk.report, trial, "tps", "done") == tuple(float(f"{s.done:.4g}") for s in read.series)
        assert trial.end_s == 35
        assert trial.warmup_s == 5


def test_rates_are_those_that_were_put_in(ramdisk: Reported) -> None:
    """The synthetic machine writes 2,600 bytes of WAL a transaction, give or take 5 % a second."""
    trial = first_of(ramdisk.report, "disk")
    wal, tps = (column(ramdisk.report, trial, panel, label) for panel, label in (("wal", "WAL"), ("tps", "done")))
    assert wal is not None and tps is not None
    assert sum(w or 0 for w in wal) == pytest.approx(2600 * sum(t or 0 for t in tps), rel=0.05)


def test_the_disk_is_drawn_and_not_its_partition(ramdisk: Reported) -> None:
    assert labels(ramdisk.report, "device_busy") == ["testdisk0"]


def test_memory_has_no_device_and_says_so(ramdisk: Reported) -> None:
    trial = first_of(ramdisk.report, "memory")
    assert column(ramdisk.report, trial, "device_busy", "testdisk0") is None
    assert reason(trial, "device_busy") == "no block device is known under tmpfs at /srv/test/memory"


def test_failures_are_drawn_only_where_there_are_any(ramdisk: Reported) -> None:
    assert labels(ramdisk.report, "tps") == ["done"]
    first, *others = ramdisk.contents.trials
    series = (first.series[0].model_copy(update={"failed": 3}), *first.series[1:])
    drawn = timelines(replace(ramdisk.contents, trials=(replace(first, series=series), *others)))
    assert [series.label for series in drawn.series if series.panel == "tps"] == ["done", "failed"]


def test_a_gap_names_the_reason_that_the_observer_gave(trouble: Reported) -> None:
    assert reason(trouble.report.trials[0], "waits") == "permission denied for view pg_stat_activity"
    assert not any(gap.panel == "waits" for gap in trouble.report.trials[1].panel_gaps)


@pytest.mark.parametrize(
    ("what", "found"),
    [
        ("pg_wait", True),
        ("pg_wait: all (from 3.0 s)", True),
        ("pg_database, pg_wait (from 3.0 s until 5.0 s)", True),
        ("pg_waiting", False),
        ("pg_database", False),
    ],
)
def test_a_reason_is_found_by_its_source(what: str, found: bool) -> None:
    contents = without_samples(report_bundles.ramdisk(repeats=1, seconds=10), "pg_wait")
    gap = Gap(what=what, reason="the reason")
    first = replace(contents.trials[0], trial=contents.trials[0].trial.model_copy(update={"gaps": (gap,)}))
    gaps = timelines(replace(contents, trials=(first, *contents.trials[1:]))).gaps[0]
    waits = next(gap for gap in gaps if gap.panel == "waits")
    assert waits.reason == ("the reason" if found else "the bundle has too few samples of pg_wait in this trial")


def test_a_trial_that_failed_at_once_has_no_figures_and_its_reason(trouble: Reported) -> None:
    contents = trouble.contents
    dead = replace(contents.trials[3], series=(), read_samples=dict)
    trials = (*contents.trials[:3], dead, *contents.trials[4:])
    drawn = timelines(replace(contents, trials=trials))
    assert set(drawn.columns[3]) == {None}
    assert [gap.panel for gap in drawn.gaps[3]] == [panel.id for panel in PANELS]
    assert all(gap.reason.endswith("signal 9 (killed)") for gap in drawn.gaps[3] if gap.panel in ("tps", "wal"))


def test_commonest_waits_have_bands_of_their_own_and_the_rest_one() -> None:
    waits = {"CPU": 1.0} | {f"IO:Wait{i}": 100.0 - i for i in range(10)}
    bands = wait_lines(waits)
    assert [band.label for band in bands] == ["CPU", *(f"IO: Wait{i}" for i in range(MAX_WAITS)), "other waits"]
    assert {reading.object for band in bands for reading in band.readings} == set(waits)


def test_only_what_is_drawn_is_kept() -> None:
    assert is_drawn(Reading("device", "nvme0n1", "flushes"))
    assert is_drawn(Reading("host_cpu", "all", "iowait_s"))
    assert is_drawn(Reading("pg_wait", "client backend/IO:WalSync", "backends"))
    assert is_drawn(Reading("pg_wait", "IO:WalSync", "backends")), "as bundles of the first format have it"
    assert not is_drawn(Reading("pg_wait", "checkpointer/IO:DataFileSync", "backends"))
    assert not is_drawn(Reading("pg_wait", "all", "idle"))
    assert not is_drawn(Reading("device", "nvme0n1", "discards"))


def test_every_drawn_metric_is_one_that_the_observer_documents() -> None:
    """A renamed metric would leave a panel empty."""
    import plinth.observe
    from plinth.report.catalogue import HOST_LINES, RoledDevice, device_lines

    documented = plinth.observe.__doc__ or ""
    for line in [*HOST_LINES, *device_lines([RoledDevice("")]), *wait_lines({"CPU": 1})]:
        for reading in line.readings:
            word = reading.metric.removeprefix("write_").removeprefix("read_")
            assert reading.source in documented and word in documented, reading


def without_samples(contents: BundleContents, source: str) -> BundleContents:
    def strip(samples: Samples) -> Samples:
        return {key: points for key, points in samples.items() if key[0] != source}

    trials = tuple(
        replace(trial, read_samples=lambda read=trial.read_samples: strip(read())) for trial in contents.trials
    )
    return replace(contents, trials=trials)
