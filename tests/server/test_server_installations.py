"""Finding PostgreSQL: the usual places, what is broken, and what the server's user cannot reach."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from plinth.model.errors import MissingCapability
from plinth.model.facts import Installation
from plinth.model.server_spec import NEWEST_VERSION, ServerSpec
from plinth.server.installations.find import Place, find_installation, find_installations, usual_places
from plinth.system.owner import Owner
from plinth.system.runner import Runner


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def says(version: str) -> str:
    return f"echo '{{}} (PostgreSQL) {version}'"


def test_the_wheel_comes_first_and_every_place_once() -> None:
    places = list(usual_places())
    assert places[0].origin == "wheel"
    resolved = [place.bindir.resolve() for place in places]
    assert len(resolved) == len(set(resolved))


def test_what_is_on_this_machine_runs(installations: Mapping[str, Installation], owner: Owner, runner: Runner) -> None:
    found = find_installations(owner, runner).installations
    assert {one.origin for one in found} >= {"wheel", "debian"}
    assert installations["18"].version.startswith("18.")
    assert installations["17"].origin == "bindir"
    assert installations["debian"].major == int(Path(installations["debian"].bindir).parent.name)


def test_a_program_on_the_path_is_found(program_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    postgres = program(program_folder / "bin" / "postgres", says("17.1"))
    monkeypatch.setenv("PATH", str(postgres.parent), prepend=os.pathsep)
    assert Place(postgres.parent, "path") in usual_places()


def test_another_version_than_the_one_asked_for(
    installations: Mapping[str, Installation], owner: Owner, runner: Runner
) -> None:
    with pytest.raises(MissingCapability) as caught:
        find_installation(18, installations["17"].bindir, owner, runner)
    assert f"it holds PostgreSQL {installations['17'].version}; version 18 is asked for" in caught.value.message
    assert "server.version = 17" in (caught.value.hint or "")
    assert caught.value.exit_code == 5


@pytest.mark.parametrize(
    ("postgres", "initdb", "reason"),
    [
        (None, None, "there is no postgres and no initdb in it"),
        (says("18.1"), None, "there is no initdb in it"),
        (
            "echo 'libz.so.1: cannot open shared object file' >&2; exit 127",
            says("18.1"),
            "cannot open shared object file",
        ),
        ("kill -SEGV $$", says("18.1"), "SIGSEGV"),
        ("echo hello", says("18.1"), "postgres --version said 'hello'"),
        (says("18.1"), says("17.3"), "postgres is 18.1 but initdb is 17.3"),
    ],
)
def test_broken_programs(
    program_folder: Path, owner: Owner, runner: Runner, postgres: str | None, initdb: str | None, reason: str
) -> None:
    bindir = program_folder / "bin"
    for name, text in (("postgres", postgres), ("initdb", initdb)):
        if text is not None:
            program(bindir / name, text)
    with pytest.raises(MissingCapability) as caught:
        find_installation(18, str(bindir), owner, runner)
    assert reason in caught.value.message
    assert caught.value.where == f"server.bindir = {str(bindir)!r}"


def test_a_real_program_without_its_libraries(
    program_folder: Path, installations: Mapping[str, Installation], owner: Owner, runner: Runner
) -> None:
    bindir = program_folder / "bin"
    bindir.mkdir()
    for name in ("postgres", "initdb"):
        shutil.copy(Path(installations["18"].bindir, name), bindir)
    with pytest.raises(MissingCapability, match="libpq"):
        find_installation(18, str(bindir), owner, runner)


def test_a_relative_bindir(
    installations: Mapping[str, Installation], owner: Owner, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    bindir = Path(installations["17"].bindir)
    monkeypatch.chdir(bindir.parent)
    assert find_installation(17, "bin", owner, runner) == installations["17"]


@pytest.mark.parametrize("damage", ["not executable", "not a program"])
def test_files_that_cannot_be_executed(program_folder: Path, owner: Owner, runner: Runner, damage: str) -> None:
    postgres = program(program_folder / "bin" / "postgres", says("18.1"))
    program(program_folder / "bin" / "initdb", says("18.1"))
    if damage == "not executable":
        postgres.chmod(0o644)
    else:
        postgres.write_bytes(b"\x7fELF nonsense")
    with pytest.raises(MissingCapability, match="postgres"):
        find_installation(18, str(postgres.parent), owner, runner)


def test_nothing_found_says_what_was_tried(program_folder: Path, owner: Owner, runner: Runner) -> None:
    broken, other = program_folder / "broken", program_folder / "other"
    program(broken / "postgres", "exit 3")
    program(broken / "initdb", "exit 3")
    program(other / "postgres", says("16.2"))
    program(other / "initdb", says("16.2"))
    places = [Place(broken, "opt"), Place(other, "source")]
    with pytest.raises(MissingCapability) as caught:
        find_installation(17, None, owner, runner, places)
    tried = "\n".join(caught.value.details)
    assert f"{broken} (opt): postgres failed with exit code 3" in tried
    assert f"{other} (source): PostgreSQL 16.2" in tried
    assert "postgresql-17" in (caught.value.hint or "")
    survey = find_installations(owner, runner, places)
    assert [one.version for one in survey.installations] == ["16.2"]
    assert [place.bindir for place, _ in survey.rejected] == [broken]


class TestClosedToTheServersUser:
    """As root, with an installation where only root can go, as in a virtual environment in root's home."""

    @pytest.fixture(autouse=True)
    def state_dir(self, program_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        assert os.geteuid() == 0, "this test needs root: only root has another user for its servers"
        path = program_folder / "state"
        monkeypatch.setenv("PLINTH_STATE_DIR", str(path))
        return path

    @pytest.fixture
    def closed(self, program_folder: Path, installations: Mapping[str, Installation]) -> Path:
        closed = program_folder / "closed"
        package = Path(installations["18"].bindir).parent.parent
        shutil.copytree(package / "pginstall", closed / package.name / "pginstall", symlinks=True)
        libraries = package.with_suffix(".libs")  # where wheels keep further libraries
        shutil.copytree(libraries, closed / libraries.name)
        closed.chmod(0o700)
        return closed / package.name / "pginstall" / "bin"

    @pytest.mark.long
    def test_it_is_copied_once(self, closed: Path, state_dir: Path, owner: Owner, runner: Runner) -> None:
        found = find_installation(18, None, owner, runner, [Place(closed, "path")])
        bindir = Path(found.bindir)
        assert bindir.is_relative_to(state_dir / "cache" / "postgresql")
        assert found.origin == f"path, copied because user {owner.name} cannot reach {closed}"
        output = runner.run([f"{bindir}/initdb", "--show", "--pgdata=/nowhere"], owner=owner).stderr
        assert str(bindir.parent) in output, "it takes its shared files from the copy"
        made = bindir.stat().st_ino
        assert find_installation(18, None, owner, runner, [Place(closed, "path")]) == found
        assert bindir.stat().st_ino == made

    def test_other_content_is_another_copy(self, closed: Path, owner: Owner, runner: Runner) -> None:
        before = find_installation(18, None, owner, runner, [Place(closed, "path")])
        (closed.parent / "share" / "postgresql.conf.sample").write_text("# changed\n")
        after = find_installation(18, None, owner, runner, [Place(closed, "path")])
        assert after.bindir != before.bindir
        assert Path(after.bindir, "..", "share", "postgresql.conf.sample").read_text() == "# changed\n"

    def test_what_a_killed_copy_left_is_no_hindrance(
        self, closed: Path, state_dir: Path, owner: Owner, runner: Runner
    ) -> None:
        left = state_dir / "cache" / "postgresql" / ".unfinished" / "bin"
        left.mkdir(parents=True)
        for parent in (state_dir, *left.parents[:3]):
            parent.chmod(0o755)
        (left / "postgres").write_text("half")
        found = find_installation(18, None, owner, runner, [Place(closed, "path")])
        assert runner.run([f"{found.bindir}/postgres", "--version"], owner=owner).exit_code == 0
        assert not left.exists()

    def test_one_that_is_spread_over_the_system_is_not_copied(
        self, program_folder: Path, installations: Mapping[str, Installation], owner: Owner, runner: Runner
    ) -> None:
        """Debian's programs find their shared files in /usr/share wherever they are."""
        closed = program_folder / "closed"
        shutil.copytree(installations["debian"].bindir, closed / "bin")
        closed.chmod(0o700)
        with pytest.raises(MissingCapability) as caught:
            find_installation(installations["debian"].major, None, owner, runner, [Place(closed / "bin", "path")])
        assert "cannot be copied" in caught.value.message
        assert "/usr/share" in caught.value.message

    def test_a_cache_that_is_closed_too(
        self, closed: Path, program_folder: Path, owner: Owner, runner: Runner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (program_folder / "hidden").mkdir(mode=0o700)
        monkeypatch.setenv("PLINTH_STATE_DIR", str(program_folder / "hidden" / "state"))
        with pytest.raises(MissingCapability) as caught:
            find_installation(18, None, owner, runner, [Place(closed, "path")])
        assert "neither" in caught.value.message
        assert "PLINTH_STATE_DIR" in (caught.value.hint or "")


@pytest.mark.parametrize("program", ["postgres", "initdb", "pg_config"])
def test_root_runs_no_program_that_only_an_experiment_names(
    tmp_path: Path, program: str, owner: Owner, runner: Runner
) -> None:
    """A bundle may bring a directory of programs: root must not run them where the server's user cannot."""
    bindir, ran = tmp_path / "bin", tmp_path / "ran"
    bindir.mkdir()
    for name in ("postgres", "initdb", "pg_config"):
        text = f'echo "{name} (PostgreSQL) 18.0"'
        (bindir / name).write_text(f"#!/bin/sh\n{f'id -u >> {ran};' if name == program else ''}{text}\n")
        (bindir / name).chmod(0o700)  # for root alone
    with pytest.raises(MissingCapability, match="root runs no program"):
        find_installation(18, str(bindir), owner, runner)
    assert not ran.exists()


SHOWS = 'case "$1" in --version) {says};; --show) echo POSTGRES_BKI=/x;; esac'


class TestNewerThanKnown:
    def test_it_is_taken_where_it_is_installed(self, program_folder: Path, owner: Owner, runner: Runner) -> None:
        place = Place(program_folder / "tomorrow", "opt")
        program(place.bindir / "postgres", says("19.1"))
        program(place.bindir / "initdb", SHOWS.format(says=says("19.1")))
        assert find_installation(19, None, owner, runner, [place]).version == "19.1"
        assert find_installation(19, str(place.bindir), owner, runner).major == 19

    def test_where_it_is_not_it_says_where_it_looked(self, program_folder: Path, owner: Owner, runner: Runner) -> None:
        other = program_folder / "other"
        for name in ("postgres", "initdb"):
            program(other / name, says("17.1"))
        with pytest.raises(MissingCapability) as caught:
            find_installation(19, None, owner, runner, [Place(other, "source")])
        assert f"{other} (source): PostgreSQL 17.1" in caught.value.details
        assert "/usr/lib/postgresql/*/bin" in caught.value.details[-1]
        asked = re.search(r"server\.version = (\d+)", caught.value.hint or "")
        assert asked is not None
        assert ServerSpec(version=int(asked[1])).version == NEWEST_VERSION


def test_one_that_is_too_old_is_not_recommended(program_folder: Path, owner: Owner, runner: Runner) -> None:
    for name in ("postgres", "initdb"):
        program(program_folder / "old" / name, says("9.6.2"))
    with pytest.raises(MissingCapability) as caught:
        find_installation(18, str(program_folder / "old"), owner, runner)
    assert "server.version" not in (caught.value.hint or "")


@pytest.mark.parametrize("initdb", ["true", "echo broken >&2; exit 3"])
def test_an_initdb_that_makes_nothing(
    program_folder: Path, owner: Owner, runner: Runner, installations: Mapping[str, Installation], initdb: str
) -> None:
    real = installations["18"]
    bindir = program_folder / "bin"
    program(bindir / "postgres", f'exec "{real.bindir}/postgres" "$@"')
    program(bindir / "initdb", f'[ "$1" = --version ] || {{ {initdb}; exit; }}\n{says(real.version)}')
    with pytest.raises(MissingCapability, match="initdb makes no data directory") as caught:
        find_installation(18, str(bindir), owner, runner)
    assert caught.value.where == f"{bindir}/initdb"


def test_a_program_is_run_once_and_again_when_it_is_another(program_folder: Path, owner: Owner, runner: Runner) -> None:
    bindir, runs = program_folder / "bin", program_folder / "runs"
    runs.touch()
    runs.chmod(0o666)
    for version, expected in (("17.1", 2), ("17.1", 2), ("17.2", 4)):
        for name in ("postgres", "initdb"):
            text = f"echo >> {runs}; {says(version).format(name)}"
            if not (bindir / name).exists() or version not in (bindir / name).read_text():
                program(bindir / name, text)
        assert find_installations(owner, runner, [Place(bindir, "opt")]).installations[0].version == version
        assert len(runs.read_text().splitlines()) == expected
