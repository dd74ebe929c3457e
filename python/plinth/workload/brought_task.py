"""Tasks of confined processes that look into dumps, globals and backups of the user's own (`system.confined_task`)."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from plinth.common.shown import shown
from plinth.model.errors import UsageError
from plinth.system.confined_task import TaskContext
from plinth.system.owner import current_user
from plinth.system.regular_file import open_regular_file, read_small_file
from plinth.workload.brought_files import BroughtPath, DumpFiles, Extensions, Form, Globals, TreeSize

_COMPRESSED = (".gz", ".zst", ".lz4")
_HEAD_BYTES = 512
_EXTENSION = re.compile(rb'CREATE EXTENSION (?:IF NOT EXISTS )?("(?:[^"]|"")+"|[\w-]+)', re.IGNORECASE)
_MOST_LINE_BYTES = 1024
_MOST_EXTENSIONS = 10_000
# As pg_dumpall writes them; nothing else of its file is used, and none of it is run.
_IDENTIFIER = r'("(?:[^"]|"")+"|\w+)'
_CREATE_ROLE = re.compile(rf"^CREATE ROLE {_IDENTIFIER};$", re.MULTILINE)
_MEMBERSHIP = re.compile(
    rf"^GRANT {_IDENTIFIER} TO {_IDENTIFIER}(?: WITH [^;\n]*| GRANTED BY [^;\n]*)?;$", re.MULTILINE
)
_MOST_GLOBALS_BYTES = 16 * 2**20


def tree_size(brought: BroughtPath, context: TaskContext) -> TreeSize:
    """Return how many bytes the files of a directory have, by whether they are compressed."""
    plain_bytes = compressed_bytes = 0
    for name, size_bytes in _files(Path(brought.path)):
        if name.endswith(_COMPRESSED):
            compressed_bytes += size_bytes
        else:
            plain_bytes += size_bytes
    return TreeSize(plain_bytes=plain_bytes, compressed_bytes=compressed_bytes)


def look_at_dump(brought: BroughtPath, context: TaskContext) -> DumpFiles:
    """Return the format and the size of a dump. Raises UsageError for what is none, or cannot be read."""
    path = Path(brought.path)
    if not path.is_dir():
        return DumpFiles(form=_form(path), size_bytes=path.stat().st_size)
    contents = path / "toc.dat"
    if not contents.exists():
        raise UsageError(
            f"{shown(str(path))} is no dump: a directory without toc.dat",
            where="dataset.path",
            hint="pg_dump -Fd makes one",
        )
    unreadable = [entry.name for entry in path.iterdir() if not os.access(entry, os.R_OK)]
    if unreadable:
        user = current_user().name
        raise UsageError(
            f"user {user} cannot read {len(unreadable):,} files of the dump {shown(str(path))}, such as {shown(unreadable[0])}",
            where="dataset.path",
            hint=f"give it the right to: setfacl -R -m u:{user}:rX, or chmod, on the dump",
        )
    return DumpFiles(form="directory", size_bytes=sum(size_bytes for _, size_bytes in _files(path)))


def extensions(brought: BroughtPath, context: TaskContext) -> Extensions:
    """Return the extensions that a script makes, in its order."""
    found: dict[str, None] = {}
    with open_regular_file(Path(brought.path)) as raw, open(raw.fileno(), "rb", closefd=False) as file:
        while line := file.readline(_MOST_LINE_BYTES):
            start = line.lstrip()
            if start[:16].upper() == b"CREATE EXTENSION" and (match := _EXTENSION.match(start)):
                found[match[1].decode(errors="replace")] = None
                if len(found) > _MOST_EXTENSIONS:
                    raise UsageError(f"the dump makes more than {_MOST_EXTENSIONS:,} extensions", where="dataset.path")
    return Extensions(names=tuple(found))


def read_globals(brought: BroughtPath, context: TaskContext) -> Globals:
    """Return the roles that globals make, and their memberships."""
    text = read_small_file(Path(brought.path), _MOST_GLOBALS_BYTES).decode(errors="replace")
    return Globals(
        roles=tuple(map(_unquoted, _CREATE_ROLE.findall(text))),
        memberships=tuple((_unquoted(group), _unquoted(member)) for group, member in _MEMBERSHIP.findall(text)),
    )


def _form(path: Path) -> Form:
    head = read_small_file(path, _HEAD_BYTES)
    if head.startswith(b"PGDMP"):
        return "custom"
    if head[257:262] == b"ustar":
        return "tar"
    if b"\0" in head or head.startswith(b"\x1f\x8b"):
        raise UsageError(
            f"{shown(str(path))} is no dump: neither an archive of pg_dump nor SQL",
            where="dataset.path",
            hint="a compressed SQL file has to be unpacked",
        )
    return "plain"


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the name and size of each regular file below a folder, without following links."""
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                status = Path(parent, name).lstat()
            except FileNotFoundError:  # the original is in use
                continue
            if stat.S_ISREG(status.st_mode):
                yield name, status.st_size


def _unquoted(identifier: str) -> str:
    return identifier[1:-1].replace('""', '"') if identifier.startswith('"') else identifier
