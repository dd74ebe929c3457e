"""The weakest of the durability settings that were seen, and what it makes of a grade."""

import pytest

from analyse_bundles import bundle, server_facts, storage_facts
from plinth.analyse.safety import judge
from plinth.model.base import Gap
from plinth.model.safety import SafetyGrade
from plinth.model.write_facts import SettingSeen, WriteFacts, WrittenRelation, settings_in_force, value_in_force

VARIANT = bundle({"disk": [1.0]}).plan.variants[0]


def seen(name: str, value: str | None, *, certain: bool = True) -> SettingSeen:
    return SettingSeen(name=name, value=value, where="script x.sql: it", certain=certain)


@pytest.mark.parametrize(
    ("values", "weakest"),
    [
        (["on", "off"], "off"),
        (["off", "on"], "off"),
        (["remote_apply", "on", "local"], "local"),
        (["remote_apply", "on"], "on"),
        (["on", None], None),
        ([None, "off"], "off"),
        (["on", "TRUE", "1"], "on"),
        (["remote_write", "No"], "off"),
    ],
)
def test_the_weakest_level_of_commits_counts_in_any_order(values: list[str | None], weakest: str | None) -> None:
    for order in (values, values[::-1]):
        writes = [WriteFacts(settings=(seen("synchronous_commit", value),)) for value in order]
        assert value_in_force(settings_in_force({}, server_facts(), writes), "synchronous_commit") == weakest


def test_the_longest_delay_of_the_wal_writer_is_the_weakest() -> None:
    writes = [WriteFacts(settings=tuple(seen("wal_writer_delay", value) for value in ("200", "10000", "10")))]
    assert value_in_force(settings_in_force({}, server_facts(), writes), "wal_writer_delay") == "10000"


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_what_is_off_at_any_time_is_off(name: str) -> None:
    writes = [WriteFacts(settings=(seen(name, "on"), seen(name, "off"), seen(name, "on")))]
    assert judge(VARIANT, {"data": storage_facts("disk")}, server_facts(), writes).grade == "does not keep"


@pytest.mark.parametrize(
    ("library", "grade"), [("/usr/lib/libeatmydata.so.1", "does not keep"), ("/opt/libjemalloc.so", "unknown")]
)
def test_a_library_before_the_servers_own_may_leave_out_every_fsync(library: str, grade: SafetyGrade) -> None:
    server = server_facts().model_copy(update={"preloaded": (library,)})
    found = judge(VARIANT, {"data": storage_facts("disk")}, server)
    assert found.grade == grade and library in found.reasons[0]


def test_what_was_asked_counts_where_the_server_was_never_read() -> None:
    found = settings_in_force({"FSYNC": False, "work_mem": "4MB"}, None)
    assert {name: one.value for name, one in found.items()} == {"fsync": "False"}
    assert value_in_force(found, "fsync") == "off"


def relation(**what: object) -> WrittenRelation:
    given = {"name": "public.t", "kind": "table", "persistence": "permanent", "tablespace": None, "directory": None}
    return WrittenRelation.model_validate(given | what)


FAST = {"tablespace": "fast", "directory": "/fast"}


@pytest.mark.parametrize(
    ("facts", "grade", "said"),
    [
        (WriteFacts(written=3), "keeps", "trusted"),
        (WriteFacts(relations=(relation(persistence="unlogged"),)), "does not keep", "table public.t is unlogged"),
        (WriteFacts(relations=(relation(**FAST, storage="disk"),)), "keeps", "trusted"),
        (WriteFacts(relations=(relation(**FAST),)), "unknown", "was not tested"),
        (
            WriteFacts(relations=(relation(**FAST, place=storage_facts("shm", volatile=True)),)),
            "does not keep",
            "volatile",
        ),
        (WriteFacts(relations=(relation(**FAST, place=storage_facts("other")),)), "unknown", "was not tested"),
        (WriteFacts(gaps=(Gap(what="tables", reason="track_counts is off"),)), "unknown", "track_counts is off"),
        (WriteFacts(settings=(seen("synchronous_commit", None),)), "unknown", "only shows while it runs"),
        (WriteFacts(settings=(seen("synchronous_commit", "off", certain=False),)), "unknown", "is not known"),
        (WriteFacts(settings=(seen("synchronous_commit", "off"),)), "may lose recent commits", "script x.sql"),
    ],
)
def test_what_loads_wrote_to_and_set_is_judged(facts: WriteFacts, grade: SafetyGrade, said: str) -> None:
    found = judge(VARIANT, {"data": storage_facts("disk")}, server_facts(), [WriteFacts(), facts])
    assert found.grade == grade
    assert any(said in reason for reason in found.reasons), found.reasons
