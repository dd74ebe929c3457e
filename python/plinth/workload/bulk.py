"""Rows that the bulk loader generates: started, watched, and its failures told."""

import json
from typing import Any

from plinth.model.connection import Connection
from plinth.model.errors import Interrupted, RunError
from plinth.model.progress import Progress, Report

LOAD_BYTES_PER_S = 40e6
"""COPY, keys and vacuum together, by bytes of tables and indexes, as measured on two cores."""

_POLL_S = 0.2
_STOP_PATIENCE_S = 10.0


def copy(
    generator: dict[str, Any], target: Connection, report: Report, *, streams: int, size_key: str, freeze: bool = False
) -> None:
    """Send the rows of `generator` (crates/bulk) into tables that are there and empty. Raises RunError.

    `freeze`: in one transaction that empties the tables first, of one stream, so that the rows may be frozen.
    `size_key` is what the user cuts when there is no space.
    """
    from plinth._native import BulkLoad, EngineError

    config = {
        "connection": target.model_dump(),
        "generator": generator,
        "streams": streams,
        "replace": freeze,
        "freeze": freeze,
        "connect_timeout_s": 10.0,
    }
    try:
        bulk = BulkLoad(json.dumps(config))
        try:
            bulk.start()
            while not bulk.wait(_POLL_S):
                state = json.loads(bulk.progress())
                report(Progress("load rows", state["rows_done"], state["rows_total"], "rows"))
        except Interrupted:
            bulk.stop()
            bulk.wait(_STOP_PATIENCE_S)
            raise
        result = json.loads(bulk.result())
    except EngineError as error:
        raise RunError(f"loading the dataset failed: {error}") from error
    report(Progress("load rows", result["rows"], result["rows"], "rows"))
    if result["errors"]:
        raise _failure(result["errors"], size_key)


def _failure(errors: list[dict[str, object]], size_key: str) -> RunError:
    first = errors[0]
    no_space = first.get("sqlstate") == "53100"
    return RunError(
        f"loading the dataset failed: {first.get('message')}",
        where=f"COPY, SQLSTATE {first.get('sqlstate')}" if first.get("sqlstate") else "COPY",
        hint=f"the storage is full: a larger size, or a smaller {size_key}" if no_space else None,
        details=[str(error.get("message")) for error in errors[1:4]],
    )
