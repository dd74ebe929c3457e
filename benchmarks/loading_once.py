"""Load one dataset in a process of its own: {"dataset", "connection"} as JSON on standard input; figures as JSON on standard output."""

import json
import resource
import sys
import time

from pydantic import TypeAdapter

from plinth.model.connection import Connection
from plinth.model.dataset import DatasetSpec
from plinth.run.loading import TaskClock
from plinth.system.database import connect
from plinth.workload import dataset_of

asked = json.load(sys.stdin)
target = Connection.model_validate(asked["connection"])
dataset = dataset_of(TypeAdapter(DatasetSpec).validate_python(asked["dataset"]))
clock = TaskClock(lambda _: None)
with connect(target) as control:
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.monotonic()
    dataset.load(control, target, clock.report)
    elapsed_s = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
figures = {
    "elapsed_s": elapsed_s,
    "client_cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    "peak_memory_mib": after.ru_maxrss / 1024,
    "parts_s": {task.name: task.duration_s for task in clock.tasks()},
}
json.dump(figures, sys.stdout)
