"""What each process group read and wrote: rates of the measured phase, by variant, and gaps where /proc could not be read."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from analyse_bundles import SECOND_NS, bundle
from plinth.analyse import analyse
from plinth.model.analysis import ProcessIo
from plinth.model.base import Gap
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.trial import Sample
from plinth.report import build_report, render_markdown, render_terminal
from sampled import by_metric

Rates = Mapping[str, tuple[float, float]]
"""Bytes read and written a second, by group."""


def sampled(contents: TrialContents, rates: Rates, gaps: tuple[Gap, ...]) -> TrialContents:
    """A trial with these rates after its warm-up of 5 s, and a hundred times as much in it, which must not count."""
    seconds = {0: 0.0, 5: 500.0, 15: 510.0, 30: 525.0}
    samples = [
        Sample(second * SECOND_NS, "process_io", group, metric, rate * weight)
        for group, pair in rates.items()
        for metric, rate in zip(("read_bytes", "wchar"), pair, strict=True)
        for second, weight in seconds.items()
    ]
    trial = contents.trial.model_copy(update={"gaps": gaps, "warmup_ns": 5 * SECOND_NS})
    return replace(contents, trial=trial, read_samples=lambda: by_metric(samples))


def analysed(*rates: Rates, gaps: tuple[Gap, ...] = ()) -> tuple[ProcessIo, BundleContents]:
    given = bundle({"disk": [100.0] * len(rates)}, aa=False)
    trials = tuple(sampled(one, each, gaps) for one, each in zip(given.trials, rates, strict=True))
    contents = replace(given, trials=trials)
    (variant,) = analyse(contents).variants
    assert variant.process_io is not None
    return variant.process_io, contents


def test_rates_are_medians_of_the_measured_phase_and_idle_groups_are_left_out() -> None:
    idle = {"logger": (0.0, 0.0)}
    found, _ = analysed(
        *({"checkpointer": (0.0, written), "backends": (9e6, 1e6), **idle} for written in (2e6, 4e6, 3e6))
    )
    assert found.gaps == ()
    assert [(one.group, one.read_bytes_per_s.value, one.written_bytes_per_s.value) for one in found.groups] == [
        ("backends", pytest.approx(9e6), pytest.approx(1e6)),
        ("checkpointer", 0, pytest.approx(3e6)),
    ]


def test_a_group_that_could_not_be_read_is_a_gap_with_its_own_reason() -> None:
    gaps = (
        Gap(what="process_io: walwriter", reason="/proc/7/io: hidden"),
        Gap(what="process_io: checkpointer", reason="/proc/8/io: Permission denied"),
    )
    found, contents = analysed({"backends": (0.0, 1e6)}, gaps=gaps)
    assert [one.group for one in found.groups] == ["backends"]
    assert {gap.what: gap.reason for gap in found.gaps} == {
        "I/O of walwriter": "/proc/7/io: hidden",
        "I/O of checkpointer": "/proc/8/io: Permission denied",
    }
    report = build_report(contents, analyse(contents))
    markdown = render_markdown(report)
    assert "| I/O of checkpointer | n/a: /proc/8/io: Permission denied |" in markdown
    row = next(line for line in markdown.splitlines() if "| backends | 0 B/s" in line)
    assert "| 1 MB/s" in row
    assert "disk: backends wrote 1 MB/s\n" in render_terminal(report, width=200, color=False)


def test_where_nothing_was_read_that_is_said_with_its_reason_and_the_terminal_keeps_quiet() -> None:
    found, contents = analysed({}, gaps=(Gap(what="process_io", reason="the server is not on this host"),))
    assert found.groups == ()
    assert [(gap.what, gap.reason) for gap in found.gaps] == [("I/O by process", "the server is not on this host")]
    assert "read from storage" not in render_terminal(build_report(contents, analyse(contents)), width=200, color=False)
