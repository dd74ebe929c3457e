"""Safety grades, from facts and settings."""

from typing import Any

import pytest
from analyse_bundles import bundle, server_facts, storage_facts

from plinth.analyse.safety import judge
from plinth.model.analysis import SafetyGrade

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
        ({}, {"synchronous_commit": "local"}, "keeps", "flushed"),
        ({"mount_options": ("rw", "barrier=0")}, {}, "does not keep", "barrier=0"),
        ({"mount_options": ("rw", "nobarrier")}, {}, "does not keep", "no flushes"),
        ({"filesystem": "overlay", "mount_options": ("rw", "volatile")}, {}, "does not keep", "overlay"),
    ],
)
def test_grade(storage: dict[str, Any], settings: dict[str, str], grade: SafetyGrade, said: str) -> None:
    found = judge(VARIANT, storage_facts("disk", **storage), server_facts(**settings), external=False)
    assert found.grade == grade
    assert any(said in reason for reason in found.reasons)


def test_the_worst_finding_is_the_grade_and_every_finding_is_a_reason() -> None:
    settings = server_facts(synchronous_commit="off", fsync="off")
    found = judge(VARIANT, storage_facts("memory", volatile=True), settings, external=False)
    assert found.grade == "does not keep"
    assert len(found.reasons) == 3
    assert not any("trusted" in reason for reason in found.reasons)


def test_what_was_not_read_is_unknown_not_safe() -> None:
    assert judge(VARIANT, None, server_facts(), external=True).grade == "unknown"
    assert "did not start" in judge(VARIANT, None, server_facts(), external=True).reasons[0]
    assert judge(VARIANT, storage_facts("disk"), None, external=False).grade == "unknown"
    assert judge(VARIANT, None, server_facts(fsync="off"), external=True).grade == "does not keep"


def test_settings_as_asked_count_where_the_server_never_told() -> None:
    asked = VARIANT.model_copy(update={"settings": {"fsync": False}})
    assert judge(asked, storage_facts("disk"), None, external=False).grade == "does not keep"
    asked = VARIANT.model_copy(update={"settings": {"synchronous_commit": "off"}})
    assert judge(asked, storage_facts("disk"), None, external=False).grade == "may lose recent commits"
