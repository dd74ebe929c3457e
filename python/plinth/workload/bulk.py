"""Rows that the bulk loader generates: started, watched, and its failures told."""

import json
import time
from typing import Any

from plinth.model.connection import Connection
from plinth.model.errors import Interrupted, RunError
from plinth.model.progress import Progress, Report
from plinth.system.database import DISK_FULL

LOAD_BYTES_PER_S = 40e6
"""COPY, keys and vacuum together, by bytes of tables and indexes, as measured on two cores."""

_POLL_S = 0.2
_STOP_PATIENCE_S = 10.0


def copy(
    load: dict[str, Any],
    target: Connection,
    report: Report,
    *,
    streams: int,
    size_key: str,
    there: int,
    row_bytes: float,
) -> None:
    """Send what `load` says, keys of the bulk loader's configuration (crates/bulk). Raises RunError.

    `size_key` is what the user cuts when there is no space. Of the rows, `there` are there already; one takes about
    `row_bytes` in its table.
    """
    from plinth._native import BulkLoad, EngineError

    config = {
        "connection": target.model_dump(),
        "streams": streams,
        "connect_timeout_s": 10.0,
        **load,
    }
    began = time.monotonic()

    def tell(done: int, total: int) -> None:
        rate = done / max(time.monotonic() - began, 1e-3)
        report(Progress("load rows", there + done, there + total, "rows", rate=rate, bytes_per_s=rate * row_bytes))

    try:
        bulk = BulkLoad(json.dumps(config))
        state = json.loads(bulk.progress())
        tell(state["rows_done"], state["rows_total"])
        try:
            bulk.start()
            while not bulk.wait(_POLL_S):
                state = json.loads(bulk.progress())
                tell(state["rows_done"], state["rows_total"])
        except Interrupted:
            bulk.stop()
            bulk.wait(_STOP_PATIENCE_S)
            raise
        result = json.loads(bulk.result())
    except EngineError as error:
        raise RunError(f"loading the dataset failed: {error}") from error
    if result["errors"]:
        raise _failure(result["errors"], size_key)
    tell(result["rows"], result["rows"])


def _failure(errors: list[dict[str, object]], size_key: str) -> RunError:
    first = errors[0]
    no_space = first.get("sqlstate") == DISK_FULL
    others = dict.fromkeys(str(error.get("message")) for error in errors)  # each stream tells its own
    others.pop(str(first.get("message")))
    return RunError(
        f"loading the dataset failed: {first.get('message')}",
        where=f"COPY, SQLSTATE {first.get('sqlstate')}" if first.get("sqlstate") else "COPY",
        hint=f"the storage is full: a larger size, or a smaller {size_key}" if no_space else None,
        details=[*others][:3],
    )
