"""What was brought, by a user or a colleague, and the confined processes that alone may touch it.

Dumps, backups, logs, replay files and the programs of a `server.bindir` are untrusted, and Plinth often runs as root. So root opens
none of them and runs none of them. Each way in which one reaches a process is a `Way` of the table `WAYS`, and
`Runner.run_confined` starts all of these processes: as the server's user, in namespaces that show system folders and the paths
of a `View` only. An ordinary user has no right to make namespaces; the processes then run as that user. So they do as root of
a container without CAP_SYS_ADMIN, but still as the server's user.
"""

import errno
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypedDict

from plinth.common.shown import shown
from plinth.model.errors import MissingCapability, PlinthError, Refused, UsageError
from plinth.system import confined_process
from plinth.system.owner import Owner, effective_capabilities

_CAP_SYS_ADMIN = 1 << 21  # linux/capability.h
_GIB = 2**30
_PACKAGE = Path(__file__).parents[1]
_OTHERS_TOO = ("/etc", "/opt")
"""System folders in which others may put files of their own."""

Seen = Literal["programs", "original", "target", "sockets", "shared memory", "network"]
"""What a confined process sees besides system folders: `original` is read-only."""


@dataclass(frozen=True)
class Way:
    """A way in which something brought reaches a process: `brought` to `process`, which sees `sees` and no more."""

    brought: str
    process: str
    sees: tuple[Seen, ...]
    output_bytes: int
    """The most that it may write to its standard output and error together; one that writes more is ended."""
    timeout_s: float | None = None
    """How long it may take; None for work that takes as long as there is data, which a signal ends."""
    memory_bytes: int | None = None
    """The most address space of each of its processes (RLIMIT_AS); None where it is the server's to limit."""


_SHORT: int = 2**20
_LONG: int = 64 * 2**20
_TASK_BYTES = 4 * _GIB
WAYS: dict[str, Way] = {
    "version": Way(
        "programs of a `server.bindir`",
        "`postgres --version`, `initdb --version`, `initdb --show`, `pg_config`",
        ("programs",),
        _SHORT,
        30,
    ),
    "settings": Way(
        "programs of a `server.bindir`", "`postgres -C`, `postgres --describe-config`", ("programs",), _LONG, 30
    ),
    "dry start": Way(
        "programs of a `server.bindir`",
        "`postgres` in an empty directory of Plinth's, to see whether it takes the settings",
        ("programs", "target", "shared memory"),
        _LONG,
        30,
    ),
    "initdb": Way("programs of a `server.bindir`", "`initdb`", ("programs", "target", "shared memory"), _LONG),
    "base backup": Way(
        "programs of a `server.bindir`",
        "`pg_basebackup` of a standby",
        ("programs", "target", "sockets", "network"),
        _LONG,
    ),
    "rewind": Way(
        "programs of a `server.bindir`",
        "`pg_rewind`",
        ("programs", "target", "sockets", "shared memory", "network"),
        _LONG,
        600,
    ),
    "data directory": Way(
        "programs of a `server.bindir`",
        "`pg_checksums --check`, `pg_waldump`",
        ("programs", "original"),
        _GIB // 2,
    ),
    "look at a backup": Way(
        "a backup (`dataset.path`)",
        "Plinth's reading of PG_VERSION, the label, links and the names, sizes and rights of files",
        ("original",),
        _LONG,
        600,
        _TASK_BYTES,
    ),
    "unpack a backup": Way(
        "a backup (`dataset.path`)",
        "`tar`, `cp`, `pg_verifybackup`, `pg_controldata`, and what removes the original's configuration from the copy",
        ("programs", "original", "target"),
        _LONG,
    ),
    "look at a dump": Way(
        "a dump (`dataset.path`), globals (`dataset.globals`)",
        "Plinth's reading of their form, size, extensions and roles; `pg_restore --list`",
        ("programs", "original"),
        _GIB // 2,
        3600,
        _TASK_BYTES,
    ),
    "restore a dump": Way(
        "a dump (`dataset.path`)",
        "`pg_restore` or `psql`, with a role that is no superuser",
        ("programs", "original", "sockets", "network"),
        _LONG,
    ),
    "read a log": Way(
        "a log or a replay file (`workload.replay`, `plinth replay`)",
        "Plinth's reader of logs, which writes the replay file",
        ("original", "target"),
        _LONG,
    ),
}
"""Every way in which something brought reaches a process. SECURITY.md shows this table."""


@dataclass(frozen=True)
class View:
    """The paths that a confined process sees besides system folders. All but those of `programs` are real paths."""

    programs: tuple[Path, ...] = ()
    """Folders of programs and their libraries: read-only."""
    originals: tuple[Path, ...] = ()
    """What was brought: read-only, and nothing in it can be executed."""
    targets: tuple[Path, ...] = ()
    """Directories of the user, which it may write to."""
    sockets: tuple[Path, ...] = ()
    """Directories with sockets of servers."""
    own: tuple[Path, ...] = ()
    """Plinth's own files: read-only."""
    network: bool = False

    def check(self, way: Way) -> None:
        """Raise ValueError where a path is of a kind that the way does not name: the table would be wrong."""
        shows = {
            "programs": self.programs,
            "original": self.originals,
            "target": self.targets,
            "sockets": self.sockets,
            "network": self.network,
        }
        if more := [name for name, paths in shows.items() if paths and name not in way.sees]:
            raise ValueError(f"{way.process}: its way does not show {', '.join(more)}")
        if system := next(filter(holds_system, (*self.programs, *self.originals)), None):
            raise Refused(f"{system} holds the system's own programs: it was not brought")


