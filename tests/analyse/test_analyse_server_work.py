"""What a transaction took of the server: WAL, full-page images and pages at hand, by trial and by variant."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from analyse_bundles import SECOND_NS, bundle
from plinth.analyse import analyse
from plinth.analyse.server_work import trial_work
from plinth.analyse.window import measured_phase
from plinth.model.analysis import VariantResult
from plinth.model.base import Gap
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.trial import Sample
from plinth.report import build_report, render_csv, render_markdown, render_terminal
from sampled import by_metric

Counts = Mapping[tuple[str, str], float]
"""Growth a transaction of (source, metric)."""
ALL: Counts = {
    ("pg_wal", "wal_bytes"): 1200.0,
    ("pg_wal", "insert_lsn_bytes"): 1200.0,
    ("pg_wal", "wal_fpi"): 0.25,
    ("pg_database", "blks_hit"): 19.0,
    ("pg_database", "blks_read"): 1.0,
}


def counting(contents: TrialContents, counts: Counts, gaps: tuple[Gap, ...] = ()) -> TrialContents:
    """A trial whose counters grow evenly from the warm-up's end; what came before is ten times as much and counts for nothing."""
    trial = contents.trial
    assert trial.measured is not None
    begin_ns, done = 5 * SECOND_NS, trial.measured.done
    samples = [
        Sample(begin_ns + second * SECOND_NS, source, "x", metric, each * done * (10 + max(0, second) / 30))
        if second >= 0
        else Sample(0, source, "x", metric, 0)
        for (source, metric), each in counts.items()
        for second in (-1, 0, 15, 30)
    ]
    named = [s._replace(object="all") if s.source == "pg_wal" else s for s in samples]
    later = trial.model_copy(update={"gaps": gaps, "warmup_ns": begin_ns})
    return replace(contents, trial=later, read_samples=lambda: by_metric(named))


def counted(*counts: Counts, gaps: tuple[Gap, ...] = ()) -> tuple[VariantResult, BundleContents]:
    given = bundle({"disk": [100.0] * len(counts)}, aa=False)
    trials = tuple(counting(one, each, gaps) for one, each in zip(given.trials, counts, strict=True))
    contents = replace(given, trials=trials)
    (variant,) = analyse(contents).variants
    return variant, contents


def test_figures_are_of_the_measured_phase_and_of_each_transaction() -> None:
    variant, _ = counted(ALL, *({**ALL, ("pg_wal", "insert_lsn_bytes"): size} for size in (1400.0, 1300.0)))
    of_trials = [point.work for point in variant.trials]
    assert [work.wal_bytes for work in of_trials if work] == pytest.approx([1200, 1400, 1300])
    work = variant.work
    assert work is not None and work.wal_bytes and work.full_page_images and work.buffer_hits
    assert work.wal_bytes.value == pytest.approx(1300)
    assert work.wal_bytes.interval is not None and work.wal_bytes.interval.low < 1300
    assert work.full_page_images.value == pytest.approx(0.25 * 1300 / 1200)  # of WAL that the view had not told of yet
    assert work.buffer_hits.value == pytest.approx(0.95)
    assert work.gaps == ()


