"""Load one dataset in a process of its own: {"dataset", "connection"} as a line of JSON on standard input; figures as a line of
JSON on standard output. Before it, "stop" and "start" where pages are written: each is answered by a line once the server is
stopped, or runs again.
"""

import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import TypeAdapter

from plinth.model.connection import Connection
from plinth.model.dataset import DatasetSpec
from plinth.run.loading import DatasetSession, TaskClock
from plinth.run.local_host import HOST
from plinth.system.database import connect_unpinned
from plinth.workload import dataset_of


class OfParent(DatasetSession):
    """A server that the parent process has started."""

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Have the parent stop the server while the block runs."""
        self.control.close()
        have("stop")
        yield
        have("start")
        self.control = connect_unpinned(self.target)


def have(done: str) -> None:
    """Have the parent do something."""
    print(done, flush=True)
    sys.stdin.readline()


asked = json.loads(sys.stdin.readline())
target = TypeAdapter(Connection).validate_python(asked["connection"])
dataset = dataset_of(TypeAdapter(DatasetSpec).validate_python(asked["dataset"]))
clock = TaskClock(lambda _: None)
with OfParent(connect_unpinned(target), target, HOST) as server:
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.monotonic()
    dataset.populate(server, clock.report)
    elapsed_s = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
figures = {
    "elapsed_s": elapsed_s,
    "client_cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    "peak_memory_mib": after.ru_maxrss / 1024,
    "parts_s": {task.name: task.duration_s for task in clock.tasks()},
}
json.dump(figures, sys.stdout)
