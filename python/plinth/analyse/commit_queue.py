"""What commits take that share flushes, by a simulation of the clients, the primary's flushes and those of a standby.

On both sides one process flushes at a time. A flush takes all WAL that is there when it begins, and what comes meanwhile waits for the next
(XLogFlush, WalReceiverMain). So the parts of a commit do not simply add up: clients that wait for a standby wait less for each other's flushes
on the primary, and WAL that reaches a standby in a flush waits until that has ended, for any synchronous_commit:

- remote_write: a standby answers when it has written, just before it flushes. It writes nothing while it flushes.
- on: it answers when it has flushed.
- remote_apply: it answers when it has replayed. The process that answers flushes what has come meanwhile first. The replay itself takes
  no time here.
"""

import heapq
import itertools
import random
from collections.abc import Iterator
from functools import lru_cache
from statistics import median
from typing import Literal, NamedTuple

Waits = Literal["local", "remote_write", "on", "remote_apply"]
"""What a commit waits for, as synchronous_commit has it."""
_COMMITS = 1200
_FIRST_COUNTED = 200
_SPREAD = 0.2
"""How much flushes and thinking differ, uniformly, from their mean: without it clients would stay in step for ever."""
_HALVINGS = 12
_Event = tuple[float, int, str, tuple[int, ...]]


class Clients(NamedTuple):
    """A closed loop: what each does between two commits takes `think_ns`."""

    number: int
    think_ns: float


class Remote(NamedTuple):
    """The standby that commits wait for."""

    waits: Waits
    round_trip_ns: float
    flush_ns: float


LOCAL = Remote("local", 0.0, 0.0)
"""No standby."""


@lru_cache(maxsize=1024)
def flush_behind(clients: Clients, commit_ns: float) -> float:
    """Return how long the primary's flushes are with which the median commit without a standby takes `commit_ns`: of a group commit,
    which waits for the flush under way and for its own, half of it to all of it."""
    low, high = 0.0, commit_ns / (1 - _SPREAD)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if commit_median_ns(clients, middle, LOCAL) < commit_ns:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@lru_cache(maxsize=1024)
def commit_median_ns(clients: Clients, flush_ns: float, remote: Remote) -> float:
    """Return the median time of a commit, of clients on a primary whose flushes take `flush_ns`."""
    return median(itertools.islice(_commits_ns(clients, flush_ns, remote), _FIRST_COUNTED, _COMMITS))


def _commits_ns(clients: Clients, flush_ns: float, remote: Remote) -> Iterator[float]:
    """Return one commit after another, without an end."""
    loop = _Loop(flush_ns, remote)
    sent: dict[int, float] = {}
    for client in range(clients.number):
        loop.at(loop.random.random() * clients.think_ns, "commit", (client,))
    while True:
        now, _, what, of = heapq.heappop(loop.events)
        if what == "answered":
            for client in of:
                yield now - sent[client]
                loop.at(now + loop.about(clients.think_ns), "commit", (client,))
        elif what == "commit":
            sent.update(dict.fromkeys(of, now))
            loop.primary.come(now, of)
        else:
            loop.handle(now, what, of)


class _Loop:
    """What is to happen, with the two that flush."""

    def __init__(self, flush_ns: float, remote: Remote) -> None:
        self.random = random.Random(1)  # of a simulation
        self.events: list[_Event] = []
        self._order = itertools.count()
        self._remote = remote
        self.primary = _Flusher(self, flush_ns, "flushed")
        self._standby = _Flusher(self, remote.flush_ns, "flushed there")
        self._replayed: tuple[int, ...] = ()
        """What the standby has replayed, and will say when its flush ends."""

    def at(self, t_ns: float, what: str, of: tuple[int, ...]) -> None:
        heapq.heappush(self.events, (t_ns, next(self._order), what, of))

    def about(self, t_ns: float) -> float:
        return t_ns * self.random.uniform(1 - _SPREAD, 1 + _SPREAD)

    def handle(self, now: float, what: str, of: tuple[int, ...]) -> None:
        if what == "flushed":
            self.at(
                now + self._remote.round_trip_ns / 2, "answered" if self._remote.waits == "local" else "received", of
            )
            self.primary.end(now)
        elif what == "received":
            self._written(now, self._standby.come(now, of))
        else:
            self._written(now, self._flushed_there(now, of))

    def _flushed_there(self, now: float, of: tuple[int, ...]) -> tuple[int, ...]:
        """Return what is written next."""
        replayed, self._replayed = self._replayed, ()
        written = self._standby.end(now)
        if self._remote.waits == "on":
            self._answer(now, of)
        elif self._remote.waits == "remote_apply" and written:
            self._answer(now, replayed)
            self._replayed = of
        elif self._remote.waits == "remote_apply":
            self._answer(now, replayed + of)
        return written

    def _written(self, now: float, of: tuple[int, ...]) -> None:
        if self._remote.waits == "remote_write":
            self._answer(now, of)

    def _answer(self, now: float, of: tuple[int, ...]) -> None:
        if of:
            self.at(now + self._remote.round_trip_ns / 2, "answered", of)


class _Flusher:
    """One process that flushes, again and again while something has come."""

    def __init__(self, loop: _Loop, flush_ns: float, what: str) -> None:
        self._loop = loop
        self._flush_ns = flush_ns
        self._what = what
        self._busy = False
        self._waiting: tuple[int, ...] = ()

    def come(self, now: float, of: tuple[int, ...]) -> tuple[int, ...]:
        """Return what is flushed from now on: nothing, while it is busy."""
        self._waiting += of
        return () if self._busy else self._begin(now)

    def end(self, now: float) -> tuple[int, ...]:
        """Return what is flushed from now on, once a flush has ended."""
        self._busy = False
        return self._begin(now) if self._waiting else ()

    def _begin(self, now: float) -> tuple[int, ...]:
        self._busy = True
        of, self._waiting = self._waiting, ()
        self._loop.at(now + self._loop.about(self._flush_ns), self._what, of)
        return of
