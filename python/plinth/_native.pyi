"""The native module: the load engine, the bulk loader, the page writer, the script language, the emulated disk and the fsync probe.

Configurations go in and results come out as JSON; `plinth.model.load` has their types. A run has threads of its
own: it is started, polled, stopped if need be, and waited for. Its methods may be called from any thread;
none but `start` and `wait` blocks, these release the GIL, and a signal's handler (Ctrl-C) ends them with its
exception: call `stop()` then, and continue to wait for the end.

In loads and scripts, a byte that is not UTF-8 is a lone surrogate (PEP 383), in what goes in and in what comes out.
"""

from collections.abc import Callable
from os import PathLike
from typing import final

__version__: str

class EngineError(Exception):
    """What the engine could not do; also a method called at the wrong time."""

class ConfigError(EngineError):
    """A configuration that makes no sense; the message names the key, what was found and what is allowed."""

class ConnectError(EngineError):
    """No client could connect, or one could not that had to."""

    client: int
    """Number of the first one without a connection; of a load only."""
    sqlstate: str | None
    """The server's error code, if it was the server that said no."""
    message: str

class ScriptError(EngineError):
    """A script that cannot be run, and the place, counted from 1.

    `message` is in pgbench's words, `hint` is ours; `f"{file}:{line}: {message}"` is what pgbench prints.
    """

    file: str
    line: int
    column: int
    message: str
    hint: str | None
    condition: int | None
    """Number of the command, from 1, that has no place among the conditions: pgbench prints it and no line."""

class NetworkError(EngineError):
    """A network that cannot be emulated or measured."""

    usage: bool
    path: str | None
    errno: int | None
    message: str

class DiskError(EngineError):
    """A disk that cannot be served."""

    usage: bool
    """Whether asking for something else would mend it."""
    path: str | None
    """The place that it is about, if it is about one."""
    errno: int | None
    """What the system said, if it was the system that said no."""
    message: str

class ProbeError(EngineError):
    """A case of the fsync probe that could not be measured, or a probe that could not be made."""

    path: str | None
    """The probe's file, if it is about that."""
    errno: int | None
    """What the system said, if it was the system that said no."""
    message: str

class LogError(EngineError):
    """A server's log that could not be read."""

    path: str | None
    """The file, if it is about one."""
    errno: int | None
    """What the system said, if it was the system that said no."""
    message: str

def check_log(config_json: str, progress: Callable[[int, int, int], object] | None = None) -> str:
    """Reads a server's log, for JSON of `files`, `log_line_prefix` and `classes` (how many to list): JSON of
    `plinth.model.replay.LogCheck`.

    `progress` is called now and then with the bytes read without compression, the number of the file and how many there are; what
    it raises ends the reading. Raises LogError.
    """

def prepare_replay(config_json: str, progress: Callable[[int, int, int], object] | None = None) -> str:
    """Makes a replay file of a server's log, for JSON of what `check_log` takes and of `output` (its path), `overwrite`, `users`,
    `databases`, `applications` (only theirs, unless empty), `begin` and `end` (times as in the log, or null): JSON of
    `plinth.model.replay.PreparedReplay`.

    `progress` is as for `check_log`. Raises LogError.
    """

def replay_facts(path: str, classes: int) -> str:
    """Returns JSON of `plinth.model.replay.ReplayFacts` for a replay file, with so many of its classes, those with the most time
    first, and one of all others. Raises LogError for a file that is none."""

def parse_script(name: str, source: str, known_variables: list[str] | None) -> str:
    """Checks a script in pgbench's language.

    `known_variables` are set from outside, None if variables are not to be checked; the engine's own (client_id, random_seed, default_seed) are known anyway.
    Unless it is None, a name that no variable can have is an error, and a variable that an expression reads and nothing
    sets; one that only SQL reads is not, since in the simple protocol it stays as written (`LoadRun` refuses it in the
    others). What \\gset and \\aset set is not known before they run: for them, every name counts that begins with their
    prefix.

    Returns JSON: {"commands": [{"name", "line", "text"}], "statements": [{"index", "line", "text"}],
    "variables_used": [name, ...]}. Commands are all statements and meta commands, numbered as pgbench numbers them
    (\\gset and \\aset belong to their statements), with pgbench's names for them ("SQL", "set", ...) and the text that
    its reports give them; statements are those among them that are SQL.
    Raises ScriptError.
    """

