"""The commit ceiling: a model of what the fsync probe measured; with a reason where there is none."""

from typing import Any

import pytest

from analyse_bundles import bundle, server_facts, storage_facts
from plinth.analyse import analyse
from plinth.analyse.ceiling import commit_ceiling
from plinth.model.base import Gap
from plinth.model.builtin import BUILTINS, BuiltinName
from plinth.model.choices import Group
from plinth.model.contents import BundleContents
from plinth.model.plan import Variant
from plinth.model.probe import FsyncCase, FsyncFigure, FsyncProbe, FsyncResult, Plausibility
from plinth.report import build_report, render_markdown, render_terminal

BUNDLE = bundle({"disk": [100.0, 110.0, 120.0], "other": [100.0, 110.0, 120.0]})
VARIANT = BUNDLE.plan.variants[0]


def result(group: Group, method: str, writers: int, ops_per_s: float, median_ns: int, n_a: str | None = None):
    case = FsyncCase.model_validate(
        {
            "group": group,
            "label": f"{writers} of {method}",
            "method": method,
            "direct": False,
            "block_bytes": 8192,
            "writes": 1,
            "place": "onward",
            "descriptor": "kept",
            "writers": writers,
            "sharing": "group" if group == "group_commit" else "alone",
        }
    )
    figure = FsyncFigure(
        ops=100,
        flushes=100,
        elapsed_ns=1,
        ops_per_s=ops_per_s,
        round_ops_per_s=(ops_per_s,),
        min_ns=median_ns,
        max_ns=median_ns,
        percentiles_ns={"50": median_ns, "99": None},
        buckets=((median_ns, 100),),
    )
    return FsyncResult(case=case, figure=None if n_a else figure, unavailable=n_a)


def probe(*results: FsyncResult, verdict: Any = "plausible", gap: str | None = None) -> FsyncProbe:
    return FsyncProbe(
        path="/disk",
        facts=storage_facts("disk"),
        flush_device="sda",
        duration_s=0.3,
        rounds=3,
        results=results,
        plausibility=Plausibility(verdict=verdict, reasons=("the flushes are as they are",)),
        gaps=(Gap(what="the fsync probe", reason=gap),) if gap else (),
    )


PROBE = probe(
    result("one_block", "fdatasync", 1, 900.0, 1_100_000),
    result("preallocated", "fdatasync", 1, 480.0, 2_000_000),
    result("preallocated", "open_sync", 1, 240.0, 4_000_000),
    result("group_commit", "fdatasync", 8, 1500.0, 3_000_000),
    result("group_commit", "open_sync", 8, 0.0, 1, n_a="it gives errors"),
)


def with_clients(clients: int, **changes: Any) -> Variant:
    workload = VARIANT.workload.model_copy(update={"clients": clients, **changes})
    return VARIANT.model_copy(update={"workload": workload})


def test_one_client_waits_for_each_flush_and_many_share_them():
    of = commit_ceiling(with_clients(8), {"data": "disk"}, server_facts(), {"disk": PROBE}, 600.0, 1200.0)
    assert of.unavailable is None
    assert (of.storage, of.method, of.flush_median_ns) == ("disk", "fdatasync", 2_000_000)
    assert of.one_client_per_s == pytest.approx(500.0)
    assert (of.clients, of.clients_per_s) == (8, 1500.0)
    assert of.reached == pytest.approx(0.4)


def test_one_client_alone_shares_with_nobody():
    of = commit_ceiling(with_clients(1), {"data": "disk"}, server_facts(), {"disk": PROBE}, None, None)
    assert of.clients_per_s == of.one_client_per_s == pytest.approx(500.0)
    assert of.reached is None


def test_it_is_that_of_the_storage_of_the_wal():
    roles = {"data": "slow", "WAL": "disk"}
    assert commit_ceiling(with_clients(8), roles, None, {"disk": PROBE}, None, None).storage == "disk"


