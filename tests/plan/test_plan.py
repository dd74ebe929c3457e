"""Variants, order, needs and fit: pure, so tested without a machine."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plinth.model.errors import MissingCapability
from plinth.model.experiment import Experiment
from plinth.model.facts import HostFacts
from plinth.model.plan import ScriptText
from plinth.plan import Place, Surroundings, build_plan, expand, scale_to_fit
from plinth.plan.needs import setting_bytes
from plinth.plan.order import order_trials

GIB = 2**30


def experiment(**changes):
    document = {
        "spec": 1,
        "name": "x",
        "question": "?",
        "storage": {"disk": {"kind": "directory"}, "memory": {"kind": "tmpfs", "size": "2GiB"}},
        "dataset": {"kind": "tpcb", "scale": 10},
        "workload": {"builtin": "tpcb-like"},
        "matrix": {"storage": ["disk", "memory"]},
        **changes,
    }
    return Experiment.model_validate(document, by_alias=True, by_name=False)


def scripts(workload):
    return (ScriptText(name=workload.builtin or workload.script, source="SELECT 1;"),)


def plan_of(e, available_bytes=100 * GIB, memory_bytes=16 * GIB):
    variants, keys = expand(e, scripts)
    host = HostFacts(
        cores=2,
        memory_total_bytes=memory_bytes,
        memory_available_bytes=memory_bytes,
        is_root=True,
        can_mount=True,
        kernel="test",
        os="test",
        cpu_model="test",
    )
    surroundings = Surroundings(
        run_id="RUN",
        host=host,
        places={"disk": Place("1", "/", available_bytes), "memory": Place("memory", "memory", memory_bytes)},
        installations={},
        dataset_bytes=lambda dataset: dataset.scale * 16_000_000,
        dataset_load_s=lambda dataset: 1.0,
        provision_steps=lambda clusters: [],
        trial_steps=lambda trial, variant, cluster: [],
        teardown_steps=lambda clusters: [],
    )
    return build_plan(e, variants, keys, (), surroundings)


def test_every_combination_is_a_variant_and_the_baseline_has_a_twin():
    variants, _ = expand(experiment(matrix={"storage": ["disk", "memory"], "workload.clients": [1, 16]}), scripts)
    assert [v.id for v in variants] == [
        "disk-1-clients",
        "disk-16-clients",
        "memory-1-clients",
        "memory-16-clients",
        "disk-1-clients-aa",
    ]
    assert [v.id for v in variants if v.is_baseline] == ["disk-1-clients"]
    assert variants[-1].is_aa_twin
    assert variants[1].workload.clients == 16
    assert variants[1].label == "disk, 16 clients"


def test_variants_share_a_cluster_unless_it_must_be_made_differently():
    matrix = {"storage": ["disk"], "server.settings.fsync": [True, False], "dataset.scale": [1, 2]}
    variants, clusters = expand(experiment(matrix=matrix), scripts)
    assert len(clusters) == 2
    assert [v.label for v in variants][:2] == ["disk, fsync=on, scale 1", "disk, fsync=on, scale 2"]
    assert {v.settings["fsync"] for v in variants} == {True, False}


def test_the_baseline_can_be_chosen():
    variants, _ = expand(experiment(measure={"baseline": {"storage": "memory"}}), scripts)
    assert [v.id for v in variants if v.is_baseline] == ["memory"]
    assert [v.id for v in variants if v.is_aa_twin] == ["memory-aa"]


def test_without_a_matrix_there_is_one_variant():
    variants, _ = expand(experiment(matrix={}, measure={"aa": False}), scripts)
    assert [v.id for v in variants] == ["disk"]
    assert variants[0].is_baseline


def test_many_clients_get_room_in_every_variant_alike():
    variants, _ = expand(experiment(matrix={"workload.clients": [1, 500]}), scripts)
    assert {v.settings["max_connections"] for v in variants} == {520}
    few, _ = expand(experiment(), scripts)
    assert all("max_connections" not in v.settings for v in few)


def test_labels_that_look_alike_get_ids_of_their_own():
    variants, _ = expand(experiment(matrix={"server.settings.search_path": ["a b", "a-b", "a_b"]}), scripts)
    assert len({v.id for v in variants}) == len(variants)


@given(st.integers(1, 8), st.integers(1, 6), st.integers(0, 2**63 - 1))
def test_blocks_hold_every_variant_once_and_the_order_follows_the_seed(variant_count, repeats, seed):
    matrix = {"workload.clients": list(range(1, variant_count + 1))}
    e = experiment(matrix=matrix, measure={"repeats": repeats, "seed": seed})
    variants, _ = expand(e, scripts)
    trials = order_trials(variants, e.measure)
    assert trials == order_trials(variants, e.measure)
    assert [t.number for t in trials] == list(range(1, len(trials) + 1))
    for block in range(1, repeats + 1):
        inside = [t for t in trials if t.block == block]
        assert Counter(t.variant for t in inside) == Counter(v.id for v in variants)
        assert len({t.seed for t in inside}) == 1


def test_another_seed_gives_another_order():
    orders = set()
    for seed in range(5):
        e = experiment(measure={"repeats": 6, "seed": seed})
        variants, _ = expand(e, scripts)
        orders.add(tuple(t.variant for t in order_trials(variants, e.measure)))
    assert len(orders) == 5


def test_sequential_order_runs_variant_after_variant():
    e = experiment(measure={"order": "sequential", "repeats": 2})
    variants, _ = expand(e, scripts)
    assert [t.variant for t in order_trials(variants, e.measure)] == ["disk"] * 2 + ["memory"] * 2 + ["disk-aa"] * 2


def test_the_plan_is_deterministic():
    assert plan_of(experiment()).model_dump_json() == plan_of(experiment()).model_dump_json()


def test_needs_are_held_against_what_is_there():
    plan = plan_of(experiment(dataset={"kind": "tpcb", "scale": 100}), available_bytes=1 * GIB)
    met = {need.what: need.met for need in plan.needs}
    assert met == {
        "size of storage memory": False,
        "space for 1-disk": False,
        "memory for shared_buffers and tmpfs": True,
    }


def test_scale_to_fit_halves_until_all_needs_are_met():
    e = experiment(dataset={"kind": "tpcb", "scale": 1000})
    cut, overrides = scale_to_fit(e, lambda x: plan_of(x))
    assert cut.dataset.scale < 100
    assert all(need.met for need in plan_of(cut).needs)
    assert overrides == (f"dataset.scale={cut.dataset.scale}",)


def test_scale_to_fit_cuts_levels_and_keeps_those_that_fit():
    e = experiment(matrix={"storage": ["disk"], "dataset.scale": [1, 1_000_000]})
    cut, overrides = scale_to_fit(e, lambda x: plan_of(x, available_bytes=20 * GIB))
    assert overrides == (f"dataset.scale={cut.matrix['dataset.scale']}",)
    assert cut.matrix["dataset.scale"][0] == 1
    assert 1 < cut.matrix["dataset.scale"][1] < 1_000_000


def test_scale_to_fit_leaves_alone_what_fits_and_gives_up_on_what_cannot():
    e = experiment()
    assert scale_to_fit(e, plan_of) == (e, ())
    with pytest.raises(MissingCapability):
        scale_to_fit(e, lambda x: plan_of(x, available_bytes=2**20))


@pytest.mark.parametrize(
    ("value", "unit_bytes", "expected"),
    [
        ("1GB", 1, GIB),
        ("128MB", 1, 128 * 2**20),
        (16384, 8192, 128 * 2**20),
        ("16384", 8192, 128 * 2**20),
        ("-1", 1, None),
    ],
)
def test_sizes_of_settings(value, unit_bytes, expected):
    assert setting_bytes(value, unit_bytes) == expected


def test_few_repeats_and_no_twin_are_warned_of():
    plan = plan_of(experiment(measure={"repeats": 2, "aa": False, "order": "sequential", "warmup": 0}))
    assert len(plan.warnings) == 4
