"""Where Plinth's own folders are, for root and for others, and who runs servers."""

import os
import pwd
from pathlib import Path
from typing import NamedTuple

import pytest

from plinth.model.errors import MissingCapability, PlinthError, Refused, UsageError
from plinth.system.owner import server_owner
from plinth.system.paths import cache_dir, ensure, journal_dir, state_dir, work_dir


def test_root_keeps_its_state_in_var_lib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLINTH_STATE_DIR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/elsewhere")
    assert state_dir() == Path("/var/lib/plinth")
    assert (journal_dir(), work_dir(), cache_dir()) == tuple(state_dir() / n for n in ("journal", "work", "cache"))


def test_others_keep_it_at_home(monkeypatch: pytest.MonkeyPatch, in_child) -> None:
    monkeypatch.delenv("PLINTH_STATE_DIR", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/other")
    assert in_child(state_dir, user="nobody").value == Path("/home/other/.local/state/plinth")
    monkeypatch.setenv("XDG_STATE_HOME", "/states")
    assert in_child(state_dir, user="nobody").value == Path("/states/plinth")
    monkeypatch.setenv("XDG_STATE_HOME", "states")
    assert in_child(state_dir, user="nobody").value == Path("/home/other/.local/state/plinth")


def test_a_chosen_place_is_made_absolute_and_free_of_links(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (scratch / "link").symlink_to(scratch)
    monkeypatch.chdir(scratch)
    monkeypatch.setenv("PLINTH_STATE_DIR", "link/state")
    assert state_dir() == scratch / "state"
    assert not state_dir().exists()


def test_what_root_makes_can_be_entered_by_all_under_any_umask(state_dir: Path) -> None:
    before = os.umask(0o077)
    try:
        ensure(work_dir())
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (state_dir, work_dir())] == [0o755, 0o755]


def test_what_others_make_is_their_own(scratch: Path, state_dir: Path, in_child) -> None:
    scratch.chmod(0o777)

    def modes() -> list[int]:
        ensure(work_dir())
        return [path.stat().st_mode & 0o777 for path in (state_dir, work_dir())]

    assert in_child(modes, user="nobody").value == [0o700, 0o700]


def test_a_folder_that_is_there_keeps_its_mode(state_dir: Path) -> None:
    state_dir.mkdir(mode=0o700)
    ensure(work_dir())
    assert state_dir.stat().st_mode & 0o777 == 0o700


def test_places_that_cannot_hold_the_state(scratch: Path, state_dir: Path, in_child) -> None:
    state_dir.write_text("a file")
    with pytest.raises(UsageError, match="not a directory"):
        ensure(work_dir())
    with pytest.raises(UsageError, match="not a directory"):
        ensure(state_dir)
    state_dir.unlink()
    state_dir.mkdir()
    os.chown(state_dir, 65534, 65534)
    with pytest.raises(Refused, match="belongs to user id 65534"):
        ensure(state_dir)

    def closed() -> PlinthError:
        with pytest.raises(MissingCapability, match="permission denied") as error:
            ensure(scratch / "closed" / "work")
        return error.value

    (scratch / "closed").mkdir(mode=0o700)
    assert in_child(closed, user="nobody").value.where == str(scratch / "closed" / "work")


class Account(NamedTuple):
    """What is read of an account; a pwd.struct_passwd that lives to the end has Python 3.11 end with a SystemError."""

    pw_name: str
    pw_uid: int
    pw_gid: int


POSTGRES, NOBODY = Account("postgres", 70, 71), Account("nobody", 65534, 65533)


@pytest.mark.parametrize(
    ("accounts", "expected", "reason"),
    [
        ([POSTGRES, NOBODY], ("postgres", 70, 71), "servers run as user postgres."),
        ([NOBODY], ("nobody", 65534, 65533), "there is no user postgres: servers run as user nobody."),
    ],
)
def test_root_runs_servers_as_postgres_or_else_as_nobody_and_says_why(
    monkeypatch: pytest.MonkeyPatch, accounts: list[Account], expected: tuple[str, int, int], reason: str
) -> None:
    monkeypatch.setattr(pwd, "getpwnam", {found.pw_name: found for found in accounts}.__getitem__)
    owner = server_owner()
    assert owner[:3] == expected
    assert not owner.is_current_user
    assert owner.reason.startswith("PostgreSQL refuses to run as root")
    assert owner.reason.endswith(reason)


def test_root_with_nobody_to_run_servers_is_shown_how_to_make_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwnam", {}.__getitem__)
    with pytest.raises(MissingCapability, match="neither a user postgres nor a user nobody") as error:
        server_owner()
    assert "useradd" in (error.value.hint or "")


def test_others_run_servers_themselves(in_child) -> None:
    owner = in_child(server_owner, user="nobody").value
    assert (owner.name, owner.uid) == ("nobody", 65534)
    assert in_child(lambda: server_owner().is_current_user, user="nobody").value
