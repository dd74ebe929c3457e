"""How long work tells how far it is."""

from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """How far one task is; `total` is None while unknown. `unit` is what is counted: "rows", "s", "bytes"."""

    task: str
    done: float
    total: float | None
    unit: str
    detail: str = ""


Report = Callable[[Progress], None]
