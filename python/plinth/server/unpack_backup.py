"""A data directory from a base backup, or from a stopped data directory, of a server of others: copied, checked, and cut off from
where it comes from.

Nothing of the original is written. Of the copy, what leads back is removed: its configuration with archiving and replication, its rules
for logins, its replication slots, links to tablespaces, which become directories of the copy.
"""

import os
import re
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plinth.common.shown import shown
from plinth.model.errors import Refused, RunError, UsageError
from plinth.model.facts import Installation
from plinth.model.progress import Progress
from plinth.system.background import in_background
from plinth.system.failures import from_os_error
from plinth.system.owner import Owner
from plinth.system.runner import CommandError, Runner

if TYPE_CHECKING:
    from plinth.server.layout import ServerLayout

_LABEL = "backup_label"
_MANIFEST = "backup_manifest"
_TAR_SUFFIXES = (".tar", ".tar.gz", ".tar.zst", ".tar.lz4")
_BLOCK_BYTES = 8192
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
    _MANIFEST,
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
_PROGRESS_S = 0.5


@dataclass(frozen=True)
class BackupSource:
    """A backup, and the database of it that is used."""

    path: Path
    database: str
    verify: bool = True


def check_backup(source: BackupSource, installation: Installation) -> None:
    """Check what can be known without copying. Raises UsageError for what is no backup, Refused for a server's data directory that is in
    use, and for one of another version."""
    path = source.path
    if not path.is_dir():
        raise UsageError(
            f"{path} is no backup: it is no directory", where="dataset.path", hint="pg_basebackup makes one"
        )
    if _tar_of(path, "base") is not None:
        return  # the rest is known once it is unpacked
    _check_directory(path, installation)


def _check_directory(path: Path, installation: Installation) -> None:
    version = path / "PG_VERSION"
    if not version.is_file():
        raise UsageError(
            f"{path} is no backup: it has neither base.tar nor PG_VERSION",
            where="dataset.path",
            hint="pg_basebackup makes one",
        )
    major = version.read_text(errors="replace").strip()
    if major != str(installation.major):
        raise Refused(
            f"the backup is of PostgreSQL {major}, and the server is {installation.version}",
            where="dataset.path",
            hint=f"server.version = {major}" if major.isdigit() else None,
        )
    if (path / _LABEL).exists():
        return
    if (path / "postmaster.pid").exists():
        raise Refused(
            f"a server runs on {path}, or was killed there",
            where="dataset.path",
            hint="a copy of files that change is not consistent: stop it, or take a pg_basebackup",
        )


def unpack_backup(
    layout: "ServerLayout", source: BackupSource, runner: Runner, report: Callable[[Progress], None]
) -> None:
    """Make the data directory of `layout` from a backup. Raises RunError, Refused, UsageError, CommandError."""
    installation, into = layout.installation, layout.data_directory
    check_backup(source, installation)
    tar = _tar_of(source.path, "base")
    manifest = source.path / _MANIFEST
    has_to_be_verified = source.verify and manifest.exists()
    # Before 18 pg_verifybackup reads no tar files, only what was unpacked of them.
    is_verified_unpacked = tar is not None and installation.major < 18
    if has_to_be_verified and not is_verified_unpacked:
        _verify(source.path, manifest, installation, runner, is_tar=tar is not None)
    with _copying(into, _size_bytes(source.path), report):
        if tar is None:
            runner.run(
                ["cp", "--archive", "--reflink=auto", "--no-target-directory", "--", str(source.path), str(into)]
            )
            _take_tablespaces(source.path, into, runner)
        else:
            _unpack_tars(source.path, tar, into, runner)
    if has_to_be_verified and is_verified_unpacked:
        _verify(into, manifest, installation, runner)
    _check_directory(into, installation)
    _check_control_file(into, installation, runner)
    _refuse_links(into)
    _cut_off(into)
    if layout.wal_directory is not None:
        shutil.move(into / "pg_wal", layout.wal_directory)
        (into / "pg_wal").symlink_to(layout.wal_directory)
        _give(layout.wal_directory, layout.owner, runner)
    into.chmod(0o700)
    _give(into, layout.owner, runner)


def _give(path: Path, owner: Owner, runner: Runner) -> None:
    if not owner.is_current_user:
        runner.run(["chown", "--recursive", "--no-dereference", f"{owner.uid}:{owner.gid}", "--", str(path)])


def _tar_of(folder: Path, name: str) -> Path | None:
    return next(
        (folder / f"{name}{suffix}" for suffix in _TAR_SUFFIXES if (folder / f"{name}{suffix}").is_file()), None
    )


def _size_bytes(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if stat.S_ISREG(file.lstat().st_mode))


