"""The workload of an experiment: what the clients do, by how many of them, and at which rate.

Field descriptions here are the reference: the JSON Schema, `plinth init` and docs/reference are made from them.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plinth.model.base import Frozen, Names
from plinth.model.builtin import BUILTINS, BuiltinName
from plinth.model.distribution import Distribution, check_parameter
from plinth.model.files import MOST_WEIGHT, Files, weighted
from plinth.model.load_config import MAX_CLIENTS, MAX_SPEED, MAX_THREADS, MAX_TPS, Arrivals, Protocol
from plinth.model.tpcc_options import TpccOptions
from plinth.model.units import DurationS


class RateStage(Frozen):
    """A rate that holds for a while, or changes linearly to another."""

    tps: float = Field(
        ge=0, le=MAX_TPS, description="Transactions due a second; at its beginning, if it changes.", examples=[100]
    )
    to_tps: float | None = Field(default=None, alias="to", ge=0, le=MAX_TPS, description="At its end.", examples=[500])
    duration_s: DurationS | None = Field(
        default=None, alias="duration", gt=0, description="Default, of the last only: until the end.", examples=["30s"]
    )


Driver = Literal["plinth", "psycopg", "sqlalchemy"]


class SessionFilter(Frozen):
    """Which sessions of a log, and which of their statements, are replayed."""

    database: Names = Field(default=(), description="Only sessions of this database, or of these.", examples=["shop"])
    user: Names = Field(default=(), description="Only sessions of this user, or of these.", examples=["app"])
    application_name: Names = Field(
        default=(), description="Only sessions of this application, or of these.", examples=["till"]
    )
    begin: str | None = Field(
        default=None,
        description="Only statements that began then or later: a time as in the log, with its zone.",
        examples=["2026-11-27 12:41:01 UTC"],
    )
    end: str | None = Field(
        default=None, description="Only statements that began before then.", examples=["2026-11-27 13:00:00 UTC"]
    )


class WorkloadSpec(TpccOptions):
    """What the clients do: a built-in workload or script files, by how many clients."""

    builtin: BuiltinName | None = Field(
        default=None,
        description="A built-in workload. On dataset tpcb, pgbench's scripts, or account-mix, which is compiled into the load "
        "engine: nine lookups of a balance to one transfer, which reads two balances and writes them; on numbers, select or "
        "update a row by its number; on upsert, a function that updates a row or inserts it: upsert-function looks it up first "
        "and swallows every error, upsert updates first; on tpcc, tpcc: the five transactions of the TPC-C-derived workload, "
        "compiled in. Without a dataset (kind none): ledger, which is compiled in as well; its "
        "transactions insert a row and update one, and every commit is looked for after the trial.",
    )
    keys: Distribution = Field(
        default="uniform",
        description="How a built-in workload chooses its row (of tpcb: the account), as pgbench's random functions do.",
    )
    keys_parameter: float | None = Field(
        default=None,
        description="Of keys: gaussian, standard deviations from the middle to either end (default 10); exponential (default "
        "10) and zipfian (default 1.1), how steep.",
        examples=[2.5],
    )
    active_rows: int | None = Field(
        default=None,
        ge=1,
        description="The working set: a built-in workload chooses among the first rows only, that many. Default: all rows.",
        examples=[1_000_000],
    )
    statements: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="Statements in a transaction of a built-in script, each with a row of its own.",
    )
    script: Files = Field(
        default=(),
        description="Path of a script in pgbench's language, relative to the experiment file; or a list, of which each "
        'transaction is drawn, by their weights as in "read.sql@9" (1 where none is said).',
        examples=["scripts/upsert.sql"],
    )
    replay: Files = Field(
        default=(),
        description="A recorded workload: a replay file, which `plinth replay prepare` makes, or the log of a server, from which one "
        "is made while planning; paths or patterns, relative to the experiment file, or a list. Each statement is due as it was "
        "recorded, and a class of statements, which differ in constants only, is a type of transaction.",
        examples=["log/postgresql-*.json"],
    )
    speed: Annotated[float, Field(gt=0, le=MAX_SPEED)] | Literal["closed"] = Field(
        default=1.0,
        description="Of replay: times of the recording are divided by this, and latency counts from then (an open loop); closed: "
        "each session begins its next statement when the one before has ended.",
        examples=[2.0],
    )
    sessions: Literal["all"] | SessionFilter = Field(
        default="all",
        description="Of replay of a log: which sessions; all, or by database, user, application and time.",
    )
    writes: bool = Field(
        default=True,
        description="Of replay: whether statements may write. False: sessions are read-only (default_transaction_read_only), and "
        "what the server refuses therefore is counted as skipped.",
    )
    connections: int | None = Field(
        default=None,
        ge=1,
        le=MAX_CLIENTS,
        description="Of replay: sessions share so many connections, each for a transaction at a time, as a pool has it. Default: a "
        "connection for each session, opened and closed as recorded.",
        examples=[200],
    )
    log_line_prefix: str | None = Field(
        default=None,
        description="Of replay of a plain log: the server's setting. Default: that of PostgreSQL, or of Debian's packages.",
        examples=["%m [%p] %q%u@%d "],
    )
    classes: int = Field(
        default=50,
        ge=1,
        le=1000,
        description="Of replay: how many classes of statements have figures of their own, those with the most time when recorded.",
    )
    clients: int = Field(
        default=8, ge=1, le=MAX_CLIENTS, description="Connections that work at the same time.", examples=[16]
    )
    threads: int | None = Field(
        default=None,
        ge=1,
        le=MAX_THREADS,
        description="Threads of the load engine. Default: one for each core, at most 8 and at most clients.",
        examples=[2],
    )
    driver: Driver = Field(
        default="plinth",
        description="Who the clients are: plinth, the load engine; psycopg and sqlalchemy, programs in Python with a process for "
        "each client, in a closed loop and of scripts of SQL and \\set only.",
    )
    protocol: Protocol = Field(default="prepared", description="How statements are sent.")
    max_tries: int = Field(
        default=1, ge=1, description="Tries of a transaction after a serialization failure or deadlock; 1 is no retry."
    )
    rate: Annotated[float, Field(le=MAX_TPS)] | list[RateStage] | None = Field(
        default=None,
        description="Transactions that are due each second, over all clients, however long others take (an open loop): latency "
        "counts from when they are due, which avoids coordinated omission. One number, or stages that step and ramp from the "
        "start of measuring. Default: a client begins when it has finished.",
        examples=[500],
    )
    arrivals: Arrivals = Field(
        default="poisson",
        description="With rate: poisson, independent of one another as of many users, or uniform, evenly spaced.",
    )
    latency_limit_s: DurationS | None = Field(
        default=None,
        alias="latency_limit",
        gt=0,
        description="Transactions that take longer are counted as late; with rate, those that are later than this before they "
        "could begin are skipped.",
        examples=["100ms"],
    )
    reconnect: bool = Field(default=False, description="A new connection for each transaction, whose time is recorded.")
    ledger: bool = Field(
        default=False,
        description="Record the answer that each client got to each commit, and compare that with the database after each trial: "
        "before each COMMIT or END, scripts get two statements, which insert a row and update one in tables of the ledger's "
        "own. Each script needs a transaction block. The built-in workload ledger does so in any case.",
    )
    variables: dict[Annotated[str, Field(pattern=r"^\w+$")], int | float | str] = Field(
        default_factory=dict, description="Variables of the script, as pgbench -D.", examples=[{"rows": 1000}]
    )

    @property
    def is_read_only(self) -> bool | None:
        """Whether its transactions write no row; None where only the server knows, as for mixes, scripts and recordings."""
        if self.builtin is None or (writes := BUILTINS[self.builtin].writes) is None:
            return None
        return not writes

    @property
    def is_open_loop(self) -> bool:
        """Whether transactions are due at set times: by a rate, or as recorded."""
        return self.rate is not None or (bool(self.replay) and self.speed != "closed")

    @property
    def schedule(self) -> tuple[object, ...]:
        """What says when transactions are due: equal in open loops that are asked for the same."""
        return self.rate, self.replay, self.speed

    @property
    def keeps_ledger(self) -> bool:
        """Whether the answers to commits are recorded, and compared with the database."""
        return self.ledger or self.builtin == "ledger"

    @property
    def is_dealt(self) -> bool:
        """Whether its transactions are dealt from a deck, without replacement."""
        return self.builtin is not None and BUILTINS[self.builtin].is_dealt

    @property
    def rolls_back(self) -> bool:
        """Whether some of its transactions end with ROLLBACK on purpose."""
        return self.builtin is not None and BUILTINS[self.builtin].rolls_back

    @model_validator(mode="after")
    def _one_source(self) -> "WorkloadSpec":
        if [self.builtin is not None, bool(self.script), bool(self.replay)].count(True) != 1:
            raise ValueError(
                'give exactly one of builtin (such as "tpcb-like"), script (a path) and replay (a recorded workload)'
            )
        paths, weights = zip(*map(weighted, self.script or ("",)), strict=True)
        if len(set(paths)) < len(paths):
            raise ValueError("script: the same path is there twice")
        if not any(weights):
            raise ValueError("script: every weight is 0: nothing would ever be run")
        if max(weights) > MOST_WEIGHT:
            raise ValueError(f"script: got a weight of {max(weights)}; allowed are at most {MOST_WEIGHT}")
        return self

    @model_validator(mode="after")
    def _recording(self) -> "WorkloadSpec":
        defaults = {
            name: field.get_default(call_default_factory=True) for name, field in type(self).model_fields.items()
        }
        given = {name for name, default in defaults.items() if getattr(self, name) != default}
        of_replay = ("speed", "sessions", "writes", "connections", "log_line_prefix", "classes")
        if not self.replay and (idle := [name for name in of_replay if name in given]):
            raise ValueError(f"{', '.join(idle)}: of replay only")
        recorded = (
            "clients",
            "protocol",
            "driver",
            "max_tries",
            "rate",
            "arrivals",
            "latency_limit_s",
            "reconnect",
            "ledger",
        )
        if self.replay and (refused := [name for name in (*recorded, "variables") if name in given]):
            raise ValueError(
                f"{', '.join(name.removesuffix('_s') for name in refused)}: not with replay, as the recording says who sends what, and "
                "when; connections says how many there are at most"
            )
        return self

    @model_validator(mode="after")
    def _driver_that_can_do_it(self) -> "WorkloadSpec":
        of_the_engine = {"rate": None, "reconnect": False, "threads": None, "ledger": False}
        asked = [key for key, usual in of_the_engine.items() if getattr(self, key) != usual]
        if self.driver != "plinth" and asked:
            raise ValueError(
                f"{', '.join(asked)}: of driver plinth only; {self.driver} is a closed loop of a process for each client"
            )
        return self

    @model_validator(mode="after")
    def _keys_that_can_be(self) -> "WorkloadSpec":
        ours = ("keys", "keys_parameter", "active_rows", "statements")
        given = [key for key in ours if getattr(self, key) != type(self).model_fields[key].default]
        if self.builtin is None and given:
            raise ValueError(f"{', '.join(given)}: of built-in scripts only; a custom script says what it chooses")
        if self.builtin is not None and BUILTINS[self.builtin].is_whole_transaction and self.statements > 1:
            raise ValueError(
                f"statements: got {self.statements}; {self.builtin} is a whole transaction: only 1 is allowed"
            )
        check_parameter("keys_parameter", self.keys, self.keys_parameter)
        return self

    @model_validator(mode="after")
    def _ledger_that_can_be(self) -> "WorkloadSpec":
        if self.ledger and self.is_read_only:
            raise ValueError(f"ledger: {self.builtin} writes nothing: there are no commits to look for afterwards")
        if self.builtin == "account-mix" and self.ledger:
            raise ValueError(
                "ledger: account-mix is compiled in, and no statements can be added to it; take a script or tpcb-like"
            )
        chosen = [key for key in ("keys", "active_rows") if getattr(self, key) != type(self).model_fields[key].default]
        if self.builtin == "ledger" and chosen:
            raise ValueError(f"{', '.join(chosen)}: the workload ledger inserts rows, and chooses none")
        if self.builtin == "tpcc" and chosen:
            raise ValueError(f"{', '.join(chosen)}: the workload tpcc chooses rows as the TPC-C specification says")
        return self

    @model_validator(mode="after")
    def _options_of_tpcc(self) -> "WorkloadSpec":
        if self.builtin != "tpcc" and (given := self.tpcc_keys()):
            raise ValueError(f'{", ".join(given)}: of builtin = "tpcc" only')
        if self.rate is not None and self.pacing != "none":
            raise ValueError('rate: not with pacing = "spec"; one of both says when transactions begin')
        return self

    @model_validator(mode="after")
    def _rates_that_can_be(self) -> "WorkloadSpec":
        stages = self.rate if isinstance(self.rate, list) else []
        rates = [rate for stage in stages for rate in (stage.tps, stage.to_tps) if rate is not None]
        if self.rate == [] or (not rates and isinstance(self.rate, int | float) and self.rate <= 0):
            raise ValueError("rate: give a number of transactions a second above 0, or stages with one")
        if rates and not any(rates):
            raise ValueError("rate: every stage has a rate of 0: nothing would ever be due")
        if any(stage.duration_s is None for stage in stages[:-1]):
            raise ValueError("rate: every stage but the last needs a duration")
        if any(stage.to_tps is not None and stage.duration_s is None for stage in stages):
            raise ValueError("rate: a stage whose rate changes needs a duration")
        return self
