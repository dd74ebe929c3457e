"""Access to /proc and /sys, below a root directory that tests may replace."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from plinth.doctor.activity import Activity, read_activity
from plinth.model.facts import Fact
from plinth.system import cancel


class Unreadable(Exception):
    """A source could not be read; the message says which and why."""


@dataclass(frozen=True)
class Machine:
    """Reads files of /proc and /sys by their absolute path. Every failure raises Unreadable, which names the path.

    `own_pid` and its descendants do not count as other processes. `measures_a_server` says that a PostgreSQL that is
    already running may be the one that is measured. `before` and `after` are the activity counters at the start and
    the end of the observation window. `load_average` is /proc/loadavg as it was before we did anything here ourselves; None: as it is
    now.
    """

    root: Path
    own_pid: int
    before: Activity
    after: Activity
    measures_a_server: bool = False
    load_average: str | None = None

    @classmethod
    def watched(
        cls,
        window_s: float,
        root: Path = Path("/"),
        own_pid: int | None = None,
        wait: Callable[[float], None] = cancel.sleep,
        measures_a_server: bool = False,
        load_average: str | None = None,
    ) -> "Machine":
        """Return the machine after observing its activity for `window_s` seconds."""
        before = read_activity(root)
        wait(window_s)
        own_pid = os.getpid() if own_pid is None else own_pid
        return cls(root, own_pid, before, read_activity(root), measures_a_server, load_average)

    def text(self, path: str) -> str:
        """Return the content of a file without surrounding white space and NUL bytes."""
        try:
            return self._resolve(path).read_bytes().decode(errors="replace").strip("\0 \n")
        except OSError as error:
            raise Unreadable(f"{path}: {error.strerror or error}") from error

    def link(self, path: str) -> str:
        """Return the target of a symbolic link."""
        try:
            return str(self._resolve(path).readlink())
        except OSError as error:
            raise Unreadable(f"{path}: {error.strerror or error}") from error

    def number(self, path: str) -> int:
        """Return the integer in a file."""
        text = self.text(path)
        try:
            return int(text)
        except ValueError as error:
            raise Unreadable(f"{path}: not a number: {text[:60]!r}") from error

    def selected(self, path: str) -> str:
        """Return the word in brackets of a file such as "always [madvise] never"."""
        text = self.text(path)
        if match := re.search(r"\[(.+?)\]", text):
            return match[1]
        raise Unreadable(f"{path}: no value is in brackets in {text[:60]!r}")

    def sizes(self, path: str) -> dict[str, int]:
        """Return the sizes in bytes, and the counts, of a file such as /proc/meminfo, which has sizes in KiB."""
        lines = (line.partition(":") for line in self.text(path).splitlines())
        try:
            return {
                name: int(rest.removesuffix("kB")) * (1024 if rest.endswith("kB") else 1)
                for name, colon, rest in lines
                if colon
            }
        except ValueError as error:
            raise Unreadable(f"{path}: {error}") from error

    def exists(self, path: str) -> bool:
        """Return whether a file exists. A file in an inaccessible directory counts as missing."""
        return os.path.exists(self._resolve(path))  # noqa: PTH110 - Path.exists raises PermissionError in inaccessible directories

    def capacity_bytes(self, path: str) -> int:
        """Return the size of the file system that a directory is on."""
        try:
            status = os.statvfs(self._resolve(path))
        except OSError as error:
            raise Unreadable(f"{path}: {error.strerror or error}") from error
        return status.f_blocks * status.f_frsize

    def matching(self, folder: str, pattern: str) -> list[str]:
        """Return the sorted paths below a directory that match a glob pattern."""
        return sorted(
            f"{folder}/{path.relative_to(self._resolve(folder))}" for path in self._resolve(folder).glob(pattern)
        )

    def online_cpus(self) -> int:
        """Return the number of online processors."""
        path = "/sys/devices/system/cpu/online"
        try:
            return sum(1 + int(last or first) - int(first) for first, last in _ranges(self.text(path)))
        except ValueError as error:
            raise Unreadable(f"{path}: {error}") from error

    def reason(self, error: Exception) -> str:
        """Return the message of an error, with the path as it is without the replaced root."""
        if isinstance(error, OSError) and error.filename:
            return f"{self.host_path(error.filename)}: {error.strerror}"
        return str(error)

    def host_path(self, path: str) -> str:
        """Return the absolute path of a file below the replaced root."""
        return f"/{Path(path).relative_to(self.root)}"

    def fact(self, name: str, value: str | int | float | bool | list[str], path: str) -> Fact:
        """Return a fact that was read from `path`."""
        return Fact(name=name, value=value, source=path)

    def _resolve(self, path: str) -> Path:
        return self.root / path.lstrip("/")


def _ranges(text: str) -> Iterator[tuple[str, str]]:
    """Yield the ranges of a kernel list: "0-3,8" gives ("0", "3"), ("8", "")."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield first, last