def test_readings_that_do_not_stand_where_the_phase_begins_and_ends_make_no_transaction_dearer() -> None:
    """Of 2.5 s, read once a second, the readings span 3."""
    (contents,) = bundle({"disk": [100.0]}, aa=False).trials
    short = contents.trial.model_copy(update={"warmup_ns": SECOND_NS, "measured_ns": 5 * SECOND_NS // 2})
    samples = [Sample(s * SECOND_NS + 2_000_000, "pg_wal", "all", "wal_bytes", 120_000 * s) for s in range(5)]
    assert trial_work(short, measured_phase(short, by_metric(samples))).wal_bytes == pytest.approx(1200)


def test_what_the_views_do_not_show_yet_is_a_gap_and_no_zero() -> None:
    """A backend reports its work at most once a second: of a phase of one second, nothing, or others' work alone."""
    late = {("pg_wal", "wal_bytes"): 0.0, ("pg_wal", "wal_fpi"): 0.0, ("pg_database", "xact_commit"): 0.001}
    variant, _ = counted({**ALL, **late})
    work = variant.work
    assert work is not None and work.wal_bytes is not None
    assert work.wal_bytes.value == pytest.approx(1200)
    assert (work.full_page_images, work.buffer_hits) == (None, None)
    reason = "the server had reported less than half of the transactions when the phase ended: measure for longer"
    assert [(gap.what, gap.reason) for gap in work.gaps] == [
        ("full-page images of a transaction", reason),
        ("buffer hit ratio", reason),
    ]


@pytest.mark.parametrize(
    ("commits", "rollbacks", "of_each", "is_known"),
    [
        (0.001, 1.0, None, True),
        (0.001, 0.0, 0, True),
        (1.0, 0.0, 3, False),
        (3.0, 0.0, 3, True),
        (0.001, 0.0, 1, False),
    ],
)
def test_what_has_been_reported_is_seen_by_what_a_script_has_of_the_servers_transactions(
    commits: float, rollbacks: float, of_each: int | None, is_known: bool
) -> None:
    """It may roll all back, only sleep, or be several of them."""
    counts = {**ALL, ("pg_database", "xact_commit"): commits, ("pg_database", "xact_rollback"): rollbacks}
    (given,) = bundle({"disk": [100.0]}, aa=False).trials
    contents = counting(given, counts)
    assert contents.trial.totals is not None
    seen = None if of_each is None else of_each * contents.trial.totals.done
    trial = contents.trial.model_copy(update={"server_transactions": seen})
    work = trial_work(trial, measured_phase(trial, contents.read_samples()))
    assert (work.buffer_hits is not None) == is_known


def test_what_writes_nothing_has_no_images() -> None:
    nothing = {("pg_wal", metric): 0.0 for metric in ("wal_bytes", "insert_lsn_bytes", "wal_fpi")}
    variant, _ = counted({**ALL, **nothing, ("pg_database", "xact_commit"): 1.0})
    work = variant.work
    assert work is not None and work.wal_bytes is not None and work.full_page_images is not None
    assert (work.wal_bytes.value, work.full_page_images.value, work.gaps) == (0, 0, ())


def test_of_13_the_position_in_the_wal_shows_its_bytes_and_the_rest_is_a_gap_with_its_reason() -> None:
    reason = "PostgreSQL 13 does not have it; 14 and later do"
    variant, contents = counted(
        {("pg_wal", "insert_lsn_bytes"): 700.0}, gaps=(Gap(what="pg_size, pg_wal: wal_fpi", reason=reason),)
    )
    work = variant.work
    assert work is not None and work.wal_bytes is not None
    assert work.wal_bytes.value == pytest.approx(700)
    assert (work.full_page_images, work.buffer_hits) == (None, None)
    assert [(gap.what, gap.reason) for gap in work.gaps] == [
        ("full-page images of a transaction", reason),
        ("buffer hit ratio", "the bundle has no samples of it from the measured phase"),
    ]
    markdown = render_markdown(build_report(contents, analyse(contents)))
    assert f"| 700 B | n/a: {reason} | n/a: the bundle has no samples of it from the measured phase |" in markdown


def test_the_interval_of_a_share_near_one_stays_below_it() -> None:
    missed = (0.0001, 0.0002, 0.0002, 0.0004)
    variant, _ = counted(
        *({**ALL, ("pg_database", "blks_hit"): 1 - m, ("pg_database", "blks_read"): m} for m in missed)
    )
    hits = variant.work.buffer_hits if variant.work else None
    assert hits is not None and hits.interval is not None
    assert hits.value == pytest.approx(1 - 0.0002)
    assert 0 <= hits.interval.low < hits.value < hits.interval.high < 1


def test_where_no_page_was_asked_for_there_is_no_ratio() -> None:
    variant, _ = counted({**ALL, ("pg_database", "blks_hit"): 0.0, ("pg_database", "blks_read"): 0.0})
    assert variant.work is not None
    assert variant.work.buffer_hits is None


def test_it_is_in_every_form() -> None:
    _, contents = counted(ALL, ALL, ALL)
    analysis = analyse(contents)
    report = build_report(contents, analysis)
    shown = " ".join(render_terminal(report, width=200, color=False).split())
    assert "per transaction: WAL 1.2 kB, full-page images 0.25, buffer hits 95 %" in shown
    assert "| 1.2 kB | 0.25 | 95 % |" in render_markdown(report)
    head, first, *_ = render_csv(report).splitlines()
    row = dict(zip(head.split(","), first.split(","), strict=True))
    assert float(row["wal_bytes_per_transaction"]) == pytest.approx(1200)
    assert float(row["buffer_hits"]) == pytest.approx(0.95)
    assert report.model_validate_json(report.model_dump_json()) == report
