"""Sweeps: the order of levels, which variants are compared with which, and what is corrected together."""

import math
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analyse_bundles import server_facts, sweep
from plinth.analyse import analyse
from plinth.model.analysis import Analysis
from plinth.model.factors import design_of
from plinth.model.plan import Variant
from plinth.model.sweep import ScalingCurve
from plinth.plan.variants import expand
from plinth.report import build_report, render_terminal

NOISE = (1.0, 1.03, 0.98, 1.01, 0.96)
TWIN_NOISE = (1.01, 0.99, 1.02, 0.97, 1.0)
STORAGES = {"storage": ["disk", "memory"], "workload.clients": [8, 1, 4]}


def rate(variant: Variant, block: int) -> float:
    """Memory is twice the disk, clients share a drive's flushes, and a select is ten times an update."""
    clients = variant.workload.clients
    kind = 10.0 if variant.workload.builtin == "select-only" else 1.0
    place = 2.0 if variant.levels.get("storage") == "memory" else 1.0
    noise = (TWIN_NOISE if variant.is_aa_twin or place == 2.0 else NOISE)[block - 1]
    return 100 * kind * place * min(clients, 4) * noise


def compared(analysis: Analysis) -> set[tuple[str, str]]:
    labels = {result.id: result.label for result in analysis.variants}
    return {(labels[one.variant], labels[one.baseline]) for one in analysis.comparisons}


def swept(matrix: dict[str, list[Any]], **measure: Any) -> Analysis:
    return analyse(sweep(matrix, rate, **measure))


def test_storages_are_compared_at_each_number_of_clients() -> None:
    analysis = swept(STORAGES)
    assert compared(analysis) == {
        ("memory, 1 client", "disk, 1 client"),
        ("memory, 4 clients", "disk, 4 clients"),
        ("memory, 8 clients", "disk, 8 clients"),
    }
    assert analysis.sweep is not None
    assert [stratum.label for stratum in analysis.sweep.strata] == ["1 client", "4 clients", "8 clients"]
    assert [result.label for result in analysis.variants if result.is_baseline] == [
        "disk, 1 client",
        "disk, 4 clients",
        "disk, 8 clients",
    ]


def test_levels_of_a_number_stand_in_their_order_and_are_not_ranked_by_speed() -> None:
    analysis = swept({"workload.clients": [16, 1, 4, 64]})
    assert [result.label for result in analysis.variants] == ["1 client", "4 clients", "16 clients", "64 clients"]
    assert {result.rank for result in analysis.variants} == {None}
    assert compared(analysis) == {(f"{n} client{'s' * (n > 1)}", "16 clients") for n in (1, 4, 64)}


def test_a_select_is_not_compared_with_an_update() -> None:
    matrix = {"workload.builtin": ["select-only", "tpcb-like"], "workload.active_rows": [1000, 10_000]}
    assert compared(swept(matrix)) == {
        ("select-only, 10,000 active rows", "select-only, 1,000 active rows"),
        ("tpcb-like, 10,000 active rows", "tpcb-like, 1,000 active rows"),
    }
    alone = swept({"workload.builtin": ["select-only", "tpcb-like"]})
    assert compared(alone) == {("tpcb-like", "select-only")}, "where nothing else is varied, that is the question"
    assert alone.sweep is None


def test_what_is_asked_for_is_compared() -> None:
    along_clients = swept(STORAGES, compare="workload.clients", baseline={"workload.clients": 1})
    assert compared(along_clients) == {
        (f"{storage}, {n} clients", f"{storage}, 1 client") for storage in ("disk", "memory") for n in (4, 8)
    }
    both = swept(STORAGES, compare=["storage", "workload.clients"])
    assert len(both.comparisons) == 5
    assert {baseline for _, baseline in compared(both)} == {"disk, 8 clients"}
    assert compared(swept(STORAGES, compare="server.storage")) == compared(swept(STORAGES))


