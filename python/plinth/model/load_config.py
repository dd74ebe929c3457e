"""The load engine's configuration: the JSON that `plinth._native.LoadRun` takes.

Defaults and bounds are declared here. docs/reference/load.schema.json and crates/load/src/limits.rs are made of them, and
crates/load/tests/schema.rs holds the engine to the former.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import ConfigDict, Field, JsonValue

from plinth.model.base import Frozen
from plinth.model.connection import Connection
from plinth.model.distribution import Distribution
from plinth.model.tpcc_options import TpccChoices
from plinth.model.units import MAX_DURATION_S

WaitS = Annotated[float, Field(ge=0, le=MAX_DURATION_S, allow_inf_nan=False)]


class Paced(Frozen):
    """What a client runs, with the waits around it; neither is part of a latency."""

    keying_s: WaitS = Field(default=0.0, description="How long a client waits before each.")
    think_s: WaitS = Field(
        default=0.0,
        description="How long it waits afterwards, on average: exponentially distributed, cut at ten times the average.",
    )
    deferred: bool = Field(
        default=False,
        description="Whether a client does not wait for its end: the wait afterwards then begins when it was due.",
    )


class Pace(NamedTuple):
    """The waits around a type of transaction."""

    keying_s: float
    think_s: float


TPCC_PACES = {
    "new-order": Pace(18, 12),
    "payment": Pace(3, 12),
    "order-status": Pace(2, 10),
    "delivery": Pace(2, 5),
    "stock-level": Pace(2, 5),
}
"""Least keying times, and least averages of think times, of clause 5.2.5.7 of the TPC-C specification, revision 5.11."""


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


Arrivals = Literal["poisson", "uniform"]
Protocol = Literal["simple", "extended", "prepared"]
_JSON_SCHEMA_WORDS = {
    "ge": "minimum",
    "le": "maximum",
    "gt": "exclusiveMinimum",
    "lt": "exclusiveMaximum",
    "min_length": "minItems",
}
MAX_CLIENTS = 262_143
"""PostgreSQL's greatest `max_connections`: MAX_BACKENDS of postmaster.h."""
MAX_THREADS = 1024
"""Of what people ask for; the engine itself has no limit."""
MAX_TPS = 1e9
MAX_SPEED = 1e6
"""Times of a recording are divided by this at most."""


def bounds(**limits: float) -> dict[str, JsonValue]:
    """Return the bounds of a field, in the words of pydantic's Field. The engine refuses what is beyond them, and names the key."""
    return {_JSON_SCHEMA_WORDS[word]: limit for word, limit in limits.items()}


class LoadScript(Paced):
    """A script in pgbench's language, and how often it is chosen among others."""

    name: str = Field(description="Its file, or the name of a built-in: how results and errors name it.")
    source: str
    weight: int = Field(default=1, ge=0, description="Its share among all scripts' weights; 0 for never.")


class Finite(Frozen):
    """What has numbers that JSON must be able to carry: infinities and NaN would be nulls there, and so be nothing."""

    model_config = ConfigDict(allow_inf_nan=False)


class Stage(Finite):
    """A rate, in transactions a second, that holds for a while or changes linearly."""

    from_tps: float = Field(
        json_schema_extra=bounds(ge=0, le=MAX_TPS),
    )
    to_tps: float = Field(
        json_schema_extra=bounds(ge=0, le=MAX_TPS),
    )
    duration_s: float | None = Field(
        json_schema_extra=bounds(gt=0, le=MAX_DURATION_S),
        default=None,
        description="None, for the last only: until the end of the run.",
    )


class Rate(Frozen):
    """An open loop: transactions are due at set times, however long others take.

    The stages follow one another from the start of measuring; the first one's first rate holds during the warm-up, the last
    one's last rate until the end.
    """

    stages: tuple[Stage, ...] = Field(
        json_schema_extra=bounds(min_length=1),
    )
    arrivals: Arrivals = Field(
        default="poisson",
        description="poisson: independent of one another, as pgbench's --rate; uniform: evenly spaced.",
    )

    @classmethod
    def constant(cls, tps: float, arrivals: Arrivals = "poisson") -> "Rate":
        """Return a schedule with one rate all along."""
        return cls(stages=(Stage(from_tps=tps, to_tps=tps),), arrivals=arrivals)


