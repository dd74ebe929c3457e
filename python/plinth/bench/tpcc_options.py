"""The options of `plinth bench -b tpcc`, and the transactions that they make."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from plinth.bench.failure import BenchFailure
from plinth.bench.options import BenchOptions
from plinth.bench.scripts import BenchScript

if TYPE_CHECKING:
    from plinth.model.workload import WorkloadSpec

FORMS = ("statements", "procedures")
ISOLATIONS = ("read-committed", "repeatable-read", "serializable")
PACINGS = ("none", "spec")
DELIVERIES = ("immediate", "deferred")
_TYPES = ("new_order", "payment", "order_status", "delivery", "stock_level")
_MOST_CARDS = 10_000


def read_mix(value: str) -> dict[str, int]:
    """Return cards of each type from "45,43,4,4,4": new-order, payment, order-status, delivery, stock-level."""
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


def choose_tpcc(asked: BenchOptions, value: str) -> None:
    """Apply -b tpcc. Raises BenchFailure for a weight, which it cannot have."""
    if "@" in value:
        raise BenchFailure(
            f"-b {value}: tpcc has no weight, for it cannot be mixed with other scripts",
            hint="Its own types have cards of a deck that is dealt whole: --mix=45,43,4,4,4.",
        )
    asked.tpcc = True


def tpcc_option(key: str, values: Sequence[str]) -> Callable[[BenchOptions, str], None]:
    """Return what an option of tpcc with these values does."""

    def apply(asked: BenchOptions, value: str) -> None:
        if value not in values:
            raise BenchFailure(f'invalid {key}: "{value}"', detail=f"Expecting one of: {', '.join(values)}.")
        asked.tpcc_options[key] = value

    return apply


def set_mix(asked: BenchOptions, value: str) -> None:
    """Apply --mix."""
    asked.tpcc_options["mix"] = read_mix(value)


def complete_tpcc(asked: BenchOptions) -> None:
    """Make the scripts of -b tpcc. Raises BenchFailure for what the TPC-C-derived workload cannot do."""
    if asked.scripts:
        raise BenchFailure(
            "-b tpcc cannot be mixed with other scripts: its transactions are dealt from a deck of their own, whose mix is exact",
            hint="Run both at the same time, each in a database of its own.",
        )
    if asked.variables:
        raise BenchFailure("-D/--define sets variables of scripts, and tpcc is none")
    if asked.protocol_given and asked.protocol == "simple":
        raise BenchFailure(
            "-M simple: the statements of tpcc have parameters, which only extended and prepared can send",
            hint="Leave -M out for prepared.",
        )
    if asked.rate is not None and asked.tpcc_options.get("pacing") == "spec":
        raise BenchFailure("-R/--rate and --pacing=spec both say when transactions begin: give one of them")
    if asked.tpcc_options.get("delivery") == "deferred" and asked.tpcc_options.get("pacing") != "spec":
        raise BenchFailure(
            "--delivery=deferred needs --pacing=spec: a Delivery is carried out while its terminal thinks",
            hint="Without think times clients wait for it: leave --delivery out.",
        )
    if not asked.protocol_given:
        asked.protocol = "prepared"
    asked.scripts = tpcc_scripts(asked.tpcc_options)


def tpcc_scripts(options: Mapping[str, object]) -> list[BenchScript]:
    """Return the five types of transactions, each with its cards of the deck."""
    from plinth.workload.scripts import scripts_of  # pydantic and more, which other loads need not wait for

    transactions = scripts_of(tpcc_workload(options), "tpcc", {})
    return [BenchScript(one.name, "", one.weight, one.model_dump(mode="json")) for one in transactions]


def tpcc_workload(options: Mapping[str, object]) -> "WorkloadSpec":
    """Return the workload as an experiment has it, with the options of the command line."""
    from plinth.model.workload import WorkloadSpec

    return WorkloadSpec.model_validate({"builtin": "tpcc", **options})