def test_factors_with_names_alone_have_one_baseline() -> None:
    matrix = {"storage": ["disk", "memory"], "server.settings.wal_sync_method": ["fdatasync", "fsync"]}
    analysis = swept(matrix)
    assert len(analysis.comparisons) == 3
    assert {one.baseline for one in analysis.comparisons} == {"disk-wal-sync-method-fdatasync"}
    assert analysis.sweep is None, "there is neither a number nor more than one stratum"


def test_a_factor_that_not_every_variant_has_cannot_be_held_fixed() -> None:
    matrix = {
        "storage": ["slow", "nvme"],
        "storage.slow.physics.flush_latency": ["1ms", "8ms"],
        "server.settings.wal_sync_method": ["fdatasync", "fsync"],
    }
    drive = {"kind": "emulated", "profile": "sata-ssd", "size": "1GiB"}
    contents = sweep({"storage": ["slow", "nvme"]}, rate)
    experiment = contents.plan.experiment.model_validate(
        {
            **contents.plan.experiment.model_dump(by_alias=True),
            "storage": {"slow": drive, "nvme": drive},
            "matrix": matrix,
        }
    )
    variants = expand(experiment, lambda workload, dataset: ()).variants
    design = design_of(contents.plan.model_copy(update={"experiment": experiment, "variants": tuple(variants)}))
    assert [len(stratum.variants) for stratum in design.strata] == [6]
    (physics,) = [factor for factor in design.factors if factor.name.endswith("flush_latency")]
    assert (physics.unit, [one.value for one in physics.levels]) == ("ns", [1e6, 8e6])


@pytest.mark.parametrize(
    ("factor", "levels", "unit", "texts"),
    [
        ("workload.clients", [16, 980, 4], "count", ["4", "16", "980"]),
        ("workload.rate", [1500.0, 200.0], "count", ["200", "1,500"]),
        ("server.settings.shared_buffers", ["1GB", "256MB"], "bytes", ["256MB", "1GB"]),
        ("server.settings.checkpoint_timeout", ["5min", "30s"], "ns", ["30s", "5min"]),
        ("server.settings.commit_delay", [100, 0], "count", ["0", "100"]),
        ("server.settings.wal_compression", ["off", "pglz"], None, ["off", "pglz"]),
        ("server.settings.fsync", [True, False], None, ["on", "off"]),
        ("server.version", [18, 17], None, ["18", "17"]),
    ],
)
def test_numbers_are_distinguished_from_names(
    factor: str, levels: list[Any], unit: str | None, texts: list[str]
) -> None:
    (found,) = design_of(sweep({factor: levels}, rate).plan).factors
    assert (found.unit, [one.text for one in found.levels]) == (unit, texts)
    assert all((one.value is None) == (unit is None) for one in found.levels)


def test_all_strata_are_corrected_together() -> None:
    """One true difference that is clear alone, among as many comparisons as there are clients."""

    def close(variant: Variant, block: int) -> float:
        noise = (1.0, 1.04, 0.97, 1.02, 0.95) if variant.levels["storage"] == "disk" else (1.08, 1.05, 1.06, 1.03, 1.04)
        return 1000 * noise[block - 1] * (1.0 if variant.workload.clients == 1 else 3.0)

    alone = analyse(sweep({"storage": ["disk", "memory"], "workload.clients": [1]}, close)).comparisons[0]
    clients = list(range(1, 9))
    among = analyse(sweep({"storage": ["disk", "memory"], "workload.clients": clients}, close))
    assert alone.ratio_p_value is not None and among.comparisons[0].ratio_p_value is not None
    assert among.comparisons[0].ratio == alone.ratio
    assert among.comparisons[0].ratio_p_value == pytest.approx(min(1.0, 8 * alone.ratio_p_value))


def test_the_a_a_pair_is_of_one_variant_and_listed_next_to_it() -> None:
    analysis = swept(STORAGES, aa=True)
    labels = [result.label for result in analysis.variants]
    assert labels.index("disk, 8 clients (A/A)") == labels.index("disk, 8 clients") + 1
    assert analysis.noise is not None and not analysis.noise.alarm
    assert all("(A/A)" not in label for pair in compared(analysis) for label in pair)