def builtin_script(name: str) -> str:
    """Source of one of pgbench's scripts: "tpcb-like", "simple-update" or "select-only".

    Raises ValueError for any other name.
    """

def builtin_scripts() -> list[tuple[str, str, str]]:
    """Name, description and source of each of pgbench's scripts, in its order."""

def find_builtin(prefix: str) -> tuple[str, str, str]:
    """Name, description and source of the one of pgbench's scripts whose name begins with `prefix`.

    Raises ValueError, in pgbench's words, when there is none or more than one.
    """

def script_weight(option: str) -> tuple[str, int]:
    """Name and weight of a `-f` or `-b` option, which is NAME or NAME@WEIGHT.

    Raises ValueError, in pgbench's words, when the weight is none.
    """

def random_seed(option: str) -> int:
    """The seed for `--random-seed`: "time" (microseconds), "rand" (the system's random numbers), or an integer.

    Raises ValueError, in pgbench's words, for anything else.
    """

@final
class LoadRun:
    """A load: many connections that run scripts in pgbench's way, in a closed or an open loop.

    Clients and threads get the random numbers that pgbench gives them for the same `--random-seed`. When the
    duration is over, running transactions are finished and counted. A statement's error fails its transaction, and
    the client continues with the next; serialization failures and deadlocks are tried again up to `max_tries` times.
    A client ends when its connection is lost, when it gets what it cannot understand (COPY among it), and when
    its script cannot continue; the others continue.
    """

    def __new__(cls, config_json: str) -> LoadRun:
        """Checks the configuration and parses the scripts. Opens nothing.

        A script with the name of one before it is called "NAME #2" in results, the next "NAME #3".
        Raises ConfigError, ScriptError.
        """

    def start(self, check: Callable[[], None] | None = None) -> None:
        """Connects all clients, and returns when the load runs. May be called once. What `check`, called every few
        milliseconds, raises ends it.

        Clients that cannot connect while others can are counted among the result's errors ("connect", "timeout").
        Raises ConnectError if no client connects.
        """

    def go(self, at_monotonic_ns: int) -> None:
        """Begins a part of a load (`part` of the configuration), whose clients are connected since `start` has returned.

        Raises EngineError when it is no part, or was told before.
        """

    def take_histograms(self) -> bytes:
        """The histograms of each second that a part of a load has finished since the last call.

        Unsigned little-endian numbers of 8 bytes, for each second: the number of its row, then of the latencies and of the
        schedule lags each: count, sum, shortest and longest in ns, the number of buckets that are not empty, and of each of
        these its highest latency in ns and its count. The lags of a closed loop are an empty histogram: five zeros.
        """

    def progress(self) -> str:
        """How far the run is.

        Returns JSON: {"elapsed_ns", "phase": "connect" | "warmup" | "measure" | "done", "done", "failed", "retried",
        "clients_open", "seconds": [rows of the series finished since the last call], "events": [what happened to single
        transactions since the last call: {"t_ns", "kind": "aborted" | "retried" | "failed", "client", "script", "command",
        "sqlstate", "message", "tries", "latency_ns"}], "events_dropped": 0}. The end of a client is always among the events,
        the rest if `verbose_errors` is set; beyond 10,000 that nobody fetched they are only counted.
        """

    def begin_measuring(self, not_before_ns: int = 0) -> int:
        """Ends the warm-up of a load with a `warmup_max_s`, unless it is over: with the second that is under way, though not
        before `warmup_s`, nor before `not_before_ns` since the beginning. The load runs on.

        Returns how long the warm-up lasts then, in ns. Raises EngineError when the load has not begun, or its warm-up has a
        fixed length.
        """

    def stop(self) -> None:
        """Ends the run: clients finish their transactions within `stop_timeout_s`, what is not finished then is
        counted as open. Returns at once; the result keeps what was done."""

    def wait(self, timeout_s: float) -> bool:
        """Waits for the end of the run, at most `timeout_s` seconds; whether it has ended."""

    def result(self) -> str:
        """The result, as JSON of `plinth.model.load.LoadResult`. In its `errors` is everything that went wrong in
        the whole run, also what a further try put right; kinds: serialization_failure, deadlock_detected, sql, connect,
        timeout, connection_lost, protocol, script, cancel.

        Raises EngineError as long as the run has not ended, and when it never began.
        """

