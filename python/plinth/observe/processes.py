"""The processes of a run on this host: the server's, by their titles, the load engine's, and the observer's threads."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from plinth.observe.proc import PARENT, KeptFiles, ProcFile, read_once, stat_fields

BACKENDS = "backends"
WALSENDERS = "walsender"
OTHER_POSTGRES = "other postgres"
SHORT_LIVED = "short-lived backends"
"""CPU time of the postmaster's children that no reading of theirs had: of sessions shorter than the pause between two readings."""
LOAD_ENGINE = "load engine"
OBSERVER = "observer"
REST_OF_RUN = "rest of run"
"""Processes of the run that are none of the above: other nodes, the daemons of emulated disks and networks, local agents."""
REST_OF_HOST = "rest of host"
# The titles of init_ps_display() and set_ps_display(), PostgreSQL 13 to 18. Those without arguments must end
# there: a backend's title begins with its user's name. An argument comes later than the title: an autovacuum worker has
# its database only once it has read the catalogs, which takes a slow drive longer than the pause between two readings.
_TITLES = (
    ("checkpointer", r"checkpointer"),
    ("background writer", r"background writer"),
    ("walwriter", r"walwriter"),
    ("autovacuum", r"autovacuum launcher|autovacuum worker(?: .*)?"),
    (WALSENDERS, r"walsender(?: .*)?"),
    ("walreceiver", r"walreceiver.*"),
    ("io workers", r"io worker(?: \d+)?"),
    ("logger", r"logger"),
    (
        OTHER_POSTGRES,
        r"archiver.*|startup.*|stats collector|walsummarizer|slotsync worker.*|logical replication launcher"
        r"|logical replication (?:\w+ )*worker for .*",
    ),
)
_PREFIX = "postgres: "
# cluster_name, where it is set, is before the title.
_AUXILIARY = re.compile(
    _PREFIX + "(?:.*: )?(?:" + "|".join(f"(?P<g{i}>{title})" for i, (_, title) in enumerate(_TITLES)) + ")"
)
POSTGRES_GROUPS = (BACKENDS, *(group for group, _ in _TITLES))
"""Groups of the server's processes. Parallel workers are backends: they do a backend's work."""
ENDED = (FileNotFoundError, ProcessLookupError)
"""Exceptions raised by reading a process that has ended."""
_MOST_KEPT_FILES = 192


def group_of_title(cmdline: bytes) -> str | None:
    """Return the group of a server process from /proc/PID/cmdline; None while it has the postmaster's command line."""
    title = cmdline.replace(b"\0", b" ").decode(errors="replace").strip()
    if match := _AUXILIARY.fullmatch(title):
        return _TITLES[int(str(match.lastgroup)[1:])][0]
    return BACKENDS if title.startswith(_PREFIX) else None


class Member(NamedTuple):
    """A process or a thread, its group, and its directory in /proc."""

    group: str
    pid: int
    path: str


@dataclass(frozen=True)
class RunProcesses:
    """The processes of a run on this host, by pid."""

    postmaster_pid: int | None
    """The server's; None when it is on another host."""
    engine_pid: int = field(default_factory=os.getpid)
    """The process of the load engine, by default this one."""
    further_engines: Callable[[], Sequence[int]] = tuple
    """Returns the processes of a driver, once they run."""
    other_servers: Collection[int] = ()
    """The postmasters of other nodes."""


