"""`FleetCopy`: the rows of a dataset, sent by the bulk loaders of several machines, as a `plinth.workload.bulk.Loader`.

Pieces are dealt in turn. Each is a transaction with its row in the table of load progress, so that what a machine has sent is there or
not, however it ends; the next load sends what is missing.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from plinth.fleet.asking import ask_all, ask_each, greet
from plinth.fleet.check import check_versions
from plinth.fleet.executors.executor import Executor, Started
from plinth.fleet.protocol import Copied, Done, Request
from plinth.fleet.task import FleetTask
from plinth.model.errors import RunError
from plinth.model.load import BulkProgress, BulkResult


@dataclass
class _Machine:
    started: Started
    copied: Copied = field(default_factory=Copied)

    @property
    def has_ended(self) -> bool:
        return self.copied.state == "ended"


class FleetCopy(FleetTask[_Machine]):
    """`config` is that of one bulk load; `streams` are for each machine. Agents run from `start` to the end."""

    def __init__(self, config: dict[str, Any], executor: Executor) -> None:
        super().__init__(executor)
        self._config = config

    def start(self, check: Callable[[], None] | None = None) -> None:
        """Start the agents, and return when all streams send. Cancelled with the caller's work; `check` is not called.

        Raises RunError when one cannot begin, MissingCapability when versions differ.
        """
        self._guarded(self._start)

    def _start(self) -> None:
        started = self._open()
        parts = _dealt(self._config, len(started))
        self._machines = [_Machine(one) for one in started]
        check_versions({one.name: hello for one, hello in zip(started, greet(started), strict=True)})
        ask_each(started, [Request(kind="copy", bulk=json.dumps(part)) for part in parts], Done)
        self._wait_for_connections(lambda one: one.copied.state in ("idle", "connecting"))

    def progress(self) -> str:
        """Return the progress of all machines together."""
        known = [one.copied.progress for one in self._machines if one.copied.progress is not None]
        total = sum(piece["rows"] for piece in self._config["pieces"])
        return BulkProgress(
            rows_done=sum(progress.rows_done for progress in known),
            rows_total=total,
            bytes_sent=sum(progress.bytes_sent for progress in known),
            streams_open=sum(progress.streams_open for progress in known),
            finished=bool(self._machines) and all(one.has_ended for one in self._machines),
        ).model_dump_json()

    def stop(self) -> None:
        """Have all streams withdraw. Returns at once."""
        if self._is_open:
            self._guarded(self._ask_to_stop)

    def result(self) -> str:
        """Return the sums, and the errors of all machines, with their names. Raises RunError before the end."""
        results = {one.started.name: one.copied.result for one in self._machines}
        known = [result for result in results.values() if result is not None]
        if self._is_open or len(known) < len(results) or not known:
            raise RunError("the load has not ended")
        return BulkResult(
            rows=sum(one.rows for one in known),
            bytes_sent=sum(one.bytes_sent for one in known),
            elapsed_ns=max(one.elapsed_ns for one in known),
            user_cpu_ns=sum(one.user_cpu_ns for one in known),
            system_cpu_ns=sum(one.system_cpu_ns for one in known),
            interrupted=any(one.interrupted for one in known),
            errors=tuple(
                error.model_copy(update={"message": f"machine {name}: {error.message}"})
                for name, result in results.items()
                if result is not None
                for error in result.errors
            ),
        ).model_dump_json()

    def _look(self) -> None:
        # Those that have ended as well: without a request for the time of their lease they would be gone.
        replies = ask_all([one.started for one in self._machines], Request(kind="copied"), Copied)
        for machine, reply in zip(self._machines, replies, strict=True):
            machine.copied = reply
            if reply.state == "failed":
                raise RunError(f"{reply.failure}", where=f"machine {machine.started.name}")
        if not self._is_stopping and any(one.copied.result and one.copied.result.errors for one in self._machines):
            self._ask_to_stop()  # as the streams of one machine end with the first that fails

    def _finish(self) -> None:
        """Do nothing: each agent's last answer has its result."""


def _dealt(config: dict[str, Any], machines: int) -> list[dict[str, Any]]:
    """Return the configurations of as many loads that do together what one does."""
    parts = [config["pieces"][number::machines] for number in range(machines)]
    return [{**config, "pieces": own, "streams": min(config["streams"], len(own))} for own in parts]
