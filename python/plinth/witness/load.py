"""A load whose commits are sent to a witness, until its time is over, its user ends it, or the server loses its
power."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth import __version__
from plinth.load.engine import Load
from plinth.model.connection import Connection, Tcp
from plinth.model.errors import Interrupted, PlinthError, RunError
from plinth.model.load_config import CompiledTransaction, LedgerCommits, LedgerFiles, LoadConfig
from plinth.model.witness import PROTOCOL_VERSION, Hello, LoadEnd, TestedServer
from plinth.run.interrupt import InterruptGuard
from plinth.system import cancel
from plinth.system.conninfo import place
from plinth.system.database import connect_unpinned, database_errors
from plinth.witness.stream import LedgerStream, WitnessConnection
from plinth.witness.tables import prepare_round, tested_server, write_end

if TYPE_CHECKING:
    import psycopg

_POLL_S = 0.1
_PROGRESS_S = 1.0
_GRACE_S = 5.0
_MOST_THREADS = 4
_LOST = ("connection_lost", "connect", "timeout")
"""Kinds of the engine's errors that mean that the server is gone."""
_WITNESS_LOST = "the witness was lost"
_MEMORY = Path("/dev/shm")


class WitnessedLoad(NamedTuple):
    """The load to run, and its witness."""

    connection: Connection
    host: str
    port: int
    fingerprint: str
    token: str
    clients: int
    duration_s: float


class LoadState(NamedTuple):
    """The progress of a load."""

    round: int
    elapsed_s: float
    done: int
    """Transactions that the clients know to have committed."""
    known: int
    """The part of those that the witness has confirmed."""


class LoadEnded(NamedTuple):
    """The end of a load."""

    round: int
    end: LoadEnd
    known: int
    reasons: tuple[str, ...]
    """The clients' last errors, where they lost the server or failed."""


def run_witnessed(
    wanted: WitnessedLoad, note: Callable[[str], None], on_progress: Callable[[LoadState], None]
) -> LoadEnded:
    """Make the tables, run the ledger workload, and send each commit to the witness, until the load ends.

    Ctrl-C ends it in order. `note` gets messages for the user. Raises RunError when there is no server, and when the
    witness cannot be reached or disconnects: commits that it does not know could not be checked after a power cut.
    """
    where = place(wanted.connection)
    with database_errors("connect", where), connect_unpinned(wanted.connection) as control:
        server = tested_server(control, where)
        for risk in server.risks:
            note(risk)
        threads = min(wanted.clients, os.cpu_count() or 1, _MOST_THREADS)
        witness = WitnessConnection(wanted.host, wanted.port, wanted.fingerprint, _hello(wanted, server, threads))
        with InterruptGuard(note), LedgerStream(witness) as stream:
            number = witness.round.number
            prepare_round(control, wanted.clients, witness.round.round_id, server.began_unix_us, where)
            load = _started(wanted, threads, stream)
            try:
                end, reasons = _run_to_end(load, wanted.duration_s, stream, number, on_progress)
            except PlinthError as error:
                _end_load(load)
                if stream.error is not None:
                    _record_end(control, where, note)
                    raise _witness_lost(stream.error, number) from error
                raise
            stream.finish(end)
            if stream.error is not None:
                _record_end(control, where, note)
                raise _witness_lost(stream.error, number)
            return LoadEnded(number, end, stream.acknowledged, reasons)


def _hello(wanted: WitnessedLoad, server: TestedServer, threads: int) -> Hello:
    return Hello(
        protocol=PROTOCOL_VERSION,
        token=wanted.token,
        plinth_version=__version__,
        clients=wanted.clients,
        threads=threads,
        server=server,
    )


def _started(wanted: WitnessedLoad, threads: int, stream: LedgerStream) -> Load:
    """Return the running load, whose ledger the stream follows."""
    with _ledger_folder() as folder:
        load = Load(
            LoadConfig(
                connection=replace(wanted.connection, tcp=_with_short_timeouts(wanted.connection.tcp)),
                scripts=[CompiledTransaction(name="ledger", native=LedgerCommits())],
                clients=wanted.clients,
                threads=threads,
                duration_s=wanted.duration_s,
                require_all_clients=True,
                ledger=LedgerFiles(folder=str(folder)),
            )
        )
        load.start()
        try:
            stream.follow(folder, threads)
        except PlinthError:
            _end_load(load)
            raise
    return load


@contextmanager
def _ledger_folder() -> Iterator[Path]:
    """Yield a folder in memory, not on the disk under test. Files that are open stay usable when it is removed."""
    folder = Path(tempfile.mkdtemp(prefix="plinth-ledger-", dir=_MEMORY if _MEMORY.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _run_to_end(
    load: Load, duration_s: float, stream: LedgerStream, number: int, on_progress: Callable[[LoadState], None]
) -> tuple[LoadEnd, tuple[str, ...]]:
    """Run the load to its end. Raises the stream's error."""
    shown_s = 0.0
    try:
        while not load.wait(_POLL_S):
            cancel.check()
            if stream.error is not None:
                raise stream.error
            progress = load.progress()
            if progress.elapsed_ns / 1e9 - shown_s >= _PROGRESS_S:
                shown_s = progress.elapsed_ns / 1e9
                on_progress(LoadState(number, shown_s, progress.done, stream.acknowledged))
    except Interrupted:
        _end_load(load)
        return "interrupted", ()
    elapsed_s = load.progress().elapsed_ns / 1e9
    result = load.result()
    if elapsed_s >= duration_s:
        return "complete", ()
    reasons = tuple(dict.fromkeys(error.message for error in result.errors))
    is_lost = any(error.kind in _LOST for error in result.errors)
    return "server lost" if is_lost else "load failed", reasons


def _end_load(load: Load) -> None:
    with cancel.masked():
        load.stop()
        load.wait(load.config.stop_timeout_s + _GRACE_S)


def _with_short_timeouts(tcp: Tcp) -> Tcp:
    """Return TCP settings with short timeouts, since TCP alone waits for hours for a machine without power; the user's
    own settings take precedence."""
    return replace(
        tcp,
        keepalives_idle_s=tcp.keepalives_idle_s or 5,
        keepalives_interval_s=tcp.keepalives_interval_s or 2,
        keepalives_count=tcp.keepalives_count or 3,
        tcp_user_timeout_ms=tcp.tcp_user_timeout_ms or 10_000,
    )


def _record_end(control: "psycopg.Connection[Any]", where: str, note: Callable[[str], None]) -> None:
    try:
        with cancel.masked():
            write_end(control, _WITNESS_LOST, where)
    except PlinthError as error:
        note(f"{error.message}: verify would count what happens to the server now as a power cut in the load")


def _witness_lost(error: PlinthError, number: int) -> RunError:
    return RunError(
        f"{_WITNESS_LOST}, and with it what was acknowledged: round {number} does not count ({error.message})",
        where=error.where,
        hint="see what the witness says there, run `plinth durability verify` there, and start the load again",
    )
