"""Data directories that are copies of one that initdb has made with the same options: a copy takes a fraction of the CPU time.

As PostgreSQL's own tests make theirs (INITDB_TEMPLATE of PostgreSQL::Test::Cluster). Copies have one system identifier, which
no test may look at. Tests of initdb itself set `REAL_INITDB` in the environment of their command.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from plinth.system.confinement import View
from plinth.system.owner import Owner
from plinth.system.runner import CommandError, Completed, Runner
from public_folder import PUBLIC

REAL_INITDB = ("PLINTH_TESTS_INITDB", "real")
_DATA, _WAL = "--pgdata=", "--waldir="

_KEEP = """\
set -e
cp --archive "$1" "$3.new.$$"
[ -z "$2" ] || { rm "$3.new.$$/pg_wal"; cp --archive "$2" "$3.new.$$/pg_wal"; }
mv --no-target-directory "$3.new.$$" "$3" || rm -rf "$3.new.$$"
"""
# What initdb leaves is on the drive, unless it was told --no-sync. A FUSE file system writes nothing at sync(2) of the whole.
_COPY = """\
set -e
[ -z "$(ls --almost-all "$2")" ]
[ -z "$3" ] || { mkdir --parents --mode 700 "$3"; [ -z "$(ls --almost-all "$3")" ]; }
cp --archive --reflink=auto "$1/." "$2"
[ -z "$3" ] || { mv "$2"/pg_wal/* "$3"; rmdir "$2/pg_wal"; ln --symbolic "$3" "$2/pg_wal"; }
[ -n "$4" ] || exit 0
for place in "$2" "$3"; do
  [ -n "$place" ] || continue
  case $(stat --file-system --format %T "$place") in
    tmpfs) ;;
    fuse*) find "$place" -exec sync {} + ;;
    *) sync --file-system "$place" ;;
  esac
done
"""
_EMPTY = """\
for place in "$@"; do [ ! -d "$place" ] || find "$place" -mindepth 1 -delete; done
"""


class DataDirectories:
    """Data directories for this process: the first of each kind is made by initdb, and kept to be copied."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="plinth-initdb-", dir=PUBLIC))
        self._folder.chmod(0o1777)
        self._pid = os.getpid()

    def initdb(self, run: Callable[..., Completed], argv: Sequence[str], owner: Owner | None, **how: Any) -> Completed:
        """Do what `run` would do with `argv`, the command line of an initdb; what cannot be copied, `run` does."""
        data, wal = (next((one.removeprefix(key) for one in argv if one.startswith(key)), "") for key in (_DATA, _WAL))
        kept = self._folder / _name(argv, owner)
        shell = Runner()  # it records nothing
        began_s = time.monotonic()
        if kept.is_dir():
            sync = "" if "--no-sync" in argv else "sync"
            try:
                shell.run(["sh", "-c", _COPY, "copy", str(kept), data, wal, sync], owner=owner)
            except CommandError:  # initdb says why
                shell.run(["sh", "-c", _EMPTY, "empty", data, *([wal] if wal else [])], owner=owner)
            else:
                return Completed(tuple(argv), 0, "", "", time.monotonic() - began_s)
        done = run(argv, owner=owner, **how)
        with contextlib.suppress(CommandError):  # such as one that has made nothing
            shell.run(["sh", "-c", _KEEP, "keep", data, wal, str(kept)], owner=owner)
        return done

    def remove(self) -> None:
        """Remove what is kept, unless this is a fork of the process that keeps it."""
        if os.getpid() == self._pid:
            shutil.rmtree(self._folder)


@contextmanager
def copied_data_directories() -> Iterator[None]:
    """Let every initdb that Plinth runs in this process, and in its forks, be one of `DataDirectories`."""
    directories, run = DataDirectories(), Runner.run_confined

    def copied(self: Runner, way: str, argv: Sequence[str], view: View, owner: Owner, **how: Any) -> Completed:
        def initdb(argv: Sequence[str], *, owner: Owner, **how: Any) -> Completed:
            return run(self, way, argv, view, owner, **how)

        makes = Path(argv[0]).name == "initdb" and any(one.startswith(_DATA) for one in argv)
        if not makes or REAL_INITDB[0] in os.environ:
            return initdb(argv, owner=owner, **how)
        return directories.initdb(initdb, argv, owner, **how)

    with mock.patch.object(Runner, "run_confined", copied):
        try:
            yield
        finally:
            directories.remove()


def _name(argv: Sequence[str], owner: Owner | None) -> str:
    """A name of what decides how a data directory looks: the program as it is now, its options, and who owns it."""
    program = Path(argv[0])
    version = (program.stat().st_mtime_ns, program.stat().st_size) if program.exists() else ()
    options = [one for one in argv[1:] if not one.startswith((_DATA, _WAL))]
    facts = (argv[0], version, options, owner.uid if owner else os.geteuid())
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