def test_a_variant_alone_in_its_stratum_is_said_not_to_be_compared() -> None:
    contents = sweep(STORAGES, rate)
    without = tuple(variant for variant in contents.plan.variants if variant.id != "memory-4-clients")
    plan = contents.plan.model_copy(update={"variants": without})
    trials = tuple(one for one in contents.trials if one.trial.variant != "memory-4-clients")
    analysis = analyse(replace(contents, plan=plan, trials=trials))
    said = "disk, 4 clients is not compared: no other variant differs from it only in storage"
    assert said in analysis.warnings


def test_an_unsafe_storage_that_is_first_everywhere_is_one_warning() -> None:
    (said,) = [warning for warning in swept(STORAGES).warnings if "ranks first" in warning]
    assert said.startswith("memory, 1 client ranks first (and so do 2 other variants at other levels), but ")


def noise(variant: Variant, block: int, cv: float = 0.01) -> float:
    """Lognormal, another one for each trial, and always the same."""
    return math.exp(cv * np.random.default_rng(zlib.crc32(f"{variant.id} {block}".encode())).standard_normal())


def clients_and_storages(variant: Variant, block: int) -> float:
    """Disk is level from 16 clients on; memory is three times the disk from 4 clients on, and level from 8."""
    clients, in_memory = variant.workload.clients, variant.levels["storage"] == "memory"
    plateau = 8 if in_memory else 16
    return (3 if in_memory and clients >= 4 else 1) * 100 * min(clients, plateau) * noise(variant, block)


def test_the_answer_speaks_of_the_sweep() -> None:
    matrix = {"storage": ["disk", "memory"], "workload.clients": [1, 2, 4, 8, 16, 32]}
    analysis = analyse(sweep(matrix, clients_and_storages))
    wins, disk, memory, safety = analysis.answer.removesuffix(".").split(". ")
    assert wins.startswith("Memory wins from 4 clients on: 3.0")
    assert wins.endswith("; it shows no difference up to 2 clients")
    assert disk.startswith("Disk: throughput rises to 1") and disk.endswith("at 16 clients; above, nothing is gained")
    assert memory.startswith("Memory: throughput rises to 2") and memory.endswith(
        "at 8 clients; above, nothing is gained"
    )
    assert safety == "Memory can lose acknowledged commits in a power failure"
    assert "(95 % CI " in wins and "(95 % CI " in disk
    assert analysis.sweep is not None
    assert [(curve.label, curve.gains_until) for curve in analysis.sweep.curves] == [
        ("disk", "16 clients"),
        ("memory", "8 clients"),
    ]


def test_a_working_set_that_outgrows_memory_is_a_fall() -> None:
    def falls(variant: Variant, block: int) -> float:
        rows = variant.workload.active_rows or 0
        select = variant.workload.builtin == "select-only"
        fall = min(1, 100_000 / rows) ** (0.7 if select else 0.3)
        return (50_000 if select else 5000) * fall * noise(variant, block)

    matrix = {
        "workload.builtin": ["select-only", "tpcb-like"],
        "workload.active_rows": [10_000, 30_000, 100_000, 1_000_000],
    }
    select, update = analyse(sweep(matrix, falls)).answer.removesuffix(".").split(". ")
    assert select.startswith("select-only: throughput falls above 100,000 active rows, to ")
    assert update.startswith("tpcb-like: throughput falls above 100,000 active rows, to ")


def test_a_setting_without_effect_is_said_to_have_none() -> None:
    matrix = {"server.settings.shared_buffers": ["1MB", "2MB", "4MB"]}
    analysis = analyse(sweep(matrix, lambda variant, block: 1000 * noise(variant, block)))
    text = "shared_buffers: no difference of more than 5 % from shared_buffers=1MB to shared_buffers=4MB."
    assert analysis.answer.startswith(text)


