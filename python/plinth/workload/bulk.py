"""Rows that the bulk loader generates: starting it, waiting for it, and reporting its errors."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from plinth.model.connection import Connection
from plinth.model.errors import RunError
from plinth.model.progress import Progress, Report
from plinth.system import cancel
from plinth.system.full import full_hint

COPY_BYTES_PER_S = 40e6
"""COPY, keys and vacuum together, by bytes of tables and indexes, as measured on two cores."""

_POLL_S = 0.2
_STOP_TIMEOUT_S = 10.0


class Loader(Protocol):
    """A loader that writes rows in its own threads (crates/native): `BulkLoad`, `PageLoad`."""

    def start(self, check: Callable[[], None] | None = None) -> None:
        """Open connections and begin; an exception of `check` meanwhile ends it."""
        ...

    def progress(self) -> str:
        """Return the progress as JSON."""
        ...

    def stop(self) -> None:
        """Ask it to stop."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Wait at most that long, and return whether it has ended."""
        ...

    def result(self) -> str:
        """Return the result as JSON."""
        ...


MakeLoader = Callable[[dict[str, Any]], Loader]
"""Makes a loader that sends rows by COPY, of a configuration as `BulkLoad` takes it."""
MakeFleetLoader = Callable[[dict[str, Any], float], Loader]
"""Makes the loader of a configuration, for rows of about so many bytes."""


def bulk_loader(config: dict[str, Any]) -> Loader:
    """Return the bulk loader of this process."""
    from plinth._native import BulkLoad

    with loader_errors():
        return BulkLoad(json.dumps(config))


@contextmanager
def loader_errors() -> Iterator[None]:
    """Convert errors of loaders to RunError."""
    from plinth._native import EngineError

    try:
        yield
    except EngineError as error:
        raise RunError(f"loading the dataset failed: {error}") from error


def watched(
    make: Callable[[], Loader],
    task: str,
    report: Report,
    *,
    row_bytes: float,
    there: int = 0,
    before: str | None = None,
) -> dict[str, Any]:
    """Run a loader to its end and return its result. Raises RunError when it cannot begin.

    Anything raised meanwhile, such as Interrupted by a signal, ends it. Of the rows, `there` are there already; one
    takes about `row_bytes` in its table. `before`: the task of a loader that counts rows before it writes them.
    """
    began = time.monotonic()

    def tell(done: int, total: int) -> None:
        rate = done / max(time.monotonic() - began, 1e-3)
        report(Progress(task, there + done, there + total, "rows", rate=rate, bytes_per_s=rate * row_bytes))

    def look() -> None:
        state = json.loads(loader.progress())
        if before is not None and state["rows_counted"] < state["rows_to_count"]:
            report(Progress(before, state["rows_counted"], state["rows_to_count"], "rows"))
        else:
            tell(state["rows_done"], state["rows_total"])

    with loader_errors():
        loader = make()
        look()
        try:
            loader.start(cancel.check)
            while not loader.wait(_POLL_S):
                cancel.check()
                look()
        except BaseException:
            loader.stop()
            loader.wait(_STOP_TIMEOUT_S)
            raise
        result = json.loads(loader.result())
    if not result["errors"]:
        tell(result["rows"], result["rows"])
    return result


def copy(
    load: dict[str, Any],
    target: Connection,
    report: Report,
    *,
    make: MakeLoader,
    streams: int,
    size_key: str,
    there: int,
    row_bytes: float,
) -> None:
    """Send rows by COPY, by a loader that is made by `make`; `load` has keys of the bulk loader's configuration (crates/bulk).
    Raises RunError.

    `size_key` is the key that the user reduces when there is no space; `there` and `row_bytes` are those of
    `watched`.
    """
    config = {
        "connection": target.for_engine(),
        "streams": streams,
        "connect_timeout_s": 10.0,
        **load,
    }
    result = watched(lambda: make(config), "load rows", report, row_bytes=row_bytes, there=there)
    if result["errors"]:
        raise _failure(result["errors"], size_key)


def other_messages(errors: list[dict[str, Any]]) -> list[str]:
    """Return the messages that differ from the first: each thread or stream has its own, often the same."""
    first, *others = (str(error["message"]) for error in errors)
    return [message for message in dict.fromkeys(others) if message != first][:3]


def _failure(errors: list[dict[str, Any]], size_key: str) -> RunError:
    first = errors[0]
    return RunError(
        f"loading the dataset failed: {first.get('message')}",
        where=f"COPY, SQLSTATE {first.get('sqlstate')}" if first.get("sqlstate") else "COPY",
        hint=full_hint(first.get("sqlstate"), str(first.get("message")), f"take a smaller {size_key}"),
        details=other_messages(errors),
    )