class Connecting(TypedDict, total=False):
    """The fields of a `View` by which a client reaches a server."""

    sockets: tuple[Path, ...]
    network: bool


class Brought(NamedTuple):
    """A file or a directory that was brought, as the server's user sees it."""

    path: Path
    """Its real path."""
    is_directory: bool
    size_bytes: int
    modified_ns: int
    device: int
    inode: int


class NotReadable(NamedTuple):
    """A path that the server's user cannot read, and why."""

    path: Path
    reason: str


def holds_system(path: Path) -> bool:
    """Return whether a path is, or holds, a folder of the system's programs: nothing that was brought does."""
    return any(Path(folder).is_relative_to(path) for folder in confined_process.SYSTEM if folder not in _OTHERS_TOO)


def is_confined(owner: Owner) -> bool:
    """Return whether processes of `owner` get namespaces: for root with the right to make them."""
    return not owner.is_current_user and bool(effective_capabilities() & _CAP_SYS_ADMIN)


class Confined(NamedTuple):
    """What starts a confined process: the launcher, the number of the descriptor of a file that holds `asked`, and `words`."""

    launcher: tuple[str, ...]
    words: tuple[str, ...]
    asked: bytes


def confined(argv: Sequence[str], way: Way, view: View, owner: Owner) -> Confined:
    """Return what starts `argv` with this view as `owner`; root executes it."""
    view.check(way)
    return _command("run", owner, argv, way, view)


def program_folders(bindir: Path) -> tuple[Path, ...]:
    """Return what programs in `bindir` need: their libraries and shared files, which PostgreSQL's find by paths relative to their own.

    A wheel's libraries are in a folder NAME.libs next to that of its package (auditwheel). A program may be a link to one elsewhere, or a
    script that starts that of the wheel.
    """
    real = {bindir, *(Path(os.path.realpath(bindir / name)).parent for name in ("postgres", "initdb"))}
    beside = [one.parent / name for one in real for name in ("lib", "lib64", "share", "etc")]
    beside += [*real, *own_code()]
    beside += [
        folder.with_name(f"{folder.name}.libs") for one in real for folder in (one, *one.parents[:3]) if folder.name
    ]
    searched = [Path(word) for word in os.environ.get("LD_LIBRARY_PATH", "").split(":") if word.startswith("/")]
    folders = dict.fromkeys([bindir, *(folder for folder in (*beside, *searched) if folder.is_dir())])
    system = confined_process.SYSTEM
    # Nor a folder that holds the system, such as the root directory: a link of the bindir could lead there.
    return tuple(one for one in folders if not holds_system(one) and not any(map(one.is_relative_to, system)))


def connecting_to(host: str) -> Connecting:
    """Return what a client sees of a server: the directory of its socket, or the network."""
    return {"sockets": (Path(host),)} if host.startswith("/") else {"network": True}


def own_code() -> tuple[Path, ...]:
    """Return the folders that this Python and its packages are in. Root opens them, so the working directory is none of them, which
    sys.path may name."""
    packages = (place for place in sys.path if place.endswith(("/site-packages", "/dist-packages")))
    places = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, *packages, _PACKAGE)
    folders = {Path(place) for place in places if os.path.lexists(place)}
    folders |= {Path(os.path.realpath(folder)) for folder in folders}
    folders = {folder for folder in folders if not holds_system(folder)}
    return tuple(sorted(folder for folder in folders if not any(other in folders for other in folder.parents)))


def resolving(paths: Sequence[Path], owner: Owner) -> Confined:
    """Return what says what `paths` are, as `owner` sees them; root or `owner` executes it."""
    return _command("resolve", owner, (), None, View(originals=tuple(paths)))


def resolved(printed: str, paths: Sequence[Path]) -> list[Brought | NotReadable]:
    """Return what the command of `resolve_command` has printed of `paths`."""
    found: list[Brought | NotReadable] = []
    for path, described in zip(paths, json.loads(printed), strict=True):
        if "error" in described:
            found.append(NotReadable(path, described["error"]))
        else:
            found.append(Brought(**(described | {"path": Path(described["path"])})))
    return found


def unreadable(what: str, found: NotReadable, owner: Owner, key: str | None) -> PlinthError:
    """Return the error for something brought that the user who has to read it cannot."""
    if found.reason == os.strerror(errno.EACCES):
        return MissingCapability(
            f"the user that the server runs as cannot read the {what} {shown(str(found.path))}",
            where=key,
            hint=f"give it the right to: setfacl -m u:{owner.name}:rX, or chmod, on the {what} and the folders that it is in",
        )
    return UsageError(f"cannot read the {what} {shown(str(found.path))}: {shown(found.reason)}", where=key)


def _command(mode: str, owner: Owner, words: Sequence[str], way: Way | None, view: View) -> Confined:
    groups = [owner.gid] if owner.is_current_user else os.getgrouplist(owner.name, owner.gid)
    asked = {
        "uid": owner.uid,
        "gid": owner.gid,
        "groups": groups,
        **{name: [str(path) for path in getattr(view, name)] for name in _PATHS},
        "network": view.network,
        "shared_memory": way is not None and "shared memory" in way.sees,
        "memory_bytes": None if way is None else way.memory_bytes,
    }
    launcher = (sys.executable, "-I", "-S", confined_process.__file__, mode)
    return Confined(launcher, tuple(words), json.dumps(asked).encode())


_PATHS = ("programs", "originals", "targets", "sockets", "own")
