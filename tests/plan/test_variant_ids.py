"""Ids of variants say every level, are unique, stay the same, and are safe as names of files."""

import itertools
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyse_bundles import sweep
from plinth.model.level import Level
from plinth.plan.variants import variant_id

SETTING = "server.settings."


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ({"storage": "memory", "workload.clients": 16}, "memory-16-clients"),
        ({"workload.rate": 4000.0}, "4000-s"),
        ({f"{SETTING}full_page_writes": False}, "full-page-writes-off"),
        (
            {"storage": "ssd", f"{SETTING}synchronous_commit": "off", f"{SETTING}full_page_writes": True},
            "ssd-synchronous-commit-off-full-page-writes-on",
        ),
        (
            {"storage": "sata-ssd", f"{SETTING}synchronous_commit": "remote_apply", f"{SETTING}full_page_writes": True},
            "sata-ssd-synchronous-commit-remote-apply-full-page-writes-on",
        ),
        (
            {"storage": "sata-ssd", f"{SETTING}synchronous_commit": "remote_apply", f"{SETTING}full_page_writes": False},
            "sata-ssd-synchronous-commit-remote-apply-full-page-writes-off",
        ),
        (
            {"storage": "ssd", f"{SETTING}synchronous_commit": "off", f"{SETTING}full_page_writes": False,
             f"{SETTING}wal_compression": "on"},
            "ssd-sync-comm-off-full-page-writ-off-wal-comp-on",
        ),
        (
            {f"{SETTING}{name}": level for name, level in zip(
                ("autovacuum_vacuum_cost_limit", "checkpoint_completion_target", "max_parallel_maintenance_workers",
                 "wal_compression", "wal_writer_flush_after"), (1, 0.9, 4, "lz4", "128kB"), strict=True)},
            "avcl-1-cct-0-9-mpmw-4-wc-lz4-wwfa-128kb",
        ),
        ({f"{SETTING}wal_buffers": -1}, "wal-buffers-minus-1"),
        ({f"{SETTING}wal_buffers": 1}, "wal-buffers-1"),
        ({f"{SETTING}search_path": "%"}, "search-path"),
        ({}, "disk"),
    ],
)  # fmt: skip
def test_an_id_says_the_levels_and_shortens_the_names_of_factors(levels: dict[str, Level], expected: str) -> None:
    assert variant_id(levels, "disk", ()) == expected


def test_levels_that_are_very_long_are_cut_and_stay_different() -> None:
    sql = [f"SELECT sum(abalance) FROM pgbench_accounts {'WHERE aid > 0 ' * 20} LIMIT {n}" for n in (1, 2)]
    first, second = (variant_id({"workload.statements": text}, "disk", ()) for text in sql)
    assert first != second and len(first) == len(second) == 120
    assert first.startswith("select-sum-abalance-from-pgbench-accounts-")


def test_the_twin_of_a_baseline_never_has_the_id_of_another_variant() -> None:
    contents = sweep({f"{SETTING}search_path": ["a", "a_aa"]}, lambda variant, block: 100.0, aa=True)
    assert [one.id for one in contents.plan.variants] == ["search-path-a", "search-path-a-aa", "search-path-a-aa-2"]


_NAMES = st.from_regex(r"[a-z]{2,14}(_[a-z]{2,14}){0,4}", fullmatch=True)
_LEVELS = st.one_of(
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.floats(-1e6, 1e6, allow_nan=False),
    st.from_regex(r"[a-zA-Z0-9_.]{1,24}", fullmatch=True),
    st.text(min_size=1, max_size=300),
)


@given(st.dictionaries(_NAMES, st.lists(_LEVELS, min_size=1, max_size=3, unique_by=str), min_size=1, max_size=5))
def test_ids_are_unique_stable_and_safe_as_names_of_files(matrix: dict[str, list[Any]]) -> None:
    ids: list[str] = []
    combinations = list(itertools.product(*matrix.values()))
    for levels in combinations:
        own = {f"{SETTING}{name}": level for name, level in zip(matrix, levels, strict=True)}
        alone, one = variant_id(own, "disk", ()), variant_id(own, "disk", ids)
        assert one == alone or alone in ids
        ids.append(one)
    assert len(set(ids)) == len(combinations)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", one) and len(one) <= 125 for one in ids)


@given(st.lists(_NAMES, min_size=1, max_size=6, unique=True), st.data())
def test_every_level_is_whole_in_an_id(names: list[str], data: st.DataObject) -> None:
    levels = {name: data.draw(st.sampled_from(["on", "off", "remote_apply", "lz4", "128kB"])) for name in names}
    words = variant_id({f"{SETTING}{name}": level for name, level in levels.items()}, "disk", ()).split("-")
    rest = iter(words)
    for level in levels.values():
        for word in level.lower().split("_"):
            assert word in rest, f"{level} in {words}"
