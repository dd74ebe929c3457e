"""Standbys that commits wait for, slow in one step of replication by construction: the network, the flush, or the replay."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg

from known import Cases, Levels, Silent, levels_of
from plinth.model.load import LoadResult
from plinth.model.plan import Plan, PlannedTrial, Variant
from plinth.model.trial import Trial

EXPERIMENT = """\
spec = 1
name = "known-replication"
question = "Which standby do commits wait for, and for what of it?"
[storage.main]
kind = "emulated"
profile = "nvme"
size = "1GiB"
[storage.quick]
kind = "emulated"
profile = "nvme"
size = "1GiB"
[storage.slow-flush]
kind = "emulated"
profile = "nvme"
size = "1GiB"
[storage.slow-flush.physics]
flush_latency = "8ms"
[server]
version = 18
storage = "main"
[server.settings]
shared_buffers = "32MB"
autovacuum = false
[server.standby.a]
storage = "quick"
settings.max_standby_streaming_delay = "200ms"
[server.standby.b]
storage = "slow-flush"
[network]
[dataset]
kind = "tpcb"
scale = 2
[workload]
builtin = "simple-update"
protocol = "prepared"
clients = 8
[matrix]
"server.synchronous_standby_names" = ["FIRST 1 (a)", "FIRST 1 (b)"]
"server.settings.synchronous_commit" = ["on", "remote_write", "remote_apply"]
"network.link.primary-a.delay" = ["0ms", "20ms"]
[measure]
warmup = "1s"
duration = "3s"
aa = false
probe = "0s"
fresh_server = false
"""
_CONFLICT: Levels = ("FIRST 1 (a)", "remote_apply", "0ms")
_NETWORK, _FLUSH, _REPLAY = "the network, and its write", "its flush of WAL", "its replay of WAL"
EXPECTED = {
    ("FIRST 1 (a)", "on", "20ms"): f"mostly standby a: {_NETWORK}",
    ("FIRST 1 (b)", "on", "0ms"): f"mostly standby b: {_FLUSH}",
    ("FIRST 1 (b)", "remote_write", "0ms"): f"mostly standby b: {_FLUSH}",
    _CONFLICT: f"mostly standby a: {_REPLAY}",
}
"""By levels of the factors: what the sentence of a bottleneck ends with. Of a standby that flushes slowly its flush is waited for with
remote_write, too, since it writes nothing meanwhile."""
CASES: Cases = {levels: ("replication", {}) for levels in EXPECTED}


class Conflicting(Silent):
    """Holds a snapshot on standby a during the load of the trials that are to be slow by conflicts of recovery."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        start = next(step.argv for step in plan.steps if step.id.startswith("server.") and step.id.endswith(".a.start"))
        assert start is not None, "a start is a command"
        self._data_directory = Path(start[start.index("-D") + 1])
        self._end: Callable[[], None] | None = None

    def trial_started(self, trial: PlannedTrial, variant: Variant, total: int) -> None:
        if levels_of(variant) == _CONFLICT:
            ended = threading.Event()
            reader = threading.Thread(target=self._read, args=(ended,))
            reader.start()
            self._end = lambda: (ended.set(), reader.join())[0]

    def trial_ended(self, trial: Trial, load: LoadResult | None) -> None:
        if self._end is not None:
            self._end()
            self._end = None

    def _read(self, ended: threading.Event) -> None:
        """One snapshot after another; each is kept until replay, which it holds up, cancels it after max_standby_streaming_delay."""
        while not ended.wait(0.01):
            with (
                suppress(psycopg.Error, OSError, IndexError),  # it starts, has cancelled us, or ends
                psycopg.connect(self._conninfo()) as reader,
                reader.transaction(),
            ):
                reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                reader.execute("SELECT count(*) FROM pgbench_branches")
                while not ended.wait(0.05):
                    reader.execute("SELECT 1")

    def _conninfo(self) -> str:
        lines = (self._data_directory / "postmaster.pid").read_text().splitlines()
        return f"host={lines[4]} port={lines[3]} user=postgres dbname=postgres"