def test_two_trials_are_inconclusive_along_a_sweep() -> None:
    analysis = swept(STORAGES, repeats=2)
    assert analysis.answer.startswith("Inconclusive from 1 client to 8 clients: memory ran at ")
    assert "Disk: the effect of clients is inconclusive: 8 clients ran at" in analysis.answer


def test_many_that_are_inconclusive_share_a_sentence() -> None:
    matrix = {
        "storage": ["disk", "memory"],
        "server.settings.synchronous_commit": ["on", "off"],
        "workload.clients": [1, 2, 4, 8],
    }
    answer = analyse(sweep(matrix, lambda variant, block: 1000 * noise(variant, block), repeats=2)).answer
    together, counted, along, *_ = answer.split(". ")
    assert counted == "All 12 comparisons are inconclusive (not enough trials)"
    assert together.startswith("Inconclusive at every level: ") and together.count("; ") == 2
    assert together.count(" ran at ") == 3 and "x disk, synchronous_commit=on" in together
    assert along == (
        "The effect of clients is inconclusive: disk, synchronous_commit=on; disk, synchronous_commit=off; "
        "memory, synchronous_commit=on; 1 more"
    )


def test_the_baseline_and_what_a_level_alone_decides_are_said_once() -> None:
    matrix = {
        "storage": ["ssd", "memory"],
        "server.settings.synchronous_commit": ["on", "off"],
        "workload.clients": [1, 2, 4],
    }

    def of_place(variant: Variant, block: int) -> float:
        is_slow = variant.levels["storage"] == "ssd" and variant.settings["synchronous_commit"] == "on"
        return 100 * (1 if is_slow else 20 / variant.workload.clients) * noise(variant, block)

    contents = sweep(matrix, of_place)
    off = server_facts(synchronous_commit="off")
    servers = {
        one.id: off if one.settings["synchronous_commit"] == "off" else contents.servers[one.id]
        for one in contents.plan.variants
    }
    contents = replace(contents, servers=servers)
    first, *others = analyse(contents).answer.removesuffix(".").split(". ")
    assert first.count("x ssd, synchronous_commit=on (95 % CI ") == 1
    assert re.search(r" at 1 client, \S+x \(95 % CI [^)]+\) at 4 clients$", first)
    assert others[-2:] == [
        "Memory can lose acknowledged commits in a power failure",
        "ssd, synchronous_commit=off may lose recent commits in a power failure",
    ]


def test_curves_without_a_knee_for_the_same_reason_share_a_line() -> None:
    matrix = {"storage": ["disk", "memory"], "workload.clients": [1, 2, 4]}
    contents = sweep(matrix, lambda variant, block: 1000 * noise(variant, block))
    text = " ".join(render_terminal(build_report(contents, analyse(contents)), width=80, color=False).split())
    assert "Scaling: all 2 curves: knee n/a: a knee needs at least 4 levels; there are 3" in text
    assert text.count("a knee needs") == 1
    assert "Effects of factors: " in text


def test_a_fit_is_of_clients_in_a_closed_loop_only() -> None:

    def only_curve(factor: str, tps: Callable[[int], float]) -> ScalingCurve:
        found = analyse(
            sweep({factor: [1, 2, 4, 8]}, lambda one, block: tps(int(str(one.levels[factor]))) * noise(one, block))
        )
        assert found.sweep is not None
        (curve,) = found.sweep.curves
        return curve

    clients = only_curve("workload.clients", lambda n: 100 * n / (1 + 0.1 * (n - 1)))
    assert clients.fit is not None and clients.fit.holds and clients.fit_missing is None
    rows = only_curve("workload.active_rows", lambda n: 100)
    assert (rows.fit, rows.fit_missing) == (None, None)


def test_sixty_levels_are_a_curve_that_is_not_analysed() -> None:
    (curve,) = (swept({"workload.clients": list(range(1, 61))}, repeats=3).sweep or pytest.fail("no sweep")).curves
    assert len(curve.points) == 60
    assert curve.knee_missing == "not looked for: 60 levels are more than 20"
