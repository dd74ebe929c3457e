"""What a commit that waits for standbys should take: from the commit without, the link, and the probe of the standby's storage."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from analyse_bundles import histogram, storage_facts, sweep
from plinth.analyse import analyse
from plinth.analyse.commit_queue import Clients, Remote, commit_median_ns, flush_behind
from plinth.model.commit_model import CommitModel
from plinth.model.contents import BundleContents
from plinth.model.network import LinkCounters, LinkSettings, MeasuredLink, NetworkSpec, TrialNetwork
from plinth.model.plan import PlannedNode
from plinth.model.probe import FsyncCase, FsyncFigure, FsyncProbe, FsyncResult, Plausibility
from plinth.report import build_report, render_markdown, render_terminal
from plinth.report.sections.commits import commit_sentence
from typed import present

NAMES, LEVEL = "server.synchronous_standby_names", "server.settings.synchronous_commit"
LOCAL_NS = 1_000_000
FLUSH_NS = {"disk": 1_000_000, "near": 400_000, "far": 3_000_000}
ROUND_TRIP_NS = {"a": 200_000, "b": 10_000_000}
MEASURED_NS = 2_000_000


def flush_result(group: str, writers: int, took_ns: int) -> FsyncResult:
    case: dict[str, Any] = {
        "group": group,
        "label": "fdatasync",
        "method": "fdatasync",
        "direct": False,
        "block_bytes": 8192,
        "writes": 1,
        "place": "onward",
        "descriptor": "kept",
        "writers": writers,
        "sharing": "alone" if writers == 1 else "group",
    }
    figure = FsyncFigure(
        ops=9,
        flushes=9,
        elapsed_ns=1,
        ops_per_s=1.0,
        round_ops_per_s=(1.0,),
        min_ns=took_ns,
        max_ns=took_ns,
        percentiles_ns={"50": took_ns, "99": None},
        buckets=((took_ns, 9),),
    )
    return FsyncResult(case=FsyncCase.model_validate(case), figure=figure)


def probed(storage: str, took_ns: int) -> FsyncProbe:
    """A flush that 8 writers share takes twice as long."""
    return FsyncProbe(
        path=f"/{storage}",
        facts=storage_facts(storage),
        flush_device="sda",
        duration_s=0.3,
        rounds=3,
        results=(flush_result("preallocated", 1, took_ns), flush_result("group_commit", 8, 2 * took_ns)),
        plausibility=Plausibility(verdict="plausible", reasons=("as they are",)),
    )


def link(standby: str) -> MeasuredLink:
    none = LinkCounters(sent=0, delivered=0, delivered_bytes=0, lost=0, overflowed=0, partitioned=0)
    return MeasuredLink(
        upstream="primary",
        standby=standby,
        to_standby=LinkSettings(),
        to_upstream=LinkSettings(),
        round_trips_ns=(ROUND_TRIP_NS[standby],) * 3,
        sent_to_standby=none,
        sent_to_upstream=none,
    )


def contents(
    names: Sequence[str] = ("", "FIRST 1 (a, b)"),
    levels: Sequence[str] = ("on",),
    *,
    networked: bool = True,
    commit: str = "END;",
    clients: int = 1,
) -> BundleContents:
    """Two standbys: a, which is near in every respect, and b, which is not. Commits take 1 ms, or 2 ms where they wait."""
    made = sweep({NAMES: list(names), LEVEL: list(levels)}, lambda variant, block: 100.0)
    server = made.plan.clusters[0].primary.server
    nodes = [
        PlannedNode(name=name, server=server.model_copy(update={"storage": storage}), upstream="primary")
        for name, storage in (("a", "near"), ("b", "far"))
    ]
    clusters = tuple(one.model_copy(update={"nodes": (*one.nodes, *nodes)}) for one in made.plan.clusters)
    network = NetworkSpec() if networked else None
    variants = tuple(
        one.model_copy(update={"network": network, "workload": one.workload.model_copy(update={"clients": clients})})
        for one in made.plan.variants
    )
    waits = {one.id: bool(one.settings["synchronous_standby_names"]) for one in variants}
    lateness = {"packets": 0, "p50_ns": 0, "p99_ns": 0, "max_ns": 0}
    measured = TrialNetwork.model_validate({"links": (link("a"), link("b")), "lateness": lateness})
    trials = tuple(
        replace(
            one,
            trial=one.trial.model_copy(update={"network": measured if networked else None}),
            histograms=(
                *one.histograms,
                histogram(
                    {MEASURED_NS if waits[one.trial.variant] else LOCAL_NS: 100},
                    scope="statement",
                    statement=5,
                    line=5,
                    text=commit,
                ),
            ),
        )
        for one in made.trials
    )
    plan = made.plan.model_copy(update={"clusters": clusters, "variants": variants})
    return replace(
        made, plan=plan, trials=trials, probes={name: probed(name, took_ns) for name, took_ns in FLUSH_NS.items()}
    )


def models(made: BundleContents) -> list[CommitModel]:
    return list(analyse(made).commit_models)


def test_the_parts_follow_one_another_and_the_error_is_of_what_was_measured() -> None:
    (model,) = models(contents())
    assert (model.variant, model.standby) == ("FIRST 1 (a, b), synchronous_commit=on", "a")
    assert (model.local_ns, model.round_trip_ns, model.flush_ns) == pytest.approx(
        (1_000_000, 200_000, 400_000), rel=1e-3
    )
    assert model.predicted_ns == pytest.approx(1_600_000, rel=0.01), "one client shares no flush"
    assert model.error == pytest.approx(-0.2, abs=0.01)


@pytest.mark.parametrize(
    ("names", "standby"),
    [
        ("ANY 1 (a, b)", "a"),
        ("ANY 1 (b)", "b"),
        ("ANY 2 (a, b)", "b"),
        ("FIRST 1 (b, a)", "b"),
        ("FIRST 2 (a, b)", "b"),
        ("a", "a"),
    ],
)
def test_the_standby_that_decides(names: str, standby: str) -> None:
    (model,) = models(contents(("", names)))
    storage = "near" if standby == "a" else "far"
    assert (model.standby, model.round_trip_ns, model.flush_ns) == (standby, ROUND_TRIP_NS[standby], FLUSH_NS[storage])


def test_what_is_not_waited_for_is_not_in_it() -> None:
    found = models(contents(levels=("on", "remote_write", "local", "off")))
    assert len(found) == 2, "with local and off, commits wait for no standby"
    assert sorted(present(one.flush_ns) for one in found) == [0, 400_000]
    (unconnected,) = models(contents(networked=False))
    assert unconnected.round_trip_ns == 0


def test_a_standby_flushes_alone_and_clients_that_wait_for_it_share_flushes() -> None:
    (model,) = models(contents(clients=8))
    assert model.flush_ns == FLUSH_NS["near"], "of one writer: the probe's eight wait for each other"
    clients = Clients(8, 8e9 / 100 - LOCAL_NS)
    flush_ns = flush_behind(clients, LOCAL_NS)
    assert flush_ns < FLUSH_NS["disk"], "so that nothing is added to the standby's"
    together_ns = commit_median_ns(clients, flush_ns, Remote("on", ROUND_TRIP_NS["a"], FLUSH_NS["near"]))
    assert model.predicted_ns == pytest.approx(together_ns)


def test_a_standby_flushes_as_much_longer_than_its_probe_as_the_primary() -> None:
    made = contents(clients=1)
    probes = {**made.probes, "disk": probed("disk", 400_000)}
    (model,) = models(replace(made, probes=probes))
    assert model.sharing_ns == pytest.approx(600_000, abs=50_000)
    assert model.predicted_ns == pytest.approx(1_000_000 + 200_000 + 1_000_000, rel=0.03)


def test_the_local_commit_may_be_that_of_synchronous_commit_local() -> None:
    found = models(contents(("FIRST 1 (a, b)",), ("on", "local")))
    assert [one.local_ns is not None for one in found] == [True]


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (contents(("FIRST 1 (a, b)",)), "no variant that waits for its local flush only is like it otherwise"),
        (contents(("FIRST 1 (a, b)",), ("on", "off")), "no variant that waits for its local flush only"),
        (contents(commit="SELECT 1;"), "its transactions have no statement END or COMMIT"),
        (replace(contents(), probes={}), "storage near was not probed"),
        (
            replace(contents(), probes={"near": probed("near", 1), "far": probed("far", 1)}),
            "storage disk was not probed",
        ),
    ],
)
def test_without_a_part_its_reason_is_said(made: BundleContents, reason: str) -> None:
    (model,) = models(made)
    assert model.error is None and reason in (model.unavailable or "")
    assert reason in render_terminal(build_report(made, analyse(made)), width=100, color=False).replace("\n", " ")


def test_it_is_in_every_form_and_nowhere_without_standbys() -> None:
    made = contents()
    report = build_report(made, analyse(made))
    shown = render_terminal(report, width=300, color=False)
    assert re.search(r"commit=on: measured 2\.00 ms, predicted 1\.(60|59|61) ms \(-2\d %\): local 1\.00 ms", shown)
    assert "round trip 200 us + flush 400 us (a)\n" in shown, "what one client shares is not shown"
    markdown = render_markdown(report)
    assert "| FIRST 1 (a, b), synchronous_commit=on | 2.00 ms | 1." in markdown
    together = models(made)[0].model_copy(update={"sharing_ns": -500_000.0})
    assert commit_sentence(together).endswith("+ flush 400 us (a) - 500 us (shared flushes)")
    assert "predicted 1.10 ms (-45 %)" in commit_sentence(together)
    alone = sweep({"server.settings.work_mem": ["4MB", "8MB"]}, lambda variant, block: 100.0)
    assert analyse(alone).commit_models == ()
    assert "Commits that wait" not in render_terminal(build_report(alone, analyse(alone)), width=100, color=False)
