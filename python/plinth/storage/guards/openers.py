"""Which processes have a block device open or mapped, as far as /proc shows: proc(5), proc_pid_fdinfo(5), proc_pid_map_files(5).

Each thread is asked, since each may have a table of open files of its own (unshare(2), CLONE_FILES), and a leader that has
ended (a zombie) has none while its threads run. A mapping outlives the descriptor that it was made from, and so does a file
registered with io_uring. What it cannot find: docs/concepts/guards.md.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plinth.storage.devices.block_device import device_number
from plinth.storage.guards.uses import PROC, NotExamined, Numbers, Use, is_gone, named, processes, who

_RING = "anon_inode:[io_uring]"
_SOCKET = "socket:["
_REGISTERED = re.compile(r"^ *\d+: (.+)$", re.MULTILINE)
_IN_FLIGHT = re.compile(r"^scm_fds:\s*([1-9]\d*)$", re.MULTILINE)
_MAPPING = re.compile(r"(?P<range>\S+) \S+ \S+ (?P<file>\S+ [1-9]\d*) *(?P<path>.*)")
"""A line of /proc/PID/maps that is about a file: its range of addresses, its device and inode, its path."""


def opened_by(numbers: Numbers, proc: Path = PROC) -> tuple[list[Use], list[NotExamined]]:
    """Processes, other than this one, that have these devices open, mapped, or registered with io_uring."""
    look = _ProcessScan(numbers, proc)
    for folder in processes(proc):
        if folder.name != str(os.getpid()):
            look.at(folder)
    return list(look.found), list(look.unseen)


class _ProcessScan:
    """One scan of all processes."""

    def __init__(self, numbers: Numbers, proc: Path) -> None:
        self.found: dict[Use, None] = {}
        self.unseen: dict[NotExamined, None] = {}
        self._numbers = numbers
        self._proc = proc
        self._mapped: dict[tuple[str, str], str | None] = {}
        """The mappings that were examined; most are of the same libraries."""

    def at(self, process: Path) -> None:
        with self._noting_errors(f"threads of {who(process)}"):
            threads = [int(thread.name) for thread in (process / "task").iterdir()]
            for thread in threads:
                with self._noting_errors(f"open files of {who(process)}"):
                    self._open_files(process, process / "task" / str(thread))
            with self._noting_errors(f"mappings of {who(process)}"):
                # The memory is shared by all of them, and reached by each that lives.
                next((True for thread in threads if self._mappings(process, self._proc / str(thread))), None)

    def _open_files(self, process: Path, thread: Path) -> None:
        for link in (thread / "fd").iterdir():
            with _closed_meanwhile():
                target = link.stat()
                if stat.S_ISBLK(target.st_mode):
                    self._use(self._numbers.get(device_number(target.st_rdev)), process, "")
                elif stat.S_ISSOCK(target.st_mode):
                    if _IN_FLIGHT.search((thread / "fdinfo" / link.name).read_text()):
                        on_their_way = f"files that are on their way to {who(process)}"
                        self.unseen[NotExamined(on_their_way, "/proc shows no more than their number")] = None
                elif str(link.readlink()) == _RING:
                    for path in _REGISTERED.findall((thread / "fdinfo" / link.name).read_text(errors="replace")):
                        self._use(named(path, self._numbers), process, ", registered with io_uring")

    def _mappings(self, process: Path, thread: Path) -> bool:
        """Look at what a thread has mapped; whether it has any memory, which an ended one has not."""
        lines = (thread / "maps").read_text(errors="replace").splitlines()
        for line in lines:
            if not (mapping := _MAPPING.fullmatch(line)):
                continue  # memory without a file
            file = (mapping["file"], mapping["path"])
            if file not in self._mapped:
                try:
                    # Its path may lead elsewhere by now, and the device in `maps` is that of the node and not the node's own.
                    target = (thread / "map_files" / _as_named(mapping["range"])).stat()
                except FileNotFoundError:
                    continue  # unmapped meanwhile
                is_block = stat.S_ISBLK(target.st_mode)
                self._mapped[file] = self._numbers.get(device_number(target.st_rdev)) if is_block else None
            self._use(self._mapped[file], process, ", mapped into its memory")
        return bool(lines)

    def _use(self, name: str | None, process: Path, how: str) -> None:
        if name is not None:
            self.found[Use(name, f"{who(process)}{how}")] = None

    @contextmanager
    def _noting_errors(self, what: str) -> Iterator[None]:
        """What cannot be examined is reported; processes that have ended meanwhile need not be."""
        try:
            yield
        except OSError as error:
            if not is_gone(error):
                self.unseen[NotExamined(what, error.strerror or str(error))] = None


@contextmanager
def _closed_meanwhile() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise


def _as_named(addresses: str) -> str:
    """A range as map_files names it: without the zeros in front that `maps` may have."""
    return "-".join(f"{int(address, 16):x}" for address in addresses.split("-"))