class LogFiles(Finite):
    """pgbench's --log: a line for each transaction, in files named PREFIX.PID and PREFIX.PID.THREAD."""

    prefix: str
    aggregate_interval_s: int | None = Field(
        json_schema_extra=bounds(ge=1), default=None, description="One line for all transactions of an interval."
    )
    sampling_rate: float | None = Field(
        json_schema_extra=bounds(gt=0, le=1), default=None, description="Share of the transactions that are logged."
    )
    failures_detailed: bool = Field(default=False, description="Tell apart how transactions failed.")


class LedgerFiles(Frozen):
    """The commit ledger: the answer to each, in files named THREAD.ledger (docs/internals/ledger.md)."""

    folder: str = Field(description="An existing folder without a ledger, which is not on a disk under test.")
    first_number: int = Field(
        json_schema_extra=bounds(ge=1, le=2**52),
        default=1,
        description="The number of each client's first transaction: loads on the same tables continue each other's.",
    )


class LoadPart(Frozen):
    """One of the processes that run a load together. Threads are dealt in turn; clients and threads of the configuration are those
    of the whole load, and all seeds are theirs. With a rate, one process of arrivals is shared: the i-th goes to thread i modulo
    threads. A part connects its clients and waits until it is told when to begin."""

    number: int = Field(json_schema_extra=bounds(ge=0), description="From 0, below `of`.")
    of: int = Field(
        json_schema_extra=bounds(ge=1),
        description="How many processes run the load; each needs one of its threads at least.",
    )


class ShellUser(Frozen):
    """Another user, for shell commands of scripts that must not have the rights of who runs the load."""

    uid: int
    gid: int
    environment: dict[str, str] = Field(description="The whole environment of the commands.")
    discards_output: bool = Field(
        default=False, description="Drop what commands print, unless \\setshell reads it: it could be our terminal."
    )


class Recording(Finite):
    """A recorded workload, which is replayed: a class of its statements takes the place of a script."""

    file: str = Field(description="The replay file, which `plinth replay prepare` makes.")
    speed: float | None = Field(
        json_schema_extra=bounds(gt=0, le=MAX_SPEED),
        default=None,
        description="Times of the recording are divided by this, and latency counts from then; None: each session begins its next "
        "statement when the one before has ended.",
    )
    pooled: bool = Field(
        default=False,
        description="Sessions share the clients' connections, each for a transaction at a time; else each has a connection of its "
        "own, opened and closed as recorded.",
    )
    read_only: bool = Field(
        default=False,
        description="Transactions are read-only unless they say otherwise; what the server refuses therefore is counted as skipped.",
    )
    classes: int = Field(
        json_schema_extra=bounds(ge=1, le=10_000),
        default=100,
        description="Classes of statements with figures of their own: those with the most time when they were recorded.",
    )


