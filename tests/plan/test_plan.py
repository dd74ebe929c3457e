"""Variants, order, needs and fit: pure, so tested without a machine."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan_inputs import GIB, experiment, inputs, plan_of, scripts
from plinth.model.dataset import TpcbDataset
from plinth.model.errors import MissingCapability
from plinth.model.facts import Installation
from plinth.model.level import level_label
from plinth.model.server_spec import NEWEST_VERSION
from plinth.plan import StoragePlace, build_plan, expand, scale_to_fit
from plinth.plan.build import warnings_of
from plinth.plan.fit import fits
from plinth.plan.order import order_trials
from plinth.plan.sizes import setting_bytes
from typed import of


def test_every_combination_is_a_variant_and_the_baseline_has_a_twin():
    variants, *_ = expand(experiment(matrix={"storage": ["disk", "memory"], "workload.clients": [1, 16]}), scripts)
    assert [v.id for v in variants] == [
        "disk-1-client",
        "disk-16-clients",
        "memory-1-client",
        "memory-16-clients",
        "disk-1-client-aa",
    ]
    assert [v.id for v in variants if v.is_baseline] == ["disk-1-client"]
    assert variants[-1].is_aa_twin
    assert variants[1].workload.clients == 16
    assert variants[1].label == "disk, 16 clients"


def test_variants_share_a_cluster_unless_it_must_be_made_differently():
    matrix = {"storage": ["disk"], "server.settings.fsync": [True, False], "dataset.scale": [1, 2]}
    variants, clusters, _ = expand(experiment(matrix=matrix), scripts)
    assert len(clusters) == 2
    assert [v.label for v in variants][:2] == ["disk, fsync=on, scale 1", "disk, fsync=on, scale 2"]
    assert {v.settings["fsync"] for v in variants} == {True, False}


def test_the_baseline_can_be_chosen():
    variants, *_ = expand(experiment(measure={"baseline": {"storage": "memory"}}), scripts)
    assert [v.id for v in variants if v.is_baseline] == ["memory"]
    assert [v.id for v in variants if v.is_aa_twin] == ["memory-aa"]


def test_without_a_matrix_there_is_one_variant():
    variants, *_ = expand(experiment(matrix={}, measure={"aa": False}), scripts)
    assert [v.id for v in variants] == ["disk"]
    assert variants[0].is_baseline


def test_a_server_that_is_newer_than_known_has_a_warning():
    def warned(major):
        server = Installation(bindir="/x", version=f"{major}.1", major=major, origin="test")
        e = experiment(server={"version": major})
        expanded = expand(e, scripts)
        known = replace(inputs(), installations={cluster.id: server for cluster in expanded.clusters})
        return [one for one in build_plan(e, expanded, (), known).warnings if "newer" in one]

    assert warned(NEWEST_VERSION) == []
    (said,) = warned(NEWEST_VERSION + 1)
    assert f"PostgreSQL {NEWEST_VERSION + 1}.1" in said


def test_options_of_sessions_make_variants_and_no_further_cluster():
    e = experiment(
        storage={},
        server={"connection": "host=db1", "connection_options": {"jit": False}},
        matrix={"server.connection_options.synchronous_commit": ["on", "off"]},
    )
    variants, clusters, _ = expand(e, scripts)
    assert len(clusters) == 1
    assert [v.connection_options for v in variants][:2] == [
        {"jit": False, "synchronous_commit": "on"},
        {"jit": False, "synchronous_commit": "off"},
    ]
    assert [v.label for v in variants][:2] == ["synchronous_commit=on", "synchronous_commit=off"]


def test_many_clients_get_room_in_every_variant_alike():
    variants, *_ = expand(experiment(matrix={"workload.clients": [1, 500]}), scripts)
    assert {v.settings["max_connections"] for v in variants} == {520}
    few, *_ = expand(experiment(), scripts)
    assert all("max_connections" not in v.settings for v in few)


def test_an_empty_level_is_left_out_of_the_label_of_a_variant_and_named_where_it_stands_alone():
    matrix = {
        "server.synchronous_standby_names": ["", "FIRST 1 (a)"],
        "server.settings.synchronous_commit": ["on", "off"],
    }
    variants, *_ = expand(experiment(matrix=matrix, server={"standby": {"a": {"storage": "disk"}}}), scripts)
    assert [v.label for v in variants if not v.is_aa_twin] == [
        "synchronous_commit=on",
        "synchronous_commit=off",
        "FIRST 1 (a), synchronous_commit=on",
        "FIRST 1 (a), synchronous_commit=off",
    ]
    assert level_label("server.synchronous_standby_names", "") == "no synchronous standby names"


def test_labels_that_look_alike_get_ids_of_their_own():
    variants, *_ = expand(experiment(matrix={"server.settings.search_path": ["a b", "a-b", "a_b"]}), scripts)
    assert len({v.id for v in variants}) == len(variants)


@given(st.integers(1, 8), st.integers(1, 6), st.integers(0, 2**63 - 1))
def test_blocks_hold_every_variant_once_and_the_order_follows_the_seed(variant_count, repeats, seed):
    matrix = {"workload.clients": list(range(1, variant_count + 1))}
    e = experiment(matrix=matrix, measure={"repeats": repeats, "seed": seed})
    variants, *_ = expand(e, scripts)
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
        variants, *_ = expand(e, scripts)
        orders.add(tuple(t.variant for t in order_trials(variants, e.measure)))
    assert len(orders) == 5


def test_sequential_order_runs_variant_after_variant():
    e = experiment(measure={"order": "sequential", "repeats": 2})
    variants, *_ = expand(e, scripts)
    assert [t.variant for t in order_trials(variants, e.measure)] == ["disk"] * 2 + ["memory"] * 2 + ["disk-aa"] * 2


def test_the_plan_is_deterministic():
    assert plan_of(experiment()).model_dump_json() == plan_of(experiment()).model_dump_json()


def test_needs_are_held_against_what_is_there():
    plan = plan_of(experiment(dataset={"kind": "tpcb", "scale": 100}), available_bytes=1 * GIB)
    met = {need.what: need.met for need in plan.needs}
    assert met == {
        "capacity of storage memory": False,
        "space for 1-disk": False,
        "memory for shared_buffers and storage memory": True,
    }


@given(st.integers(2, 40), st.integers(1, 100_000))
def test_scale_to_fit_finds_the_largest_that_fits(space_gib, scale):
    def plan(x):
        return plan_of(x, available_bytes=space_gib * GIB)

    e = experiment(dataset={"kind": "tpcb", "scale": scale}, matrix={"storage": ["disk"]})
    cut, overrides = scale_to_fit(e, plan)
    assert fits(plan(cut))
    assert all(need.met for need in plan(cut).needs)
    if cut == e:
        assert overrides == ()
    else:
        dataset = of(TpcbDataset, cut.dataset)
        assert overrides == (f"dataset.scale={dataset.scale}",)
        larger = dataset.model_copy(update={"scale": dataset.scale + 1})
        assert not fits(plan(cut.model_copy(update={"dataset": larger})))


def test_scale_to_fit_cuts_levels_and_keeps_those_that_fit():
    e = experiment(matrix={"storage": ["disk"], "dataset.scale": [1, 1_000_000]})
    cut, overrides = scale_to_fit(e, lambda x: plan_of(x, available_bytes=20 * GIB))
    assert overrides == (f"dataset.scale={cut.matrix['dataset.scale']}",)
    assert cut.matrix["dataset.scale"][0] == 1
    assert 1 < of(int, cut.matrix["dataset.scale"][1]) < 1_000_000


def test_scale_to_fit_cuts_rows_where_they_are_the_size():
    e = experiment(
        dataset={"kind": "numbers"},
        workload={"builtin": "numbers-select"},
        matrix={"storage": ["disk"], "dataset.rows": [1000, 10**12]},
    )
    cut, overrides = scale_to_fit(e, lambda x: plan_of(x, available_bytes=20 * GIB))
    small, large = cut.matrix["dataset.rows"]
    assert (small, overrides) == (1000, (f"dataset.rows=[1000, {large}]",))
    assert 10**8 < of(int, large) < 10**9
    assert [v.label for v in plan_of(cut, available_bytes=20 * GIB).variants] == [
        "disk, 1,000 rows",
        f"disk, {large:,} rows",
        "disk, 1,000 rows (A/A)",
    ]


def test_scale_to_fit_cuts_the_baseline_too():
    e = experiment(
        matrix={"storage": ["disk"], "dataset.scale": [1, 1_000_000]},
        measure={"baseline": {"dataset.scale": 1_000_000}},
    )
    cut, _ = scale_to_fit(e, lambda x: plan_of(x, available_bytes=20 * GIB))
    (baseline,) = [v for v in plan_of(cut, available_bytes=20 * GIB).variants if v.is_baseline]
    assert baseline.levels["dataset.scale"] == max(of(int, level) for level in cut.matrix["dataset.scale"])


def test_scale_to_fit_leaves_alone_what_fits_and_gives_up_on_what_cannot():
    e = experiment()
    assert scale_to_fit(e, plan_of) == (e, ())
    with pytest.raises(MissingCapability) as refused:
        scale_to_fit(e, lambda x: plan_of(x, available_bytes=2**20))
    (unmet,) = refused.value.details
    assert unmet.startswith("space for 1-disk (/): needs ") and unmet.endswith("there is: 1.0 MiB")


SPLIT = {"disk": {"kind": "directory"}, "fast": {"kind": "tmpfs", "size": "4GiB"}}
PLACES = {"disk": StoragePlace("1", "/", 100 * GIB), "fast": StoragePlace("memory", "memory", 16 * GIB)}


def test_a_storage_for_the_wal_as_a_factor():
    e = experiment(storage=SPLIT, matrix={"server.wal_storage": ["disk", "fast"]})
    plan = plan_of(e, places=PLACES)
    inside, apart = plan.clusters
    assert [v.label for v in plan.variants] == ["WAL on disk", "WAL on fast", "WAL on disk (A/A)"]
    assert (inside.primary.roles, apart.primary.roles) == ({"data": "disk"}, {"data": "disk", "WAL": "fast"})
    assert inside.data_bytes == apart.data_bytes == inside.bytes_by_storage["disk"]
    assert apart.bytes_by_storage["disk"] + apart.bytes_by_storage["fast"] == apart.data_bytes
    assert apart.bytes_by_storage["fast"] > 16 * 2**20


@pytest.mark.parametrize(
    ("dataset", "room", "met"),
    [({}, 1.10, False), ({}, 1.30, True), ({"unlogged": True}, 1.30, False), ({"unlogged": True}, 1.36, True)],
)
def test_what_building_keys_and_logging_take_for_a_while_is_needed(dataset, room, met):
    """Measured with PostgreSQL 15: a sort that spills takes 20 bytes for each key of 8; 42 + 21 GB come to 63."""
    numbers = {"kind": "numbers", "rows": 10**9, **dataset}
    e = experiment(dataset=numbers, storage={"disk": {"kind": "directory"}}, matrix={"storage": ["disk"]})
    (need,) = (n for n in plan_of(e, available_bytes=int(room * 67e9) + 2 * GIB).needs if n.where == "/")
    assert need.met is met
    if "unlogged" in dataset:
        return  # two copies of the table are more than any sort
    parted = experiment(dataset=numbers | {"partitions": 20}, storage=e.storage, matrix=e.matrix)
    assert plan_of(parted).clusters[0].data_bytes < plan_of(e).clusters[0].data_bytes


def test_where_the_wal_is_does_not_part_variants_that_agree():
    """Its own storage is where a data directory has its WAL anyway."""
    e = experiment(storage=SPLIT, server={"wal_storage": "fast"}, matrix={"storage": ["disk", "fast"]})
    apart, inside = plan_of(e, places=PLACES).clusters
    assert apart.primary.roles == {"data": "disk", "WAL": "fast"}
    assert inside.primary.roles == {"data": "fast"}


def test_tables_and_keys_are_counted_on_their_storages():
    e = experiment(
        storage=SPLIT,
        server={"tablespaces": {"bulk": "fast"}},
        dataset={"kind": "tpcb", "scale": 100},
        matrix={"dataset.tablespace": ["pg_default", "bulk"], "dataset.index_tablespace": ["pg_default", "bulk"]},
    )
    sizes = {
        (dataset.tablespace, dataset.index_tablespace): cluster.bytes_by_storage
        for cluster in plan_of(e, places=PLACES).clusters
        for dataset in [of(TpcbDataset, cluster.dataset)]
    }
    nothing, keys, tables, all_of_it = (
        sizes[of]["fast"]
        for of in (("pg_default", "pg_default"), ("pg_default", "bulk"), ("bulk", "pg_default"), ("bulk", "bulk"))
    )
    assert nothing == 0
    assert (keys, tables) == (round(100 * 2_000_000 * 1.1), round(100 * 14_000_000 * 1.1))
    assert all_of_it == keys + tables
    assert len({sum(taken.values()) for taken in sizes.values()}) == 1


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


def test_paced_clients_that_are_not_ten_for_each_warehouse_are_warned_of_once():
    def warned(clients, **matrix):
        e = experiment(
            dataset={"kind": "tpcc", "warehouses": 2},
            workload={"builtin": "tpcc", "pacing": "spec", "clients": clients},
            matrix={"storage": ["disk", "memory"], **matrix},
        )
        variants, *_ = expand(e, scripts)
        return [warning for warning in warnings_of(e, variants, 0) if "terminals" in warning]

    assert warned(20) == []
    (warning,) = warned(16)
    assert 'pacing = "spec" with 16 clients for 2 warehouses' in warning
    (warning,) = warned(20, **{"dataset.warehouses": [1, 2]})
    assert "20 clients for 1 warehouse:" in warning


NESTED = {
    "memory": {"kind": "tmpfs", "size": "4GiB"},
    "xfs": {"kind": "loop", "size": "8GiB", "on": "memory", "filesystem": "xfs"},
    "disk": {"kind": "loop", "size": "2GiB"},
}


def test_a_storage_takes_its_space_from_the_one_that_it_is_built_on():
    places = {
        "memory": StoragePlace("memory", "memory", 16 * GIB, usable_bytes=4 * GIB),
        "xfs": StoragePlace(on="memory", takes_bytes=8 * GIB, usable_bytes=7 * GIB),
        "disk": StoragePlace("1", "/", 1 * GIB, takes_bytes=2 * GIB, usable_bytes=GIB),
    }
    e = experiment(storage=NESTED, dataset={"kind": "tpcb", "scale": 1}, matrix={"storage": ["xfs", "disk"]})
    needs = {need.what: need for need in plan_of(e, places=places).needs}
    assert {what: (need.needed_bytes, need.met, need.storages) for what, need in needs.items()} == {
        "capacity of storage memory": (8 * GIB, False, ("memory",)),
        "capacity of storage xfs": (needs["capacity of storage xfs"].needed_bytes, True, ("xfs",)),
        "capacity of storage disk": (needs["capacity of storage xfs"].needed_bytes, True, ("disk",)),
        "space for storage disk": (2 * GIB, False, ("disk",)),
        "memory for shared_buffers and storage memory": (8 * GIB + 128 * 2**20, True, ()),
    }


def test_trials_that_only_read_take_no_space_and_write_nothing():
    def planned(duration, **workload):
        e = experiment(
            storage={"s": {"kind": "tmpfs", "size": "4GiB"}},
            dataset={"kind": "numbers", "rows": 100_000},
            workload=workload,
            matrix={},
            measure={"duration": duration},
        )
        plan = plan_of(e, places={"s": StoragePlace("memory", "memory", 16 * GIB, usable_bytes=4 * GIB)})
        return plan.needs[0].needed_bytes, plan.estimated_written_bytes

    assert planned("5min", builtin="numbers-select") == planned("5s", builtin="numbers-select")
    assert planned("5min", builtin="numbers-update") > planned("5s", builtin="numbers-update")
    assert planned("5s", builtin="numbers-update") > planned("5s", builtin="numbers-select")


@pytest.mark.parametrize(("ballast_bytes", "met"), [(0, True), (GIB, True), (7 * GIB // 2, False)])
def test_what_is_stored_must_fit_next_to_the_ballast_which_is_written_too(ballast_bytes, met):
    def plan(ballast_bytes):
        place = StoragePlace("memory", "memory", 16 * GIB, usable_bytes=4 * GIB, ballast_bytes=ballast_bytes)
        e = experiment(
            storage={"s": {"kind": "tmpfs", "size": "4GiB"}}, dataset={"kind": "tpcb", "scale": 20}, matrix={}
        )
        return plan_of(e, places={"s": place})

    room, memory = plan(ballast_bytes).needs
    _, memory_without = plan(0).needs
    assert (room.met, room.storages, room.available_bytes) == (met, ("s",), 4 * GIB - ballast_bytes)
    assert ("of ballast" in room.what) is (ballast_bytes > 0)
    assert memory.needed_bytes == memory_without.needed_bytes + ballast_bytes
    assert plan(ballast_bytes).estimated_written_bytes == plan(0).estimated_written_bytes + ballast_bytes


@pytest.mark.parametrize(("clients", "met"), [(1_000, True), (100_000, False)])
def test_many_connections_take_memory(clients, met):
    (need,) = [
        need
        for need in plan_of(experiment(workload={"builtin": "tpcb-like", "clients": clients})).needs
        if need.where == "memory"
    ]
    assert need.what == f"memory for shared_buffers and {clients:,} connections and storage memory"
    assert need.needed_bytes == plan_of(experiment()).needs[-1].needed_bytes + clients * 2 * 2**20
    assert need.met is met


def test_members_take_space_and_hold_no_data_themselves():
    places = {
        "vdev": StoragePlace("1", "/", 100 * GIB, takes_bytes=4 * GIB),
        "tank": StoragePlace(usable_bytes=3 * GIB),
    }
    storages = {"vdev": {"kind": "file", "size": "1GiB", "count": 4}, "tank": {"kind": "zfs", "data": ["vdev"]}}
    e = experiment(storage=storages, server={"storage": "tank"}, matrix={})
    variants, *_ = expand(e, scripts)
    assert [v.label for v in variants] == ["tank", "tank (A/A)"]
    needs = plan_of(e, places=places).needs
    assert [need.what for need in needs] == [
        "capacity of storage tank",
        "space for storage vdev",
        "memory for shared_buffers",
    ]


def test_of_storages_that_share_too_little_space_the_largest_is_too_much():
    places = {
        "a": StoragePlace("1", "/", 4 * GIB, takes_bytes=GIB),
        "b": StoragePlace("1", "/", 4 * GIB, takes_bytes=100 * GIB),
        "c": StoragePlace("1", "/", 4 * GIB, takes_bytes=2 * GIB),
    }
    storages = {name: {"kind": "loop", "size": "1GiB"} for name in places}
    e = experiment(storage=storages, matrix={"storage": ["a", "b", "c"]})
    (space,) = [need for need in plan_of(e, places=places).needs if need.where == "/"]
    assert (space.what, space.met, space.storages) == ("space for storage a, storage b, storage c", False, ("b",))


def test_memory_that_only_storages_overfill_is_their_loss():
    e = experiment(dataset={"kind": "tpcb", "scale": 60})
    (memory,) = [need for need in plan_of(e, memory_bytes=GIB).needs if need.where == "memory"]
    assert (memory.met, memory.storages) == (False, ("memory",))
    (memory,) = [need for need in plan_of(e, memory_bytes=2**20).needs if need.where == "memory"]
    assert (memory.met, memory.storages) == (False, ())
