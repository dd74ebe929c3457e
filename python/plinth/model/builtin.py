"""The built-in workloads: the dataset that each works on, and what its transactions do."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

BuiltinName = Literal[
    "tpcb-like",
    "simple-update",
    "select-only",
    "account-mix",
    "numbers-select",
    "numbers-update",
    "upsert-function",
    "upsert",
    "ledger",
    "tpcc",
]


class BuiltinTraits(NamedTuple):
    """The traits of a built-in workload that are known without running it."""

    dataset: str
    """The kind of dataset that it works on."""
    writes: bool | None = True
    """Whether its transactions write rows; None where some do and others do not."""
    is_whole_transaction: bool = True
    """Whether its statements are a transaction already, so that they cannot be repeated within one."""
    rolls_back: bool = False
    """Whether some of its transactions end with ROLLBACK on purpose, and count as done."""
    is_pgbench: bool = False
    """Whether it is a script of pgbench, which also works on tables that pgbench -i has made."""
    is_dealt: bool = False
    """Whether its transactions are dealt from a deck, without replacement, and not drawn independently each time."""
    leaves_history: bool = False
    """Whether each of its commits leaves a row that stays, so that counting them tells how many there are."""


BUILTINS: Mapping[BuiltinName, BuiltinTraits] = {
    "tpcb-like": BuiltinTraits("tpcb", is_pgbench=True, leaves_history=True),
    "simple-update": BuiltinTraits("tpcb", is_pgbench=True, leaves_history=True),
    "select-only": BuiltinTraits("tpcb", writes=False, is_whole_transaction=False, is_pgbench=True),
    "account-mix": BuiltinTraits("tpcb", writes=None, rolls_back=True),
    "numbers-select": BuiltinTraits("numbers", writes=False, is_whole_transaction=False),
    "numbers-update": BuiltinTraits("numbers", is_whole_transaction=False),
    "upsert-function": BuiltinTraits("upsert"),
    "upsert": BuiltinTraits("upsert"),
    "ledger": BuiltinTraits("none"),
    "tpcc": BuiltinTraits("tpcc", writes=None, rolls_back=True, is_dealt=True),
}
