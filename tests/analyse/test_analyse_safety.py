"""Safety grades, from facts and settings."""

from typing import Any

import pytest

from analyse_bundles import bundle, server_facts, storage_facts
from plinth.analyse.safety import judge
from plinth.model.safety import SafetyGrade

VARIANT = bundle({"disk": [1.0]}).plan.variants[0]


@pytest.mark.parametrize(
    ("storage", "settings", "grade", "said"),
    [
        ({}, {}, "keeps", "flushed before it is acknowledged"),
        ({}, {"shared_buffers": "1GB", "fsync": "on"}, "keeps", "trusted"),
        ({"volatile": True}, {}, "does not keep", "tmpfs loses everything"),
        ({"volatile": True, "volatile_reason": "swap on zram"}, {}, "does not keep", "swap on zram"),
        ({}, {"fsync": "off"}, "does not keep", "fsync = off"),
        ({}, {"full_page_writes": "off"}, "does not keep", "torn"),
        ({"filesystem": "zfs"}, {"full_page_writes": "off"}, "keeps", "zfs"),
        ({}, {"synchronous_commit": "off"}, "may lose recent commits", "wal_writer_delay"),
        ({}, {"data_sync_retry": "on"}, "unknown", "may have dropped what the first one did not write"),
        ({}, {"data_sync_retry": "off"}, "keeps", "trusted"),
        ({}, {"synchronous_commit": "local"}, "keeps", "flushed"),
        ({"mount_options": ("rw", "barrier=0")}, {}, "does not keep", "barrier=0"),
        ({"mount_options": ("rw", "nobarrier")}, {}, "does not keep", "no flushes"),
        ({"flushes_withheld": "the kernel sends no flushes"}, {}, "does not keep", "no flushes"),
        ({"mount_options": ("rw", "data=writeback")}, {}, "keeps", "may hold old blocks"),
        ({"filesystem": "overlay", "mount_options": ("rw", "volatile")}, {}, "does not keep", "overlay"),
    ],
)
def test_grade(storage: dict[str, Any], settings: dict[str, str], grade: SafetyGrade, said: str) -> None:
    found = judge(VARIANT, {"data": storage_facts("disk", **storage)}, server_facts(**settings))
    assert found.grade == grade
    assert any(said in reason for reason in found.reasons)


def test_the_worst_finding_is_the_grade_and_every_finding_is_a_reason() -> None:
    settings = server_facts(synchronous_commit="off", fsync="off")
    found = judge(VARIANT, {"data": storage_facts("memory", volatile=True)}, settings)
    assert found.grade == "does not keep"
    assert len(found.reasons) == 3
    assert not any("trusted" in reason for reason in found.reasons)


def test_every_storage_of_a_cluster_counts() -> None:
    storages = {"data": storage_facts("disk"), "WAL": storage_facts("memory", volatile=True)}
    found = judge(VARIANT, storages, server_facts())
    assert found.grade == "does not keep"
    assert found.reasons == ("memory, where the WAL is, is volatile: tmpfs loses everything at a power cut",)
    found = judge(VARIANT, {"data": storage_facts("disk"), "tablespace bulk": None}, server_facts())
    assert found.grade == "unknown"
    assert "tablespace bulk" in found.reasons[0]


@pytest.mark.parametrize(("data", "bulk", "grade"), [("zfs", "zfs", "keeps"), ("zfs", "ext4", "does not keep")])
def test_torn_pages_are_a_matter_of_where_tables_stand(data: str, bulk: str, grade: SafetyGrade) -> None:
    storages = {
        "data": storage_facts("pool", filesystem=data),
        "WAL": storage_facts("fast"),
        "tablespace bulk": storage_facts("bulk", filesystem=bulk),
    }
    assert judge(VARIANT, storages, server_facts(full_page_writes="off")).grade == grade


def test_what_was_not_read_is_unknown_not_safe() -> None:
    assert judge(VARIANT, {}, server_facts()).grade == "unknown"
    assert "did not start" in judge(VARIANT, {}, server_facts()).reasons[0]
    assert judge(VARIANT, {"data": storage_facts("disk")}, None).grade == "unknown"
    assert judge(VARIANT, {}, server_facts(fsync="off")).grade == "does not keep"


def test_settings_as_asked_count_where_the_server_never_reported() -> None:
    asked = VARIANT.model_copy(update={"settings": {"fsync": False}})
    assert judge(asked, {"data": storage_facts("disk")}, None).grade == "does not keep"
    asked = VARIANT.model_copy(update={"settings": {"synchronous_commit": "off"}})
    assert judge(asked, {"data": storage_facts("disk")}, None).grade == "may lose recent commits"
