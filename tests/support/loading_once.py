"""Loads a dataset, and stops at a step of it, until it is killed. Argument: [dataset, connection, step, size of pieces].

At "load rows" half of the pieces are there; of the others each stream has sent one, and its backend is about to commit it.
"""

import json
import signal
import sys
from typing import Any

from pydantic import TypeAdapter

from plinth.model.connection import Connection
from plinth.model.dataset import DatasetSpec
from plinth.model.progress import Progress, Report
from plinth.run.loading import DatasetSession
from plinth.run.local_host import HOST
from plinth.system.database import connect_unpinned
from plinth.workload import dataset_of, loading
from plinth.workload.bulk import copy

spec, where, step, loading._PIECE_BYTES = json.loads(sys.argv[1])
target = TypeAdapter(Connection).validate_python(where)


def stand_still(*_: object) -> None:
    print(step, flush=True)
    signal.pause()


def copy_half(load: dict[str, Any], target: Connection, report: Report, **options: Any) -> None:
    half = len(load["pieces"]) // 2
    copy(load | {"pieces": load["pieces"][:half]}, target, report, **options)
    with connect_unpinned(target) as holding:
        holding.execute("BEGIN")
        holding.execute("LOCK TABLE plinth_load IN EXCLUSIVE MODE")
        copy(load | {"pieces": load["pieces"][half:]}, target, stand_still, **options)


def report(progress: Progress) -> None:
    if progress.task == step:
        with connect_unpinned(
            target
        ) as other:  # a load does not wait for its commits to be on disk, which a crash would then take back
            other.execute("SELECT pg_logical_emit_message(true, 'plinth', 'a commit that waits')")
        stand_still()


if step == "load rows":
    setattr(loading, "copy", copy_half)  # noqa: B010 - it has the name by import
with connect_unpinned(target) as control:
    if step == "tables":
        control.execute("BEGIN")
        control.execute("CREATE TABLE pgbench_history ()")
        stand_still()
    dataset_of(TypeAdapter(DatasetSpec).validate_python(spec)).populate(
        DatasetSession(control, target, HOST), report if step != "load rows" else lambda _: None
    )