@final
class ScriptDraws:
    """What one client of a load draws for its script, for a driver that sends the statements itself.

    The same seed gives the client the values that it has in a `LoadRun` with as many clients.
    """

    def __new__(
        cls, name: str, source: str, variables: dict[str, str], seed: int, clients: int, client: int
    ) -> ScriptDraws:
        """`client` counts from 0. Raises ScriptError, also for a variable that nothing sets."""

    def statements(self) -> list[tuple[int, str, list[str | None]]]:
        """Line, text and parts of each statement; a part is text, or None where a parameter stands."""

    def draw(self) -> list[tuple[bool | int | float | str | None, ...]]:
        """The parameters of each statement of one transaction, once its \\set commands have been evaluated.

        Raises EngineError for an expression that cannot be evaluated, and for any other meta command.
        """

@final
class BulkLoad:
    """A bulk load: a dataset's generated rows, sent in pieces by several COPY streams at once.

    Tables, keys, vacuum and analyze are the caller's. Each piece is a transaction, its row of load progress with it. When a
    stream fails or the load is stopped, the others withdraw the piece that they are sending; those before it stay.
    """

    def __new__(cls, config_json: str) -> BulkLoad:
        """Checks the configuration. Opens nothing.

        JSON: {"connection": as of LoadRun, "generator": {"kind": "tpcb", "scale", "fillfactor": null}, or {"kind": "tpcc",
        "warehouses", "seed"}, or {"kind": "columns", ...}, "streams",
        "replace": empty the tables and fill them in one transaction, of one stream, "freeze": COPY FREEZE, each piece
        after emptying its table, "pieces": [{"table": its number, "into": a partition or null, "first_row", "rows"}] or
        null for all, "progress_table": a table (table_number int, first_row bigint, row_count bigint) or null, "prepare":
        [statement for each session to begin with], "connect_timeout_s"}.
        Raises ConfigError.
        """

    def start(self, check: Callable[[], None] | None = None) -> None:
        """Connects all streams, and returns when they send. May be called once. What `check`, called every few
        milliseconds, raises ends it.

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

def tpcc_order_lines(warehouses: tuple[int, ...], seed: int) -> list[int]:
    """How many order lines the first `warehouses` have when they are loaded with this seed, for each of these numbers, which
    ascend; 300,000 each, about."""

def tpcc_procedures() -> list[str]:
    """The statements that make the procedures of the workload tpcc, or replace them; form = "procedures" calls them."""

@final
class PageLoad:
    """The page writer: generated rows, written into the files of empty tables of a server that does not run.

    It leaves what COPY FREEZE and ADD PRIMARY KEY leave. A file is put in place when it is whole and durable; one that is
    there, of the right size, is kept, so that a load that was killed can be resumed by the same configuration.
    """

    def __new__(cls, config_json: str) -> PageLoad:
        """Checks the configuration. Touches no file.

        JSON: {"generator": as of BulkLoad, "threads", "checksums": whether the cluster has them, "relations": [{"table": its
        number, "first_row", "rows", "name", "columns": [{"type": of pg_type, "length": of bpchar and varchar}], "heap": its
        file, "fillfactor", "index": {"path", "column": its number, "fillfactor"} or null}]}. Paths are absolute.
        Raises ConfigError, also where a table cannot be written as pages: rows wider than 2032 bytes, keys that do not ascend.
        """

    def start(self, check: Callable[[], None] | None = None) -> None:
        """Starts to write. May be called once. What `check`, called every few milliseconds, raises ends it."""

    def progress(self) -> str:
        """How far it is.

        Returns JSON: {"rows_done": rows' worth of what has been written or kept, keys included, "rows_total", "rows_kept":
        what of it was there before, "bytes_written", "finished"}.
        """

    def stop(self) -> None:
        """Ends it; files that are not whole are removed. Returns at once."""

    def wait(self, timeout_s: float) -> bool:
        """Waits for the end, at most `timeout_s` seconds; whether it has come."""

    def result(self) -> str:
        """The result.

        Returns JSON: {"rows": in files that are whole, "bytes_written", "elapsed_ns", "user_cpu_ns", "system_cpu_ns",
        "interrupted", "errors": [{"kind": "no_space", "io" or "unsupported", "table", "message", "path"}]}.
        Raises EngineError as long as it has not ended.
        """

def read_disk_recording(folder: str, verify: bool) -> tuple[str, bytes, bytes]:
    """What a recording of an emulated disk is, as JSON (size_bytes, began_ns, is_complete); the times of its records, an
    array of i8 in ns of CLOCK_MONOTONIC; their kinds, an array of u1 as docs/internals/disk-recording.md numbers them.

    With `verify`, the data of all writes is read and checked. Raises DiskError when it is damaged or no recording.
    """

def disk_profiles() -> str:
    """The profiles of emulated disks, as JSON: a list of `plinth.model.disk.DiskProfile`."""

@final
class DiskServer:
    """An emulated disk: the file disk.img in a FUSE mount, with a control socket.

    It serves from threads of its own, which take no signals. Its end is its unmounting, by whomever.
    """

    def __new__(cls, config_json: str) -> DiskServer:
        """Checks the configuration, JSON of `plinth.model.disk.DiskConfig`. Touches nothing.

        Raises ConfigError for JSON that is none, DiskError for values that make no sense.
        """

    def start(self) -> None:
        """Opens or makes the backing file, mounts, and listens; both answer when it returns. May be called once.

        Raises DiskError; nothing is mounted or listening then.
        """

    def wait(self, timeout_s: float) -> bool:
        """Waits until the disk is unmounted, at most `timeout_s` seconds; whether it is.

        Raises DiskError when the session ended by an error.
        """

    def stop(self) -> bool:
        """Unmounts. False when the disk is in use: it is then out of the directory tree, and whoever uses it gets errors
        once this process has ended.

        Raises DiskError when it cannot be unmounted.
        """

@final
class NetworkServer:
    """An emulated network: TUN devices of network namespaces, joined by a delay line, with a control socket.

    It forwards from threads of its own, which take no signals.
    """

    def __new__(cls, config_json: str) -> NetworkServer:
        """Checks the configuration, JSON of `plinth.model.network.NetworkConfig`. Touches nothing.

        Raises ConfigError for JSON that is none, NetworkError for values that make no sense.
        """

    def start(self) -> None:
        """Attaches to the devices, forwards, and listens. May be called once. Raises NetworkError; nothing runs then."""

    def wait(self, timeout_s: float) -> bool:
        """Waits until it has ended, at most `timeout_s` seconds; whether it has. Raises NetworkError when an error ended it."""

    def stop(self) -> None:
        """Ends it: packets in flight are lost."""

def network_round_trips(namespace: str, address: str, count: int, pause_s: float, timeout_s: float) -> list[int | None]:
    """Round trips from a namespace, given by its file, to `address`, as ping measures them: ns, or None for one that was lost.

    Raises NetworkError when no packets can be sent, ValueError for what is no address of IPv4.
    """

def fsync_plan(options_json: str) -> str:
    """The cases of the fsync probe for JSON of `plinth.model.probe.FsyncOptions`: a list of `plinth.model.probe.FsyncCase`.

    Raises ConfigError.
    """

@final
class FsyncProbe:
    """The fsync probe of one directory. It holds files of 16 MiB there, which go when it is dropped."""

    def __new__(cls, directory: str | PathLike[str]) -> FsyncProbe:
        """Makes and fills the file. Raises ProbeError; none is left then."""

    def measure(self, case_json: str, duration_s: float, check: Callable[[], None] | None = None) -> str:
        """Measures a case, JSON of `plinth.model.probe.FsyncCase`, for that long, and at least one operation. What `check`,
        called every few milliseconds, raises ends it.

        Returns JSON: {"figure": {"ops", "flushes", "elapsed_ns", "min_ns", "max_ns", "buckets": [[highest latency,
        count], ...]}}, or {"unavailable": why this storage cannot do it}.
        Raises ConfigError, ProbeError; a signal's handler ends it with its exception.
        """

    def remove(self) -> None:
        """Removes the file. Raises ProbeError when it is left."""
