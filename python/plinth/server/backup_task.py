"""Tasks of confined processes that look into a base backup, or a stopped data directory, and copy it (`system.confined_task`).

Nothing of the original is written. Of the copy, what leads back is removed: its configuration with archiving and replication, its rules
for logins, its replication slots, links to tablespaces, which become directories of the copy.
"""

import os
import re
import shutil
import stat
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from plinth.common.shown import shown
from plinth.model.errors import Refused, RunError, UsageError
from plinth.model.progress import Progress
from plinth.server.unpack_backup import (
    MANIFEST,
    WAL,
    BackupFiles,
    BackupPath,
    LinkedPlace,
    LinkedPlaces,
    Unpacking,
    check_files,
    no_place_of_links,
)
from plinth.system.background import in_background
from plinth.system.confined_task import TaskContext
from plinth.system.confinement import View
from plinth.system.failures import from_os_error
from plinth.system.owner import current_user
from plinth.system.regular_file import read_small_file
from plinth.system.runner import CommandError, Runner

_LABEL = "backup_label"
_TAR_SUFFIXES = (".tar", ".tar.gz", ".tar.zst", ".tar.lz4")
_TAR_ALONE = re.compile(r"(base|pg_wal|\d+)(\.tar(\.(gz|zst|lz4))?)")
_BLOCK_BYTES = 8192
_VERSION_BYTES = 64
_REMOVED = (
    "postgresql.conf",
    "postgresql.auto.conf",
    "pg_hba.conf",
    "pg_ident.conf",
    "standby.signal",
    "recovery.signal",
    "recovery.conf",
    "tablespace_map",
    "postmaster.pid",
    "postmaster.opts",
    "current_logfiles",
    MANIFEST,
)
"""What leads back to the original, or speaks of its processes. Without `tablespace_map` the server makes no links to the original's
tablespaces."""
_EMPTIED = (
    "pg_replslot",
    "pg_dynshmem",
    "pg_notify",
    "pg_serial",
    "pg_snapshots",
    "pg_stat_tmp",
    "pg_subtrans",
    "pg_logical/mappings",
)
"""Folders whose content is of the original's slots and processes, as pg_basebackup leaves it out."""
_IN_TABLESPACE = re.compile(r"PG_\d+(\.\d+)?_\d+")
_IN_WAL = re.compile(r"[0-9A-F]{24}(\.partial|\.[0-9A-F]{8}\.backup)?|[0-9A-F]{8}\.history|archive_status|summaries")
_TABLESPACES = "pg_tblspc"
_MOST_LINKS = 10_000
_SPECIAL_BITS = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX
_SHOWN_UNREADABLE = 3
_PROGRESS_S = 0.5


def look(backup: BackupPath, context: TaskContext) -> BackupFiles:
    """Return what a backup is, by its files. Raises UsageError for what is no backup or cannot be read."""
    path = Path(backup.path)
    _check_readable(path)
    size_bytes = _size_bytes(path)
    if _tar_of(path, "base") is not None:
        return BackupFiles(is_tar=True, size_bytes=_unpacked_bytes(path))
    return _directory_files(path, size_bytes)


def _directory_files(path: Path, size_bytes: int) -> BackupFiles:
    links = []
    for link in _links(path):
        target = link.readlink()
        links.append(LinkedPlace(link=str(link.relative_to(path)), path=str(link.parent / target)))
    if len(links) > _MOST_LINKS:
        raise Refused(f"the backup has {len(links):,} links; {_MOST_LINKS:,} are read", where="dataset.path")
    return BackupFiles(
        is_tar=False,
        major=_major(path),
        has_label=_is_regular(path / _LABEL),
        is_in_use=os.path.lexists(path / "postmaster.pid"),
        links=tuple(links),
        size_bytes=size_bytes,
    )


def look_at_links(places: LinkedPlaces, context: TaskContext) -> int:
    """Check that links of a backup lead to tablespaces and WAL, and return the bytes there. Raises Refused, UsageError."""
    for place in places.places:
        _check_place(place)
        _check_readable(Path(place.path))
    return sum(_size_bytes(Path(place.path)) for place in places.places)


