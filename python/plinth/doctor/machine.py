"""The machine as its /proc and /sys show it, below a root that a test may lay elsewhere."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from plinth.doctor.activity import Activity, read_activity
from plinth.model.facts import Fact
from plinth.system import cancel


class Unreadable(Exception):
    """Something could not be read; the text says what and why."""


@dataclass(frozen=True)
class Machine:
    """Reads files by their usual path. Whatever goes wrong is Unreadable, which names the path.

    `own_pid` is left out of the neighbours, with all that it started. `measures_a_server` says that a PostgreSQL which was
    there before may be the one that is measured. `before` and `after` are what the processes and
    devices had done by the beginning and the end of a window in which they were watched.
    """

    root: Path
    own_pid: int
    before: Activity
    after: Activity
    measures_a_server: bool = False

    @classmethod
    def watched(
        cls,
        window_s: float,
        root: Path = Path("/"),
        own_pid: int | None = None,
        wait: Callable[[float], None] = cancel.sleep,
        measures_a_server: bool = False,
    ) -> "Machine":
        """The machine, after its activity has been watched for `window_s`."""
        before = read_activity(root)
        wait(window_s)
        own_pid = os.getpid() if own_pid is None else own_pid
        return cls(root, own_pid, before, read_activity(root), measures_a_server)

    def text(self, path: str) -> str:
        """A file, stripped."""
        try:
            return self._below(path).read_bytes().decode(errors="replace").strip("\0 \n")
        except OSError as error:
            raise Unreadable(f"{path}: {error.strerror or error}") from error

    def link(self, path: str) -> str:
        """Where a symbolic link leads to."""
        try:
            return str(self._below(path).readlink())
        except OSError as error:
            raise Unreadable(f"{path}: {error.strerror or error}") from error

    def number(self, path: str) -> int:
        """A file that holds a whole number."""
        text = self.text(path)
        try:
            return int(text)
        except ValueError as error:
            raise Unreadable(f"{path}: not a number: {text[:60]!r}") from error

    def chosen(self, path: str) -> str:
        """The word in brackets of a file such as "always [madvise] never"."""
        text = self.text(path)
        if match := re.search(r"\[(.+?)\]", text):
            return match[1]
        raise Unreadable(f"{path}: nothing is chosen in {text[:60]!r}")

    def sizes(self, path: str) -> dict[str, int]:
        """Bytes by name of a file such as /proc/meminfo, whose sizes are in KiB."""
        try:
            return {
                name: int(rest.split()[0]) * 1024
                for name, colon, rest in (line.partition(":") for line in self.text(path).splitlines())
                if colon and rest.endswith("kB")
            }
        except (ValueError, IndexError) as error:
            raise Unreadable(f"{path}: {error}") from error

    def exists(self, path: str) -> bool:
        """Whether there is such a file. One that may not be looked for counts as not there."""
        return os.path.exists(self._below(path))  # noqa: PTH110 - Path.exists raises where it may not look

    def matching(self, folder: str, pattern: str) -> list[str]:
        """Paths below a folder that match, in order."""
        return sorted(f"{folder}/{path.relative_to(self._below(folder))}" for path in self._below(folder).glob(pattern))

    def cores(self) -> int:
        """Processors that are online."""
        path = "/sys/devices/system/cpu/online"
        try:
            return sum(1 + int(last or first) - int(first) for first, last in _ranges(self.text(path)))
        except ValueError as error:
            raise Unreadable(f"{path}: {error}") from error

    def reason(self, error: Exception) -> str:
        """Why something below the root failed, with the path on a machine."""
        if isinstance(error, OSError) and error.filename:
            return f"{self.usual(error.filename)}: {error.strerror}"
        return str(error)

    def usual(self, path: str) -> str:
        """The path on a machine of a file below the root."""
        return f"/{Path(path).relative_to(self.root)}"

    def fact(self, name: str, value: str | int | float | bool | list[str], path: str) -> Fact:
        """A fact that was read at `path`."""
        return Fact(name=name, value=value, source=path)

    def _below(self, path: str) -> Path:
        return self.root / path.lstrip("/")


def _ranges(text: str) -> Iterator[tuple[str, str]]:
    """The ranges of a kernel list such as "0-3,8": ("0", "3"), ("8", "")."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield first, last