@pytest.mark.parametrize(
    ("variant", "roles", "settings", "said"),
    [
        (with_clients(8), {}, {}, "not Plinth's"),
        (with_clients(8), {"data": "disk"}, {"fsync": "off"}, "fsync is off"),
        (with_clients(8), {"data": "disk"}, {"synchronous_commit": "off"}, "synchronous_commit is off"),
        (with_clients(8, builtin="select-only"), {"data": "disk"}, {}, "nothing that must be flushed"),
        (with_clients(8), {"data": "elsewhere"}, {}, "elsewhere was not probed"),
        (with_clients(9), {"data": "disk"}, {}, "9 writers was not measured"),
        (with_clients(8), {"data": "disk"}, {"wal_sync_method": "fsync"}, "fsync of 1 writer was not measured"),
        (with_clients(8), {"data": "disk"}, {"wal_sync_method": "open_sync"}, "it gives errors"),
        (with_clients(8), {"data": "full"}, {}, "no space left"),
    ],
)
def test_without_one_there_is_a_reason(variant: Variant, roles: dict[str, str], settings: dict[str, str], said: str):
    probes = {"disk": PROBE, "full": probe(gap="no space left")}
    of = commit_ceiling(variant, roles, server_facts(**settings), probes, 100.0, None)
    assert said in (of.unavailable or "")
    assert (of.one_client_per_s, of.clients_per_s, of.reached) == (None, None, None)


def test_settings_are_taken_as_asked_where_the_server_never_reported():
    asked = with_clients(8).model_copy(update={"settings": {"fsync": False}})
    of = commit_ceiling(asked, {"data": "disk"}, None, {"disk": PROBE}, None, None)
    assert "fsync is off" in (of.unavailable or "")


@pytest.mark.parametrize("builtin", BUILTINS)
def test_only_what_writes_has_a_ceiling(builtin: BuiltinName):
    of = commit_ceiling(with_clients(8, builtin=builtin), {"data": "disk"}, None, {"disk": PROBE}, None, None)
    assert ("nothing that must be flushed" in (of.unavailable or "")) == (BUILTINS[builtin].writes is False)
    assert builtin.endswith(("select", "select-only")) == (BUILTINS[builtin].writes is False)


@pytest.mark.parametrize(("wal_bytes", "has_one"), [(0.4, False), (33.0, False), (34.0, True), (None, True)])
def test_of_a_script_of_ones_own_its_wal_shows_whether_it_writes(wal_bytes: float | None, has_one: bool):
    own = with_clients(8, builtin=None, script=("own.sql",))
    of = commit_ceiling(own, {"data": "disk"}, None, {"disk": PROBE}, None, wal_bytes)
    assert (of.clients_per_s is not None) == has_one
    assert has_one or "bytes of WAL each" in (of.unavailable or "")


def probed() -> BundleContents:
    """The bundle with probes of both storages, one of them suspicious."""
    from dataclasses import replace

    clients = VARIANT.workload.clients
    cases = (
        result("preallocated", "fdatasync", 1, 480.0, 2_000_000),
        result("group_commit", "fdatasync", clients, 480.0, 2_000_000),
    )
    return replace(BUNDLE, probes={"disk": probe(*cases), "other": probe(*cases, verdict="suspicious")})


def test_it_is_shown_next_to_each_variant_in_every_form():
    contents = probed()
    analysis = analyse(contents)
    ceilings = [variant.ceiling for variant in analysis.variants]
    assert all(of is not None and of.reached is not None for of in ceilings)
    assert "flushes of storage other are suspicious: the flushes are as they are" in analysis.warnings
    report = build_report(contents, analysis)
    for width in (60, 80, 120):
        shown = render_terminal(report, width=width, color=False)
        assert ("ceiling" in shown.splitlines()[0]) == (width >= 80)
        assert max(map(len, shown.splitlines())) <= width
    markdown = render_markdown(report)
    assert "## Commit ceiling" in markdown and "2.00 ms (fdatasync on disk)" in markdown
    assert [flushes.storage for flushes in report.flushes] == ["disk", "other"]
    (commits,) = report.flushes[0].figures
    assert commits.kind == "commits"
    assert commits.latency_curve[0].quantile == 0 and commits.latency_curve[-1].quantile == 1
    assert {point.latency_ns for point in commits.latency_curve} == {2_000_000}


def test_where_nothing_was_probed_no_column_is_shown():
    analysis = analyse(BUNDLE)
    assert "ceiling" not in render_terminal(build_report(BUNDLE, analysis), width=200, color=False).splitlines()[0]
    assert all(
        "was not probed" in (variant.ceiling.unavailable or "") for variant in analysis.variants if variant.ceiling
    )