def unpack(asked: Unpacking, context: TaskContext) -> BackupFiles:
    """Copy a backup into an empty data directory, check it, and cut it off from its original; returns what the copy is.

    Raises RunError, Refused, UsageError, CommandError.
    """
    path, into, runner = Path(asked.path), Path(asked.into), context.runner
    os.umask(0o077)
    if any(into.iterdir()):
        raise Refused("the directory for the copy is not empty", where=asked.into)
    tar = _tar_of(path, "base")
    manifest = path / MANIFEST
    has_to_be_verified = asked.verify and os.path.lexists(manifest)
    if has_to_be_verified and not _is_regular(manifest):
        raise Refused(
            f"{MANIFEST} of the backup is a link",
            where="dataset.path",
            hint="put the file in its place; or dataset.verify = false",
        )
    # Before 18 pg_verifybackup reads no tar files, only what was unpacked of them.
    is_verified_unpacked = tar is not None and asked.major < 18
    if has_to_be_verified and not is_verified_unpacked:
        _verify(path, manifest, asked, runner, is_tar=tar is not None)
    total_bytes = _size_bytes(path) + sum(_size_bytes(Path(one.path)) for one in asked.links)
    with _copying(into, total_bytes, context.report):
        if tar is None:
            _copy(path, into, runner)
            _take_linked(asked.links, into, runner)
        else:
            _unpack_tars(path, tar, into, runner)
    if has_to_be_verified and is_verified_unpacked:
        _refuse_links(into, but=_REMOVED)
        _verify(into, manifest, asked, runner)
    found = _directory_files(into, 0)
    check_files(into, found, asked.major, asked.version)
    _remove(into)
    _refuse_links(into)  # before a program reads the copy
    _check_control_file(into, asked, runner)
    _empty(into)
    if asked.wal_directory is not None:
        for entry in (into / WAL).iterdir():
            shutil.move(entry, asked.wal_directory)
        (into / WAL).rmdir()
        (into / WAL).symlink_to(asked.wal_directory)
    into.chmod(0o700)
    return found


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _major(path: Path) -> str | None:
    """Return what PG_VERSION says; None where there is none."""
    try:
        return read_small_file(path / "PG_VERSION", _VERSION_BYTES).decode(errors="replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"PG_VERSION of the backup cannot be read: {error.strerror}", where="dataset.path") from error


def _check_readable(path: Path) -> None:
    """Raise UsageError where this user cannot read a file or a folder of the backup, Refused for what is neither."""
    unreadable: list[str] = []
    for folder, folders, files in os.walk(path):
        for name in files:
            _check_kind(Path(folder, name), path)
        unreadable += [
            str(Path(folder, name).relative_to(path))
            for names, right in ((folders, os.R_OK | os.X_OK), (files, os.R_OK))
            for name in names
            if not Path(folder, name).is_symlink() and not os.access(Path(folder, name), right)
        ]
    if unreadable:
        user = current_user().name
        raise UsageError(
            f"user {user} cannot read {len(unreadable):,} files or folders of the backup",
            where="dataset.path",
            hint=f"give it the right to: setfacl -R -m u:{user}:rX, or chmod, on the backup",
            details=[shown(name) for name in sorted(unreadable)[:_SHOWN_UNREADABLE]],
        )


def _check_kind(file: Path, backup: Path) -> None:
    """Refuse a FIFO, a socket or a device, on which a program of the backup would wait."""
    mode = file.lstat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise Refused(
            f"the backup has what is neither a file nor a directory: {shown(str(file.relative_to(backup)))}",
            where="dataset.path",
            hint="PostgreSQL makes none",
        )


def _tar_of(folder: Path, name: str) -> Path | None:
    return next((file for suffix in _TAR_SUFFIXES if _is_regular(file := folder / f"{name}{suffix}")), None)


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                status = Path(parent, name).lstat()
            except FileNotFoundError:  # it is being copied
                continue
            if stat.S_ISREG(status.st_mode):
                yield Path(parent, name), status


def _size_bytes(folder: Path) -> int:
    return sum(status.st_size for _, status in _files(folder))


_COMPRESSION = 3
"""Times by which a compressed backup is usually smaller."""


def _unpacked_bytes(folder: Path) -> int:
    """Return about how many bytes the tar files of a backup hold."""
    compressed = (".gz", ".zst", ".lz4")
    return sum(status.st_size * (_COMPRESSION if file.suffix in compressed else 1) for file, status in _files(folder))


def _verify(path: Path, manifest: Path, asked: Unpacking, runner: Runner, *, is_tar: bool = False) -> None:
    """Have pg_verifybackup compare a backup with its manifest."""
    words = [f"--manifest-path={manifest}", "--no-parse-wal", "--quiet", *(["--format=tar"] if is_tar else [])]
    try:
        _run_program("pg_verifybackup", [*words, "--", str(path)], asked, runner)
    except CommandError as error:
        raise RunError(
            f"the backup {asked.path} is not what its manifest says",
            where="dataset.path",
            hint="dataset.verify = false takes it as it is",
            details=error.completed.stderr.splitlines()[:5],
        ) from error


def _run_program(name: str, words: list[str], asked: Unpacking, runner: Runner) -> str:
    """Run a program of the installation, in the confinement that this process is in already."""
    return runner.run_confined("unpack a backup", [f"{asked.bindir}/{name}", *words], View(), current_user()).stdout


def _copy(source: Path, into: Path, runner: Runner) -> None:
    runner.run(["cp", "--archive", "--reflink=auto", "--no-target-directory", "--", str(source), str(into)])


def _unpack_tars(folder: Path, base: Path, into: Path, runner: Runner) -> None:
    """Unpack base.tar, pg_wal.tar, and a tar file for each tablespace, which has its OID as name."""
    _extract(base, into, runner)
    for link in _links(into):
        if link.parent.name == _TABLESPACES:
            link.unlink()
    _refuse_links(into)
    for file in sorted(folder.iterdir()):
        named = _TAR_ALONE.fullmatch(file.name)
        if named is None or named[1] == "base" or not _is_regular(file):
            continue
        place = into / WAL if named[1] == WAL else into / _TABLESPACES / named[1]
        place.mkdir(mode=0o700, exist_ok=True)
        _extract(file, place, runner)


def _extract(file: Path, into: Path, runner: Runner) -> None:
    ways = {".gz": ["--gzip"], ".zst": ["--zstd"], ".lz4": ["--use-compress-program=lz4"]}
    runner.run(
        [
            "tar",
            "--extract",
            *ways.get(file.suffix, []),
            f"--file={file}",
            f"--directory={into}",
            "--no-same-owner",
            "--force-local",
            "--delay-directory-restore",
        ]
    )


def _links(directory: Path) -> list[Path]:
    """Return the links of a data directory that PostgreSQL itself makes: to tablespaces, and to the WAL."""
    folder, wal = directory / _TABLESPACES, directory / WAL
    if folder.is_symlink():
        raise Refused(f"the backup has a link {_TABLESPACES}, where PostgreSQL has a directory", where="dataset.path")
    links = [entry for entry in folder.iterdir() if entry.is_symlink()] if folder.is_dir() else []
    return [*sorted(links), *([wal] if wal.is_symlink() else [])]


def _take_linked(links: tuple[LinkedPlace, ...], into: Path, runner: Runner) -> None:
    """Put a copy of each tablespace where its link was, and of the WAL where that is a link."""
    for linked in links:
        link = into / linked.link
        if link not in _links(into):
            raise RunError(f"the backup has changed: it has no link {shown(linked.link)}", where="dataset.path")
        link.unlink()
        _check_place(linked)
        _copy(Path(linked.path), link, runner)


def _check_place(place: LinkedPlace) -> None:
    """Refuse a link that leads to what is neither a tablespace nor WAL, such as the root of this machine."""
    allowed = _IN_WAL if place.link == WAL else _IN_TABLESPACE
    other = next((entry.name for entry in Path(place.path).iterdir() if not allowed.fullmatch(entry.name)), None)
    if other is not None:
        raise no_place_of_links(place, f"it has {shown(other)}")


def _refuse_links(directory: Path, but: Collection[str] = ()) -> None:
    """Refuse what a server would follow out of its data directory, and take special rights from all else. Names in `but` are removed later."""
    for folder, folders, files in os.walk(directory):
        for name in (*folders, *files):
            path = Path(folder) / name
            if str(path.relative_to(directory)) in but:
                continue
            status = path.lstat()
            if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
                raise Refused(
                    f"the backup has what is neither a file nor a directory: {shown(str(path.relative_to(directory)))}",
                    where="dataset.path",
                    hint="a server would follow it out of its copy",
                )
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                raise Refused(
                    f"the backup has a file with several names: {shown(str(path.relative_to(directory)))}",
                    where="dataset.path",
                    hint="PostgreSQL makes none",
                )
            if status.st_mode & _SPECIAL_BITS:
                path.chmod(stat.S_IMODE(status.st_mode) & ~_SPECIAL_BITS)


def _check_control_file(directory: Path, asked: Unpacking, runner: Runner) -> None:
    printed = _run_program("pg_controldata", [str(directory)], asked, runner)
    facts = {key: value.strip() for line in printed.splitlines() for key, _, value in [line.partition(":")]}
    block = facts.get("Database block size")
    if block != str(_BLOCK_BYTES):
        raise Refused(
            f"the backup has blocks of {shown(str(block))} bytes, and servers here have {_BLOCK_BYTES}",
            where="dataset.path",
        )
    state = facts.get("Database cluster state", "")
    if not _is_regular(directory / _LABEL) and state not in ("shut down", "shut down in recovery"):
        raise Refused(
            f"the data directory was not shut down: {shown(state) or 'its state is not known'}",
            where="dataset.path",
            hint="a copy of files that change is not consistent: stop the server, or take a pg_basebackup",
        )


def _remove(directory: Path) -> None:
    """Remove the files that lead back to the original."""
    try:
        for name in _REMOVED:
            (directory / name).unlink(missing_ok=True)
    except OSError as error:
        raise from_os_error(error, "cut the copy off from its original", directory) from error


def _empty(directory: Path) -> None:
    """Empty the folders that lead back to the original, and make an empty configuration."""
    try:
        for name in _EMPTIED:
            folder = directory / name
            for entry in folder.iterdir() if folder.is_dir() else ():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        (directory / "postgresql.conf").touch(mode=0o600)
    except OSError as error:
        raise from_os_error(error, "cut the copy off from its original", directory) from error


def _copying(into: Path, total_bytes: int, report: Callable[[Progress], None]) -> AbstractContextManager[None]:
    """Report how much is there while the block runs."""

    def look(ended: threading.Event) -> None:
        while not ended.wait(_PROGRESS_S):
            report(Progress("copy the backup", float(_size_bytes(into)), float(total_bytes), "bytes"))

    return in_background(look, "backup")