def _verify(path: Path, manifest: Path, installation: Installation, runner: Runner, *, is_tar: bool = False) -> None:
    """Have pg_verifybackup compare a backup with its manifest."""
    words = [f"--manifest-path={manifest}", "--no-parse-wal", "--quiet", *(["--format=tar"] if is_tar else [])]
    try:
        runner.run([f"{installation.bindir}/pg_verifybackup", *words, "--", str(path)])
    except CommandError as error:
        raise RunError(
            f"the backup {manifest.parent} is not what its manifest says",
            where="dataset.path",
            hint="dataset.verify = false takes it as it is",
            details=error.completed.stderr.splitlines()[:5],
        ) from error


def _unpack_tars(folder: Path, base: Path, into: Path, runner: Runner) -> None:
    """Unpack base.tar, pg_wal.tar, and a tar file for each tablespace, which has its OID as name."""
    into.mkdir(mode=0o700)
    _extract(base, into, runner)
    wal = _tar_of(folder, "pg_wal")
    if wal is not None:
        _extract(wal, into / "pg_wal", runner)
    for link in _links_of_tablespaces(into):
        link.unlink()
    for file in sorted(folder.iterdir()):
        name = file.name.partition(".")[0]
        if name.isdigit() and file.name.removeprefix(name) in _TAR_SUFFIXES:
            tablespace = into / "pg_tblspc" / name
            tablespace.mkdir(mode=0o700)
            _extract(file, tablespace, runner)


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
            "--delay-directory-restore",
        ]
    )


def _links_of_tablespaces(directory: Path) -> Iterator[Path]:
    folder = directory / "pg_tblspc"
    if folder.is_dir():
        yield from [entry for entry in folder.iterdir() if entry.is_symlink()]


def _take_tablespaces(source: Path, into: Path, runner: Runner) -> None:
    """Put a copy of each tablespace where its link was, and of the WAL where that is a link."""
    for link in [*_links_of_tablespaces(into), *([into / "pg_wal"] if (into / "pg_wal").is_symlink() else [])]:
        original = source / link.relative_to(into)
        link.unlink()
        if not original.is_dir():
            raise RunError(
                f"the backup has a link {original}, and there is no directory where it leads", where="dataset.path"
            )
        _check_place(original, is_wal=link.name == "pg_wal")
        runner.run(
            ["cp", "--archive", "--reflink=auto", "--no-target-directory", "--", f"{original.resolve()}", str(link)]
        )


def _check_place(place: Path, *, is_wal: bool) -> None:
    """Refuse a link that leads to what is neither a tablespace nor WAL, such as the root of this machine."""
    allowed = _IN_WAL if is_wal else _IN_TABLESPACE
    other = next((entry.name for entry in place.iterdir() if not allowed.fullmatch(entry.name)), None)
    if other is not None:
        raise Refused(
            f"the backup has a link {place}, which leads to what is no {'WAL' if is_wal else 'tablespace'}: {place.resolve()}",
            where="dataset.path",
            hint=f"it has {shown(other)}",
        )


def _refuse_links(directory: Path) -> None:
    """Refuse what a server would follow out of its data directory."""
    for folder, folders, files in os.walk(directory):
        for name in (*folders, *files):
            path = Path(folder) / name
            mode = path.lstat().st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                raise Refused(
                    f"the backup has what is neither a file nor a directory: {path.relative_to(directory)}",
                    where="dataset.path",
                    hint="a server would follow it out of its copy",
                )


def _check_control_file(directory: Path, installation: Installation, runner: Runner) -> None:
    printed = runner.run([f"{installation.bindir}/pg_controldata", str(directory)]).stdout
    facts = {key: value.strip() for line in printed.splitlines() for key, _, value in [line.partition(":")]}
    block = facts.get("Database block size")
    if block != str(_BLOCK_BYTES):
        raise Refused(
            f"the backup has blocks of {block} bytes, and servers here have {_BLOCK_BYTES}", where="dataset.path"
        )
    state = facts.get("Database cluster state", "")
    if not (directory / _LABEL).exists() and state not in ("shut down", "shut down in recovery"):
        raise Refused(
            f"the data directory was not shut down: {state or 'its state is not known'}",
            where="dataset.path",
            hint="a copy of files that change is not consistent: stop the server, or take a pg_basebackup",
        )


def _cut_off(directory: Path) -> None:
    """Remove what leads back to the original."""
    try:
        for name in _REMOVED:
            (directory / name).unlink(missing_ok=True)
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
            try:
                done_bytes = _size_bytes(into)
            except OSError:
                continue  # what is being copied changes
            report(Progress("copy the backup", float(done_bytes), float(total_bytes), "bytes"))

    return in_background(look, "backup")
