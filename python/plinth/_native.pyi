"""The native module: the load engine, the bulk loader and the script language.

Configurations go in and results come out as JSON; `plinth.model.load` has their types. A run has threads of its
own: it is started, polled, stopped if need be, and waited for. Its methods may be called from any thread;
none but `start` and `wait` blocks, these release the GIL, and a signal's handler (Ctrl-C) ends them with its
exception: call `stop()` then, and go on waiting for the end.
"""

from typing import final

__version__: str

class EngineError(Exception):
    """What the engine could not do; also a method called at the wrong time."""

class ConfigError(EngineError):
    """A configuration that makes no sense; the message names the key, what was found and what is allowed."""

class ConnectError(EngineError):
    """No client could connect."""

    sqlstate: str | None
    """The server's error code, if it was the server that said no."""
    message: str

class ScriptError(EngineError):
    """A script that cannot be run, and the place, counted from 1."""

    file: str
    line: int
    column: int
    message: str
    hint: str | None

def parse_script(name: str, source: str, known_variables: list[str]) -> str:
    """Checks a script in pgbench's language.

    `known_variables` are set from outside; the engine's own (client_id, random_seed, default_seed) are known anyway.
    A variable that an expression reads and nothing sets is an error; one that only SQL reads is not, since in the
    simple protocol it stays as written (`LoadRun` refuses it in the others).

    Returns JSON: {"statements": [{"index", "line", "text"}], "variables_used": [name, ...]}.
    Raises ScriptError.
    """

def builtin_script(name: str) -> str:
    """Source of one of pgbench's scripts: "tpcb-like", "simple-update" or "select-only".

    Raises ValueError for any other name.
    """

@final
class LoadRun:
    """A load: many connections that run scripts, in a closed loop, in pgbench's way.

    Clients and threads get the random numbers that pgbench gives them for the same `--random-seed`. When the
    duration is over, running transactions are finished and counted. A statement's error fails its transaction, and
    the client goes on with the next; serialization failures and deadlocks are tried again up to `max_tries` times.
    A client ends when its connection is lost, when it gets what it cannot understand (COPY among it), and when
    its script cannot go on; the others go on.
    """

    def __new__(cls, config_json: str) -> LoadRun:
        """Checks the configuration and parses the scripts. Opens nothing.

        Raises ConfigError, ScriptError.
        """

    def start(self) -> None:
        """Connects all clients, and returns when the load runs. May be called once.

        Clients that cannot connect while others can are counted among the result's errors ("connect", "timeout").
        Raises ConnectError if no client connects.
        """

    def progress(self) -> str:
        """How far the run is.

        Returns JSON: {"elapsed_ns", "phase": "connect" | "warmup" | "measure" | "done", "done", "failed", "retried",
        "clients_open", "seconds": [rows of the series finished since the last call]}.
        """

    def stop(self) -> None:
        """Ends the run: clients finish their transactions within `stop_timeout_s`, what is not finished then is
        counted as open. Returns at once; the result keeps what was done."""

    def wait(self, timeout_s: float) -> bool:
        """Waits for the end of the run, at most `timeout_s` seconds; whether it has ended."""

    def result(self) -> str:
        """The result, as JSON of `plinth.model.load.LoadResult`. In its `errors` is everything that went wrong in
        the whole run, also what a further try put right; kinds: serialization_failure, deadlock_detected, sql, connect,
        timeout, connection_lost, protocol, script.

        Raises EngineError as long as the run has not ended, and when it never began.
        """

@final
class BulkLoad:
    """A bulk load: a dataset's generated rows, sent into empty tables by several COPY streams at once.

    Tables, keys, vacuum and analyze are the caller's. When a stream fails or the load is stopped, the others
    withdraw: their COPY leaves no rows.
    """

    def __new__(cls, config_json: str) -> BulkLoad:
        """Checks the configuration. Opens nothing.

        JSON: {"connection": as of LoadRun, "generator": {"kind": "tpcb", "scale", "fillfactor": null}, "streams",
        "freeze": false, "connect_timeout_s"}.
        Raises ConfigError.
        """

    def start(self) -> None:
        """Connects all streams, and returns when they send. May be called once.

        Raises ConnectError if one cannot connect.
        """

    def progress(self) -> str:
        """How far the load is.

        Returns JSON: {"rows_done", "rows_total", "bytes_sent", "streams_open", "finished"}.
        """

    def stop(self) -> None:
        """Ends the load: the streams withdraw. Returns at once."""

    def wait(self, timeout_s: float) -> bool:
        """Waits for the end of the load, at most `timeout_s` seconds; whether it has ended."""

    def result(self) -> str:
        """The result.

        Returns JSON: {"rows", "bytes_sent", "elapsed_ns", "user_cpu_ns", "system_cpu_ns", "interrupted",
        "errors": [{"kind", "sqlstate", "table", "stream", "message"}]}.
        Raises EngineError as long as the load has not ended.
        """
