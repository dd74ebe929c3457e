"""What the server is made to do during the load, so that the power can be cut during it."""

import contextlib
import random
import time
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plinth.load import LoadDriver
from plinth.model.durability import CutMoment
from plinth.server.node import Server
from plinth.system import cancel
from plinth.system.database import connect, connect_unpinned

if TYPE_CHECKING:
    import psycopg

_AFTER_SWITCH_S = 0.02
"""How long after pg_switch_wal has returned the first records of the new segment are still to be expected."""
_EXTENDED = "plinth_extension"
_STATEMENTS: dict[CutMoment, str] = {
    "checkpoint": "CHECKPOINT",
    "control-file": "CHECKPOINT",
    "extension": f"INSERT INTO {_EXTENDED} SELECT repeat('x', 1000) FROM generate_series(1, 20000)",
    "segment-switch": "SELECT pg_switch_wal()",
}
_CUT_WITHIN_S: dict[CutMoment, float] = {"checkpoint": 0.2, "extension": 0.1, "segment-switch": 0.1}

Window = tuple[int, int]
"""Begin and end of something, in ns of CLOCK_MONOTONIC."""


def is_during_load(moment: CutMoment) -> bool:
    """Return whether the server is made to do something during the load for it."""
    return moment in _STATEMENTS


def moments_during_load(moments: Collection[CutMoment]) -> list[CutMoment]:
    """Return what the server has to do during a recorded load for `moments`, in order; a checkpoint writes pg_control."""
    checkpoint = "checkpoint" in moments or "control-file" in moments
    wanted: dict[CutMoment, bool] = {
        "segment-switch": "segment-switch" in moments,
        "checkpoint": checkpoint,
        "extension": "extension" in moments,
    }
    return [moment for moment, is_wanted in wanted.items() if is_wanted]


def prepare_moment(session: "psycopg.Connection[Any]", moment: CutMoment) -> None:
    """Make what the moment needs in the database, by a session as the load's."""
    if moment == "extension":
        session.execute(f"CREATE TABLE IF NOT EXISTS {_EXTENDED} (payload text)".encode())
        session.execute(f"TRUNCATE {_EXTENDED}".encode())


@contextmanager
def during_moment(moment: CutMoment, server: Server, load: LoadDriver, chance: random.Random) -> Iterator[None]:
    """Have the server do it during `load`, and enter when the power is to go. What it does ends with the server."""
    control_file = server.watch_control_file() if moment == "control-file" else None
    with _meanwhile(moment, server) as doing:
        if control_file is not None:
            control_file.await_write(doing.done)
        else:
            deadline = time.monotonic() + chance.uniform(0, _CUT_WITHIN_S[moment])
            while (left_s := deadline - time.monotonic()) > 0 and not load.wait(left_s):
                cancel.check()
        yield


def windows_of(moment: CutMoment, server: Server) -> dict[CutMoment, Window]:
    """Have the server do it, and return when it was done: of a checkpoint also when pg_control was written.

    Raises psycopg.Error when the server cannot do it.
    """
    control_file, begun_ns = server.watch_control_file(), time.monotonic_ns()
    with _meanwhile(moment, server) as doing:
        written_ns = control_file.await_write(doing.done) if moment == "checkpoint" else None
        doing.result()
    ended_ns = time.monotonic_ns()
    if moment == "segment-switch":
        cancel.sleep(_AFTER_SWITCH_S)
        ended_ns = time.monotonic_ns()
    windows: dict[CutMoment, Window] = {moment: (begun_ns, ended_ns)}
    if written_ns is not None:
        windows["control-file"] = (written_ns, ended_ns)
    return windows


@contextmanager
def _meanwhile(moment: CutMoment, server: Server) -> "Iterator[Future[Any]]":
    """Run the moment's statement in a separate session and thread; it has ended afterwards, with the server or before it."""
    import psycopg

    # The rows go where sessions of the load make tables, and by their rights.
    control = connect_unpinned(server.connection) if moment == "extension" else connect(server.control)
    with ThreadPoolExecutor(max_workers=1) as pool:
        doing = pool.submit(control.execute, _STATEMENTS[moment].encode())
        try:
            yield doing
        except BaseException:
            with contextlib.suppress(psycopg.Error):  # the server may have ended
                control.cancel()
            raise
        finally:
            wait([doing])
            control.close()