class Processes:
    """The list of processes with their groups.

    `own_backends` and `own_threads` return the observer's backends and threads, which are neither the server's work nor the
    load engine's. All else in the engine's process, such as the progress display, counts as the load engine.
    """

    def __init__(
        self,
        run: RunProcesses,
        *,
        own_backends: Callable[[], Collection[int]] = tuple,
        own_threads: Callable[[], Sequence[int]] = tuple,
    ) -> None:
        postmaster_pid, engine_pid = run.postmaster_pid, run.engine_pid
        self.postmaster = None if postmaster_pid is None else _process(OTHER_POSTGRES, postmaster_pid)
        self.engine = _process(LOAD_ENGINE, engine_pid)
        self._own_backends = own_backends
        self._own_threads = own_threads
        self._further_engines = run.further_engines
        self._children = _Children(postmaster_pid or 0)
        # As they are when the observer is made: what a trial needs runs by then. A driver's processes come later.
        grouped = {postmaster_pid, engine_pid} - {os.getpid()}
        family = _family_of((os.getpid(), *run.other_servers), but=grouped)
        self._family = {pid: _process(REST_OF_RUN, pid) for pid in family}
        # Sessions of other servers come and go, all of them when a standby is promoted.
        self._other_servers = [_Children(pid) for pid in run.other_servers]
        self._groups: dict[int, str] = {}
        self._ours: Collection[int] = ()
        self._members: list[Member] = []
        self._listed: list[Member] | OSError = []
        self._files = KeptFiles(_MOST_KEPT_FILES)
        self._has_schedstat = Path("/proc/self/schedstat").exists()
        self.ran: Mapping[int, bytes | None] = {}
        """Each child's schedstat at the last refresh: if it is unchanged, the child has not run.

        None where it cannot be had.
        """

    def rest_of_run(self) -> list[Member]:
        """Return the run's processes that are neither this one nor the server's, such as the daemon of an emulated disk, and the
        sessions of other nodes as they are now."""
        sessions: dict[int, Member] = {}
        for server in self._other_servers:
            try:
                sessions |= {pid: _process(REST_OF_RUN, pid) for pid in server.pids()}
            except OSError:
                continue  # it has ended
        return [*(self._family | sessions).values()]

    def sample(self) -> None:
        """Refresh the list of the server's processes: once per tick, for all sources that read them."""
        try:
            self._listed = self._list()
        except OSError as error:
            self._listed = error

    def children(self) -> list[Member]:
        """Return the postmaster's children at the last refresh. Raises OSError if the postmaster had ended."""
        if isinstance(self._listed, OSError):
            raise self._listed
        return self._listed

    def _list(self) -> list[Member]:
        if self.postmaster is None:
            return []
        pids, ours = self._children.pids(), self._own_backends()
        if self._groups.keys() != set(pids) or ours != self._ours:
            self._identify(pids, ours)
        ran: dict[int, bytes | None] = {}
        for child in self._members:
            try:
                ran[child.pid] = self.schedstat(child) if self._has_schedstat else None
            except ENDED:
                continue  # it has ended since it was listed
            except OSError:
                ran[child.pid] = None
        self.ran = ran
        return [child for child in self._members if child.pid in ran]

    def _identify(self, pids: Sequence[int], ours: Collection[int]) -> None:
        """Determine the group of each process; one that has no title yet is checked again at the next refresh."""
        known = self._groups
        self._groups = {pid: group for pid in pids if (group := known.get(pid) or group_now(pid))}
        self._ours = ours
        self._members = [
            _process(OBSERVER if pid in ours else self._groups.get(pid, OTHER_POSTGRES), pid) for pid in pids
        ]
        kept = (*self._members, self.postmaster, self.engine, *self.own_threads())
        self._files.keep({member.path for member in kept if member is not None})

    def read(self, path: str) -> bytes:
        """Return the start of a file of one of the processes. Raises OSError, naming the file."""
        return self._files.read(path)

    def schedstat(self, member: Member) -> bytes:
        """Return its schedstat (kernel documentation, sched-stats). Raises OSError, naming the file."""
        return self._files.read(f"{member.path}/schedstat")

    def engine_threads(self) -> list[Member]:
        """Return the threads of the load engine's process, but for the observer's, and a driver's processes.

        Raises OSError when it has ended.
        """
        ours = set(self._own_threads())
        threads = (int(name) for name in os.listdir(f"{self.engine.path}/task"))  # noqa: PTH208 - every tick: no Path for each
        return [
            Member(LOAD_ENGINE, thread, f"{self.engine.path}/task/{thread}") for thread in threads if thread not in ours
        ] + self.further_engines()

    def further_engines(self) -> list[Member]:
        """Return the further client processes: those of a driver."""
        return [_process(LOAD_ENGINE, pid) for pid in self._further_engines()]

    def own_threads(self) -> list[Member]:
        """Return the observer's threads."""
        return [Member(OBSERVER, thread, f"/proc/self/task/{thread}") for thread in self._own_threads()]


class _Children:
    """The children of a process, from one file if the kernel has it (CONFIG_PROC_CHILDREN), else by a search."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._file = ProcFile(f"/proc/{pid}/task/{pid}/children")
        self._has_file = Path("/proc/thread-self/children").exists()

    def pids(self) -> list[int]:
        if self._has_file:
            return [int(pid) for pid in self._file.read().split()]
        return children_by_search(self._pid)


def children_by_search(parent: int) -> list[int]:
    """Return the children of a process by checking the parent of each process of the host."""
    return [pid for pid, its_parent in _parents() if its_parent == parent]


def _parents() -> Iterator[tuple[int, int]]:
    """Return each process of the host with its parent."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            yield int(folder.name), int(stat_fields(str(folder))[PARENT])
        except ENDED:
            continue  # it ended meanwhile


def _family_of(roots: Iterable[int], but: Collection[int | None]) -> list[int]:
    """Return these processes and their descendants, without this process and without `but` and theirs."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found: dict[int, None] = {}
    left = [*roots]
    while left:
        pid = left.pop()
        if pid not in found and pid not in but:
            found[pid] = None
            left += children.get(pid, [])
    found.pop(os.getpid(), None)
    return [*found]


def _process(group: str, pid: int) -> Member:
    return Member(group, pid, f"/proc/{pid}")


def group_now(pid: int) -> str | None:
    """Return the group of a server process by its title; None if it has none yet, or has ended."""
    try:
        return group_of_title(read_once(f"/proc/{pid}/cmdline"))
    except (FileNotFoundError, ProcessLookupError):
        return None