class LoadConfig(Finite):
    """A load: who connects where and runs what, for how long, and what is reported."""

    connection: Connection
    scripts: Sequence[LoadScript | CompiledTransaction] = Field(
        json_schema_extra=bounds(min_length=1),
        default=(),
        description="What the clients run, chosen independently for each transaction, by weight; nothing where a recording is "
        "replayed.",
    )
    replay: Recording | None = Field(
        default=None,
        description="A recording that is replayed instead of scripts; clients are then the most connections at one time.",
    )
    deck: bool = Field(
        default=False,
        description="Deal what the clients run from a deck, without replacement, that has as many cards of each as its weight "
        "says; one deck for each thread, shuffled again when all cards are dealt, of at most 100,000 cards.",
    )
    variables: dict[str, str] = Field(default_factory=dict, description="Set from outside, as pgbench -D.")
    clients: int = Field(
        json_schema_extra=bounds(ge=1, le=MAX_CLIENTS),
        default=1,
    )
    threads: int = Field(
        json_schema_extra=bounds(ge=1), default=1, description="More threads than clients are not started."
    )
    protocol: Protocol = "prepared"
    warmup_s: float = Field(
        json_schema_extra=bounds(ge=0, le=MAX_DURATION_S),
        default=0.0,
        description="How long the load runs before it is measured.",
    )
    warmup_max_s: float | None = Field(
        json_schema_extra=bounds(ge=0, le=MAX_DURATION_S),
        default=None,
        description="The warm-up continues until it is ended (`begin_measuring`), but no longer than this; warmup_s is then its minimum.",
    )
    duration_s: float | None = Field(
        json_schema_extra=bounds(gt=0, le=MAX_DURATION_S),
        default=None,
        description="How long it is measured; a replay ends with its recording at the latest, and needs none.",
    )
    transactions_per_client: int | None = Field(
        json_schema_extra=bounds(ge=1),
        default=None,
        description="Or, instead of duration_s: how many transactions of each client are measured.",
    )
    rate: Rate | None = Field(
        default=None,
        description="With it the loop is open, and latency counts from when a transaction was due, which avoids coordinated "
        "omission. Without it the loop is closed: a client begins the next when one has ended.",
    )
    latency_limit_s: float | None = Field(
        json_schema_extra=bounds(gt=0, le=MAX_DURATION_S),
        default=None,
        description="What takes longer is counted as late; with a rate, what is later before it begins is skipped.",
    )
    seed: int = Field(
        json_schema_extra=bounds(ge=0, lt=2**64),
        default=0,
        description="The same gives the same random numbers, as pgbench's --random-seed.",
    )
    max_tries: int = Field(
        json_schema_extra=bounds(ge=0, lt=2**32),
        default=1,
        description="Tries of a transaction that fails with a serialization failure or a deadlock; 0 for as many as "
        "duration and latency limit allow.",
    )
    reconnect: bool = Field(default=False, description="Each transaction gets a connection of its own.")
    retry_connect_s: float | None = Field(
        json_schema_extra=bounds(gt=0, le=MAX_DURATION_S),
        default=None,
        description="A client whose connection is lost, or that gets none, tries again after this pause, instead of ending.",
    )
    replace_terminated: bool = Field(
        default=False,
        description="A client whose session an administrator terminates (pg_terminate_backend, SQLSTATE 57P01) opens another one at "
        "once, and its transaction has failed; where it gets none, as of a server that shuts down, it ends.",
    )
    abort_on_error: bool = Field(
        default=False, description="An error that cannot be tried again ends its client, as in pgbench."
    )
    require_all_clients: bool = Field(
        default=False,
        description="Nothing begins unless every client has a connection; else those that have one begin.",
    )
    check_variables: bool = Field(
        default=True,
        description="A variable that nothing sets, or a name that no variable can have, is an error before anything begins; "
        "else of the client that reaches it.",
    )
    exit_on_abort: bool = Field(default=False, description="A client that ends before its time ends the run.")
    verbose_errors: bool = Field(default=False, description="Tell every error in the progress.")
    command_latencies: bool = Field(
        default=False, description="Time meta commands as well (histograms of scope command): pgbench's -r."
    )
    log: LogFiles | None = None
    ledger: LedgerFiles | None = Field(
        default=None,
        description="Record the answer that each client got to each commit. Scripts get two statements before each COMMIT, on the "
        "tables plinth_ledger_commits and plinth_ledger_clients.",
    )
    shell_user: ShellUser | None = Field(
        default=None, description="Who runs the commands of \\shell and \\setshell; None for who runs the load."
    )
    part: LoadPart | None = Field(
        default=None, description="The part that this process runs of a load that several run together."
    )
    connect_timeout_s: float = Field(
        json_schema_extra=bounds(gt=0, le=MAX_DURATION_S),
        default=10.0,
        description="For each connection, unless its own says otherwise.",
    )
    stop_timeout_s: float = Field(
        json_schema_extra=bounds(ge=0, le=MAX_DURATION_S),
        default=10.0,
        description="How long running transactions may take after a stop.",
    )

    @property
    def only_script(self) -> LoadScript:
        """The script of a load that has one and nothing else. Raises ValueError of every other load."""
        match self.scripts:
            case [LoadScript() as script]:
                return script
            case _:
                raise ValueError(f"one script is needed; got {', '.join(one.name for one in self.scripts)}")
