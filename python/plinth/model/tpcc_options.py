"""The options of the TPC-C-derived workload, as an experiment gives them and as the load engine takes them.

Field descriptions here are the reference. Numbers of clauses are those of the TPC-C specification, revision 5.11.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plinth.model.base import Frozen

Form = Literal["statements", "procedures"]
Isolation = Literal["read-committed", "repeatable-read", "serializable"]
Pacing = Literal["none", "spec"]
Home = Literal["by-client", "uniform"]
DeliveryMode = Literal["immediate", "deferred"]
Share = Annotated[float, Field(ge=0, le=1)]
Cards = Annotated[int, Field(ge=0, le=10_000)]


class TpccMix(Frozen):
    """Cards of each type in the deck that transactions are dealt from, without replacement (clause 5.2.4.2)."""

    new_order: Cards = 45
    payment: Cards = 43
    order_status: Cards = 4
    delivery: Cards = 4
    stock_level: Cards = 4

    def weights(self) -> dict[str, int]:
        """Return cards by the name of the transaction in results."""
        return {name.replace("_", "-"): getattr(self, name) for name in type(self).model_fields}

    @model_validator(mode="after")
    def _some_cards(self) -> "TpccMix":
        if not any(self.weights().values()):
            raise ValueError("every number of cards is 0: nothing would ever be run")
        return self


class TpccChoices(Frozen):
    """What the engine needs of the options."""

    form: Form = Field(
        default="statements",
        description="Of tpcc: statements, the client's SQL, in several round trips as an application would send it; or procedures, "
        "one call a transaction of PL/pgSQL in the server, which the dataset brings along. Both leave the same rows.",
    )
    isolation: Isolation = Field(default="read-committed", description="Of tpcc: the isolation of every transaction.")
    home: Home = Field(
        default="by-client",
        description="Of tpcc: which warehouse a client's transactions are of. by-client: warehouses take turns, and each client "
        "stays with its own, as a terminal does; uniform: drawn for each transaction.",
    )
    pipeline: bool = Field(
        default=False,
        description="Of tpcc, form statements: send statements that need no earlier answer together. Default: one at a time, as most "
        "applications do.",
    )
    remote_line_share: Share = Field(
        default=0.01, description="Of tpcc: the share of order lines that another warehouse supplies (clause 2.4.1.5)."
    )
    remote_payment_share: Share = Field(
        default=0.15,
        description="Of tpcc: the share of payments by a customer of another warehouse (clause 2.5.1.2).",
    )
    rollback_share: Share = Field(
        default=0.01,
        description="Of tpcc: the share of new orders that are rolled back because their last item does not exist (clause "
        "2.4.1.4). They count as rolled back, neither as failed nor in NOPM.",
    )


class TpccOptions(TpccChoices):
    """The keys of [workload] that only the built-in workload tpcc has."""

    pacing: Pacing = Field(
        default="none",
        description="Of tpcc: none, a client begins its next transaction when one has ended; or spec, clients are terminals with "
        "the specification's keying times (18, 3, 2, 2, 2 s) and think times (12, 12, 10, 5, 5 s on average), which are no part of "
        "a latency: give ten clients a warehouse and a duration of many minutes. A warehouse then does 12.86 NOPM at most.",
    )
    delivery: DeliveryMode = Field(
        default="immediate",
        description='Of tpcc with pacing = "spec": immediate, a terminal waits for its Delivery as for any transaction; or deferred, '
        "it goes on as soon as the Delivery is sent (clause 2.7.2), which its own session carries out meanwhile: the think time begins at once. "
        "The latency of a Delivery is the time until it has committed, in both.",
    )
    mix: TpccMix = Field(
        default=TpccMix(),
        description="Of tpcc: cards of each type in the deck that transactions are dealt from without replacement, one deck "
        "for each thread of the engine. Each deck has the mix exactly.",
    )

    @model_validator(mode="after")
    def _go_together(self) -> "TpccOptions":
        if self.pipeline and self.form == "procedures":
            raise ValueError('pipeline: of form = "statements" only; a call is one round trip already')
        if self.pacing == "spec" and self.home == "uniform":
            raise ValueError(
                'home: got uniform with pacing = "spec", whose terminals belong to a warehouse: take by-client'
            )
        if self.delivery == "deferred" and self.pacing != "spec":
            raise ValueError(
                'delivery: got deferred without pacing = "spec"; it is carried out while its terminal thinks, and clients do '
                "not think: take immediate"
            )
        return self

    def tpcc_keys(self) -> list[str]:
        """Return the keys that differ from their defaults."""
        fields = TpccOptions.model_fields
        return [key for key in fields if getattr(self, key) != fields[key].default]
