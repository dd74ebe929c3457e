"""A server started without data, of every version: combinations that it refuses, memory that is not there, and nothing left."""

import tempfile
from pathlib import Path

import pytest

from plinth.model.base import SettingValue
from plinth.model.facts import Installation
from plinth.server.settings.ask import SettingsProbe
from plinth.server.settings.dry_start import DryStart
from plinth.system.owner import Owner
from plinth.system.runner import Runner

GIB = 2**30


@pytest.fixture
def asked(
    every_installation: Installation, owner: Owner, runner: Runner, scratch: Path, monkeypatch: pytest.MonkeyPatch
):
    """What is said against settings: the problem of the combination, and what the machine lacks."""
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))  # others start servers in the machine's own
    dry, probe = DryStart(every_installation, owner, runner, 4 * GIB), SettingsProbe(every_installation, owner, runner)

    def ask(**settings: SettingValue):
        before = set(Path(tempfile.gettempdir()).glob("plinth-start-*"))
        found = dry.problem(settings, probe.definitions), dry.lacking(settings, probe.definitions)
        assert set(Path(tempfile.gettempdir()).glob("plinth-start-*")) <= before
        return found

    return ask


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"shared_buffers": "64MB", "work_mem": "1GB"},
        {"wal_level": "minimal", "max_wal_senders": 0},
        {"Max_Connections": 50, "fsync": False, "plpgsql.extra_errors": "all"},
        {"shared_preload_libraries": "plpgsql"},
    ],
    ids=lambda settings: " ".join(settings) or "none",
)
def test_what_a_server_takes(asked, settings: dict[str, SettingValue]) -> None:
    assert asked(**settings) == (None, None)


@pytest.mark.parametrize(
    ("settings", "named", "other"),
    [
        ({"wal_level": "minimal"}, "wal_level", "max_wal_senders"),
        ({"WAL_LEVEL": "minimal"}, "WAL_LEVEL", "max_wal_senders"),
        ({"wal_level": "minimal", "max_wal_senders": 0, "archive_mode": True}, "wal_level", "archival"),
        ({"superuser_reserved_connections": 100}, "superuser_reserved_connections", "max_connections"),
        ({"shared_preload_libraries": "auto_explain, auto_explian"}, "shared_preload_libraries", "auto_explian"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_excludes_each_other(asked, settings: dict[str, SettingValue], named: str, other: str) -> None:
    problem, _ = asked(**settings)
    assert problem is not None
    assert problem.path == ["server", "settings", named]
    assert other in problem.message


def test_memory_that_there_is_not(asked) -> None:
    _, by_server = asked(huge_pages="on", shared_buffers="512MB")
    assert "could not map anonymous shared memory" in by_server
    _, by_size = asked(shared_buffers="5GB")
    assert "4.0 GiB of memory" in by_size
