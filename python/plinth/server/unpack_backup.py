"""A data directory from a base backup, or from a stopped data directory, of a server of others: copied, checked, and cut off from
where it comes from.

What is read of it and done with it is in `backup_task.py`, which confined processes run as the server's user.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path

from plinth.common.shown import shown
from plinth.model.base import Frozen
from plinth.model.errors import Refused, UsageError
from plinth.model.facts import Installation
from plinth.model.progress import Progress
from plinth.server.layout import BackupSource, ServerLayout
from plinth.system.confined_task import Task, run_task
from plinth.system.confinement import Brought, NotReadable, View, holds_system, program_folders, unreadable
from plinth.system.directory import make_directory_to_fill
from plinth.system.owner import Owner
from plinth.system.runner import Runner

MANIFEST = "backup_manifest"
WAL = "pg_wal"


class BackupPath(Frozen):
    """Where a backup is."""

    path: str


class LinkedPlace(Frozen):
    """Where a symbolic link of a data directory leads: `link` is relative to the data directory."""

    link: str
    path: str


class LinkedPlaces(Frozen):
    """Where the links of a backup lead."""

    places: tuple[LinkedPlace, ...]


class BackupFiles(Frozen):
    """What a backup is, by its files. Of tar files nothing but about the size is known before they are unpacked."""

    is_tar: bool
    size_bytes: int
    major: str | None = None
    has_label: bool = False
    is_in_use: bool = False
    links: tuple[LinkedPlace, ...] = ()


class Unpacking(Frozen):
    """A backup that is to be unpacked into the empty directory `into`, with the WAL in `wal_directory` if that is not within."""

    path: str
    links: tuple[LinkedPlace, ...]
    into: str
    wal_directory: str | None
    bindir: str
    major: int
    version: str
    verify: bool


_MODULE = "plinth.server.backup_task"
_LOOK = Task("look at a backup", _MODULE, "look", BackupFiles)
_LOOK_AT_LINKS = Task("look at a backup", _MODULE, "look_at_links", int)
_UNPACK = Task("unpack a backup", _MODULE, "unpack", BackupFiles)


def check_backup(source: BackupSource, installation: Installation, owner: Owner, runner: Runner) -> None:
    """Check what can be known without copying. Raises UsageError for what is no backup or cannot be read by `owner`, Refused for a server's
    data directory that is in use, and for one of another version."""
    _look(source, installation.major, installation.version, owner, runner)


def unpack_backup(
    layout: ServerLayout, source: BackupSource, runner: Runner, report: Callable[[Progress], None]
) -> None:
    """Make the data directory of `layout` from a backup. Raises RunError, Refused, UsageError, MissingCapability."""
    installation, owner = layout.installation, layout.owner
    links = _look(source, installation.major, installation.version, owner, runner)
    for target in layout.own_directories:
        make_directory_to_fill(target, owner)
    asked = Unpacking(
        path=str(source.path),
        links=links,
        into=str(layout.data_directory),
        wal_directory=None if layout.wal_directory is None else str(layout.wal_directory),
        bindir=installation.bindir,
        major=installation.major,
        version=installation.version,
        verify=source.verify,
    )
    view = View(
        programs=program_folders(Path(installation.bindir)),
        originals=(source.path, *(Path(one.path) for one in links)),
        targets=layout.own_directories,
    )
    run_task(_UNPACK, asked, view, owner, runner, report)


def check_files(path: Path, files: BackupFiles, major: int, version: str) -> None:
    """Raise UsageError for files that are no data directory, Refused for those of another version or of a server that runs."""
    if files.major is None:
        raise UsageError(
            f"{shown(str(path))} is no backup: it has neither base.tar nor PG_VERSION",
            where="dataset.path",
            hint="pg_basebackup makes one",
        )
    if files.major != str(major):
        raise Refused(
            f"the backup is of PostgreSQL {shown(files.major)}, and the server is {version}",
            where="dataset.path",
            hint=f"server.version = {files.major}" if files.major.isdecimal() else None,
        )
    if files.is_in_use and not files.has_label:
        raise Refused(
            f"a server runs on {shown(str(path))}, or was killed there",
            where="dataset.path",
            hint="a copy of files that change is not consistent: stop it, or take a pg_basebackup",
        )


def no_place_of_links(place: LinkedPlace, hint: str) -> Refused:
    """Return the error for a link of a backup that leads to what is neither a tablespace nor WAL."""
    kind = "WAL" if place.link == WAL else "tablespace"
    return Refused(
        f"the backup has a link {shown(place.link)}, which leads to what is no {kind}: {shown(place.path)}",
        where="dataset.path",
        hint=hint,
    )


def _look(source: BackupSource, major: int, version: str, owner: Owner, runner: Runner) -> tuple[LinkedPlace, ...]:
    """Check a backup, and return where its links lead, by real paths."""
    files, links = _look_at(source.path, owner, runner)
    if not files.is_tar:
        check_files(source.path, files, major, version)
    return links


def _look_at(path: Path, owner: Owner, runner: Runner) -> tuple[BackupFiles, tuple[LinkedPlace, ...]]:
    """Return what a backup is, with the size of what its links lead to, and where that is."""
    found = _directory(path, owner, runner)
    files: BackupFiles = run_task(_LOOK, BackupPath(path=str(found.path)), View(originals=(found.path,)), owner, runner)
    if not files.links:
        return files, ()
    links = tuple(_resolved_links(files.links, owner, runner))
    view = View(originals=tuple(Path(one.path) for one in links))
    linked_bytes: int = run_task(_LOOK_AT_LINKS, LinkedPlaces(places=links), view, owner, runner)
    return files.model_copy(update={"size_bytes": files.size_bytes + linked_bytes}), links


def _directory(path: Path, owner: Owner, runner: Runner) -> Brought:
    """Return a backup as `owner` sees it. Raises UsageError where there is none, or `owner` cannot read it, Refused for a link."""
    (found,) = runner.resolve([path], owner)
    is_there = not (isinstance(found, NotReadable) and found.reason == os.strerror(errno.ENOENT))
    if isinstance(found, NotReadable) and is_there:
        raise unreadable("backup", found, owner, "dataset.path")
    if isinstance(found, NotReadable) or not found.is_directory:
        raise UsageError(
            f"{shown(str(path))} is no backup: it is no directory", where="dataset.path", hint="pg_basebackup makes one"
        )
    if found.path != path:  # links were followed when the experiment was read
        raise Refused(
            f"the backup {shown(str(path))} is a link by now, and leads to {shown(str(found.path))}",
            where="dataset.path",
        )
    return found


def _resolved_links(links: tuple[LinkedPlace, ...], owner: Owner, runner: Runner) -> list[LinkedPlace]:
    found = []
    for link, place in zip(links, runner.resolve([Path(one.path) for one in links], owner), strict=True):
        if isinstance(place, NotReadable) or not place.is_directory:
            reason = place.reason if isinstance(place, NotReadable) else "it is no directory"
            raise UsageError(
                f"the backup has a link {shown(link.link)} to {shown(link.path)}, which user {owner.name} cannot read as "
                f"a directory: {reason}",
                where="dataset.path",
            )
        if holds_system(place.path):
            raise no_place_of_links(LinkedPlace(link=link.link, path=str(place.path)), "it holds the system's programs")
        found.append(LinkedPlace(link=link.link, path=str(place.path)))
    return found
