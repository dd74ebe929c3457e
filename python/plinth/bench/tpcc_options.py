"""The options of `plinth bench -b tpcc`, and the transactions that they make."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from plinth.bench.failure import BenchFailure
from plinth.bench.scripts import BenchScript

if TYPE_CHECKING:
    from plinth.model.workload import WorkloadSpec

_TYPES = ("new_order", "payment", "order_status", "delivery", "stock_level")
_MOST_CARDS = 10_000


def read_mix(value: str) -> dict[str, int]:
    """Cards of each type from "45,43,4,4,4": new-order, payment, order-status, delivery, stock-level."""
    parts = value.split(",")
    if len(parts) != len(_TYPES) or not all(part.isascii() and part.isdigit() for part in parts):
        raise _bad_mix(value)
    cards = [int(part) for part in parts]
    if not any(cards) or max(cards) > _MOST_CARDS:
        raise _bad_mix(value)
    return dict(zip(_TYPES, cards, strict=True))


def _bad_mix(value: str) -> BenchFailure:
    return BenchFailure(
        f'invalid mix: "{value}"',
        detail=f"Expecting cards of {', '.join(_TYPES)}, whole numbers up to {_MOST_CARDS} and not all 0: "
        '"45,43,4,4,4".'.replace("_", "-"),
    )


def tpcc_scripts(options: Mapping[str, object]) -> list[BenchScript]:
    """The five types of transactions, each with its cards of the deck."""
    from plinth.workload.scripts import scripts_of  # pydantic and more, which other loads need not wait for

    transactions = scripts_of(tpcc_workload(options), "tpcc", {})
    return [BenchScript(one.name, "", one.weight, one.model_dump(mode="json")) for one in transactions]


def tpcc_workload(options: Mapping[str, object]) -> "WorkloadSpec":
    """The workload as an experiment has it, with the options of the command line."""
    from plinth.model.workload import WorkloadSpec

    return WorkloadSpec.model_validate({"builtin": "tpcc", **options})
