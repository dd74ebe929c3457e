"""A start of a server without data, which finds settings that exclude each other and memory that the machine lacks.

The judge is the installation's own server, in a temporary directory that has of a data directory only what is looked at first.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from plinth.common.nearest import nearest
from plinth.model.base import SettingValue
from plinth.model.errors import PlinthError, Problem
from plinth.model.facts import Installation
from plinth.model.units import format_size
from plinth.server.settings.ask import SettingDefinition, complaint_of, configuration_files
from plinth.server.settings.values import number_of, setting_text
from plinth.server.shared_memory import remove_left_shared_memory
from plinth.system.confinement import View, program_folders
from plinth.system.failures import from_os_error
from plinth.system.owner import Owner
from plinth.system.runner import Runner

_CONTROL_FILE_BYTES = 8192  # PG_CONTROL_FILE_SIZE; of zeros, which every version refuses by the name of this constant:
_REFUSES_CONTROL_FILE = "PG_CONTROL_VERSION"
_CHECK_SINCE = 15  # before, --check was --boot -x0
_OF_SESSIONS = ("user", "superuser", "backend", "superuser-backend")
_OF_MEMORY = ("memory", "semaphore")
"""What a complaint is about that is one of the machine; all else is found when the server starts."""
_BUFFER_UNIT = "8kB"
_DYNAMIC_TYPE = "dynamic_shared_memory_type"


class DryStart:
    """Starts an installation's server with settings, without data. Answers are kept: many variants differ in other things."""

    def __init__(self, installation: Installation, owner: Owner, runner: Runner, memory_total_bytes: int) -> None:
        self._installation = installation
        self._owner = owner
        self._runner = runner
        self._memory_total_bytes = memory_total_bytes
        self._complaints: dict[tuple[str, frozenset[tuple[str, str]]], str | None] = {}

    def problem(
        self, settings: Mapping[str, SettingValue], definitions: Mapping[str, SettingDefinition]
    ) -> Problem | None:
        """Find the combination of settings that the server refuses, though it takes each of them alone."""
        asked = {
            name: setting_text(value)
            for name, value in settings.items()
            if not _has_context(name, definitions, _OF_SESSIONS)
        }
        complaint = self._cached("combination", asked) if asked else None
        if complaint is None:
            return self._library_problem(settings)
        named = next((name for name in asked if re.search(rf"\b{re.escape(name)}\b", complaint, re.IGNORECASE)), None)
        return Problem(complaint, path=["server", "settings", *([named] if named else [])])

    def _library_problem(self, settings: Mapping[str, SettingValue]) -> Problem | None:
        """Find a library that the server would load at its start, and that this installation does not have."""
        name = next((name for name in settings if name.lower() == "shared_preload_libraries"), None)
        if name is None or any(other.lower() == "dynamic_library_path" for other in settings):
            return None
        wanted = [word.strip().strip('"') for word in str(settings[name]).split(",")]
        there = self._libraries
        lacking = [word for word in wanted if word and "/" not in word and word.removesuffix(".so") not in there]
        if not lacking or not there:
            return None
        return Problem(
            f"{name}: this installation has no library {', '.join(map(repr, lacking))}",
            path=["server", "settings", name],
            hint=nearest(lacking[0], there) or f"those that it has are in {self._library_folder}",
        )

    @cached_property
    def _library_folder(self) -> str:
        """Return the folder of libraries. Without pg_config it is where an installation has PL/pgSQL; "" if that is nowhere."""
        bindir = Path(self._installation.bindir)
        try:
            words = [str(bindir / "pg_config"), "--pkglibdir"]
            view = View(programs=program_folders(bindir))
            return self._runner.run_confined("version", words, view, self._owner).stdout.strip()
        except PlinthError:
            places = (bindir.parent / "lib/postgresql", bindir.parent / "lib")
            return next((str(place) for place in places if (place / "plpgsql.so").exists()), "")

    @cached_property
    def _libraries(self) -> tuple[str, ...]:
        """Return what the installation could load; nothing where that cannot be seen."""
        return tuple(sorted(file.stem for file in Path(self._library_folder or "/nonexistent").glob("*.so")))

    def lacking(
        self,
        settings: Mapping[str, SettingValue],
        definitions: Mapping[str, SettingDefinition],
        limit_bytes: int | None = None,
    ) -> str | None:
        """Return why this machine, or a memory limit of the server, cannot give it the shared memory of these settings; None where it can."""
        asked = {
            name: setting_text(value)
            for name, value in settings.items()
            if _has_context(name, definitions, ("postmaster",))
        }
        buffers = next((value for name, value in asked.items() if name.lower() == "shared_buffers"), None)
        pages = None if buffers is None else number_of(buffers, _BUFFER_UNIT)
        if pages is not None and pages * 8192 > self._memory_total_bytes:
            return f"shared_buffers = {buffers}: this machine has {format_size(self._memory_total_bytes)} of memory"
        if pages is not None and limit_bytes is not None and pages * 8192 > limit_bytes:
            return f"shared_buffers = {buffers}: server.memory allows {format_size(limit_bytes)}"
        return self._cached("memory", asked)

    def _cached(self, what: str, asked: Mapping[str, str]) -> str | None:
        key = (what, frozenset(asked.items()))
        if key not in self._complaints:
            self._complaints[key] = self._combined(asked) if what == "combination" else self._memory(asked)
        return self._complaints[key]

    def _combined(self, asked: Mapping[str, str]) -> str | None:
        """Return the complaint about a combination: the server compares settings right before it reads the control file, which has only zeros."""
        complaint = self._start([], asked)
        return None if complaint is None or _REFUSES_CONTROL_FILE in complaint else complaint

    def _memory(self, asked: Mapping[str, str]) -> str | None:
        """Return the complaint about memory, found with the option by which initdb chooses max_connections and shared_buffers."""
        mode = ["--check"] if self._installation.major >= _CHECK_SINCE else ["--boot", "-x0"]
        complaint = self._start(mode, asked)
        if complaint is not None and all(name.lower() != _DYNAMIC_TYPE for name in asked):
            # Where POSIX shared memory does not work initdb writes sysv into the configuration (choose_dsm_implementation).
            complaint = self._start(mode, {**asked, _DYNAMIC_TYPE: "sysv"})
        return complaint if complaint is not None and any(word in complaint for word in _OF_MEMORY) else None

    def _start(self, mode: list[str], asked: Mapping[str, str]) -> str | None:
        """Return what the server says against the settings; what it says about the folder does not matter."""
        with _skeleton(self._installation.major, self._owner) as folder:
            none = [f"{name}=/dev/null" for name in configuration_files(self._installation.major)]
            if mode:
                none = none[:1]
            options = [part for one in (*none, *(f"{n}={v}" for n, v in asked.items())) for part in ("-c", one)]
            bindir = Path(self._installation.bindir)
            done = self._runner.run_confined(
                "dry start",
                [f"{bindir}/postgres", *mode, "-D", str(folder), *options],
                View(programs=program_folders(bindir), targets=(folder,)),
                self._owner,
                allowed_exit_codes=(0, 1, 2),
            )
        if done.exit_code == 0:
            return None
        complaint, hint = complaint_of(done.stderr)
        if str(folder) in complaint:
            return None
        return complaint if hint is None else f"{complaint} ({hint})"


@contextmanager
def _skeleton(major: int, owner: Owner) -> Iterator[Path]:
    """Make a folder of the server's user with what a server looks at before it has read its control file."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="plinth-start-")).resolve()
    except OSError as error:
        place = Path(error.filename or os.environ.get("TMPDIR", "/tmp"))
        raise from_os_error(error, "make a temporary directory", place) from error
    try:
        (folder / "PG_VERSION").write_text(f"{major}\n")
        for name in ("global", "pg_notify"):
            (folder / name).mkdir(mode=0o700)
        (folder / "global" / "pg_control").write_bytes(bytes(_CONTROL_FILE_BYTES))
        if not owner.is_current_user:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, owner.uid, owner.gid)
        yield folder
    finally:
        remove_left_shared_memory(folder)  # of a server that was ended by an interrupt or at its time limit
        shutil.rmtree(folder, ignore_errors=True)


def _has_context(name: str, definitions: Mapping[str, SettingDefinition], contexts: tuple[str, ...]) -> bool:
    found = next((one for known, one in definitions.items() if known.lower() == name.lower()), None)
    return found is not None and found.context in contexts
