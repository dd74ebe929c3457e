"""Transactions of compiled workloads: those that are part of the load engine (crates/load/src/compiled) and not scripts."""

from typing import Annotated, Literal

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.distribution import Distribution
from plinth.model.pacing import Paced
from plinth.model.tpcc_options import TpccChoices


class Keys(Frozen):
    """How a transaction chooses a row by its key, as pgbench's random functions do."""

    distribution: Distribution = "uniform"
    parameter: float | None = Field(default=None, description="Of gaussian, exponential and zipfian, which need it.")
    active_rows: int | None = Field(
        default=None, description="Among how many rows, the first ones. Default: all, by the variable scale."
    )


class AccountMix(Frozen):
    """Transactions `lookup` and `transfer` among pgbench's accounts, two of which a transfer reads and then writes."""

    workload: Literal["account-mix"] = "account-mix"
    keys: Keys = Keys()


class LedgerCommits(Frozen):
    """Transaction `ledger`: one row inserted and one updated, for a commit ledger to be compared with."""

    workload: Literal["ledger"] = "ledger"


class Tpcc(TpccChoices):
    """Transactions `new-order`, `payment`, `order-status`, `delivery` and `stock-level` on the dataset tpcc, of which the
    variables warehouses and seed tell."""

    workload: Literal["tpcc"] = "tpcc"


CompiledWorkload = Annotated[AccountMix | LedgerCommits | Tpcc, Field(discriminator="workload")]
"""The parameters of a workload."""


class CompiledTransaction(Paced):
    """A type of transaction, and how often it is chosen among others."""

    name: str = Field(description="Which of the workload's transactions it is: how results and errors name it.")
    native: CompiledWorkload
    weight: int = Field(default=1, ge=0, description="Its share among all weights; 0 for never.")
