"""The bulk loader's output: the JSON of `plinth._native.BulkLoad`."""

from plinth.model.base import Frozen


class BulkProgress(Frozen):
    """How far a bulk load is."""

    rows_done: int
    rows_total: int
    bytes_sent: int
    streams_open: int
    finished: bool


class BulkError(Frozen):
    """Why a stream has ended before its time."""

    kind: str
    sqlstate: str | None
    table: str
    stream: int
    message: str


class BulkResult(Frozen):
    """What a bulk load has sent. `rows` are those that are committed."""

    rows: int
    bytes_sent: int
    elapsed_ns: int
    user_cpu_ns: int
    system_cpu_ns: int
    interrupted: bool
    errors: tuple[BulkError, ...]
