"""The experiment: question, storages, server, dataset, workload, factors and measuring rules.

Field descriptions here are the reference: the JSON Schema, `plinth init` and docs/reference are made from them.
"""

from collections.abc import Iterable
from copy import deepcopy
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from plinth.model.action import Action
from plinth.model.base import Frozen, Name, SettingValue
from plinth.model.builtin import BUILTINS, BuiltinName
from plinth.model.dataset import DatasetSpec
from plinth.model.distribution import Distribution, check_parameter
from plinth.model.drive import DriveSpec
from plinth.model.durability import DurabilitySpec
from plinth.model.files import MOST_WEIGHT, Files, weighted
from plinth.model.level import Level
from plinth.model.load_config import MAX_CLIENTS, MAX_TPS
from plinth.model.objective import Objective
from plinth.model.probe_io import IoMoment
from plinth.model.probe_kinds import IoShape
from plinth.model.storage import StorageSpec
from plinth.model.units import DurationS, SizeBytes, format_duration

SPEC_VERSION = 1
DEFAULT_TABLESPACE = "pg_default"
"""The tablespace that every cluster has: within its data directory."""


class ServerSpec(Frozen):
    """The PostgreSQL cluster under test: managed (Plinth makes and starts it) or external (a connection string)."""

    storage: Name | None = Field(
        default=None,
        description="The storage that holds the data directory. Default: the first one.",
        examples=["disk"],
    )
    wal_storage: Name | None = Field(
        default=None,
        description="A storage for the WAL alone (initdb --waldir). Default, and where it is the data directory's own: "
        "pg_wal within the data directory.",
        examples=["fast"],
    )
    tablespaces: dict[Name, Name] = Field(
        default_factory=dict,
        description="Tablespaces to make, and the storage of each; see dataset.tablespace.",
        examples=[{"bulk": "slow"}],
    )
    version: int = Field(default=18, ge=13, le=18, description="Major version of a managed server.", examples=[18])
    bindir: str | None = Field(
        default=None,
        description="Directory of postgres and initdb. Default: the wheel for 18, else the usual places.",
        examples=["/usr/lib/postgresql/17/bin"],
    )
    connection: str | None = Field(
        default=None,
        description="Connection string of an external server, by libpq's rules. Plinth then works in a schema of its own.",
        examples=["host=db1 dbname=bench"],
    )
    port: int | None = Field(
        default=None,
        ge=1024,
        le=65535,
        description="Port of a managed server. Default: 5432, or a free one for tcp.",
        examples=[54321],
    )
    listen: Literal["unix", "tcp"] = Field(default="unix", description="How the load reaches a managed server.")
    data_checksums: bool = Field(default=True, description="initdb with data checksums.")
    wal_segment_size_mb: int | None = Field(
        default=None, alias="wal_segment_size", description="initdb --wal-segsize, in MB.", examples=[64]
    )
    settings: dict[str, SettingValue] = Field(
        default_factory=dict,
        description="PostgreSQL settings, written to the configuration and read back from pg_settings.",
        examples=[{"shared_buffers": "1GB", "fsync": True}],
    )

    @field_validator("tablespaces")
    @classmethod
    def _names_are_free(cls, tablespaces: dict[str, str]) -> dict[str, str]:
        if reserved := [name for name in tablespaces if name.startswith("pg_")]:
            raise ValueError(f"{', '.join(reserved)}: names that begin with pg_ are PostgreSQL's own")
        return tablespaces

    @model_validator(mode="after")
    def _external_is_left_alone(self) -> "ServerSpec":
        if self.connection is not None:
            taken = [
                field.alias or key
                for key, field in type(self).model_fields.items()
                if key != "connection" and getattr(self, key) != field.get_default(call_default_factory=True)
            ]
            if taken:
                raise ValueError(
                    f"{', '.join(taken)}: not with connection: Plinth does not change a server that it did not start"
                )
        return self


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


class WorkloadSpec(Frozen):
    """What the clients do: a built-in workload or script files, by how many clients."""

    builtin: BuiltinName | None = Field(
        default=None,
        description="A built-in workload. On dataset tpcb, pgbench's scripts, or account-mix, which is compiled into the load "
        "engine: nine lookups of a balance to one transfer, which reads two balances and writes them; on numbers, select or "
        "update a row by its number; on upsert, a function that updates a row or inserts it: upsert-function looks it up first "
        "and swallows every error, upsert updates first. Without a dataset (kind none): ledger, which is compiled in as well; its "
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
    clients: int = Field(
        default=8, ge=1, le=MAX_CLIENTS, description="Connections that work at the same time.", examples=[16]
    )
    threads: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="Threads of the load engine. Default: one for each core, at most 8 and at most clients.",
        examples=[2],
    )
    driver: Driver = Field(
        default="plinth",
        description="Who the clients are: plinth, the load engine; psycopg and sqlalchemy, programs in Python with a process for "
        "each client, in a closed loop and of scripts of SQL and \\set only.",
    )
    protocol: Literal["simple", "extended", "prepared"] = Field(
        default="prepared", description="How statements are sent."
    )
    max_tries: int = Field(
        default=1, ge=1, description="Tries of a transaction after a serialization failure or deadlock; 1 is no retry."
    )
    rate: Annotated[float, Field(le=MAX_TPS)] | list[RateStage] | None = Field(
        default=None,
        description="Transactions that are due each second, over all clients, however long others take (an open loop); one "
        "number, or stages that step and ramp from the start of measuring. Default: a client begins when it has finished.",
        examples=[500],
    )
    arrivals: Literal["poisson", "uniform"] = Field(
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
        description="Record what each client was told of each commit, and compare that with the database after each trial: "
        "before each COMMIT or END, scripts get two statements, which insert a row and update one in tables of the ledger's "
        "own. Each script needs a transaction block. The built-in workload ledger does so in any case.",
    )
    variables: dict[Annotated[str, Field(pattern=r"^\w+$")], int | float | str] = Field(
        default_factory=dict, description="Variables of the script, as pgbench -D.", examples=[{"rows": 1000}]
    )

    @property
    def is_read_only(self) -> bool | None:
        """Whether its transactions write no row; None where some may and only the server knows: of mixes, and of scripts."""
        if self.builtin is None or (writes := BUILTINS[self.builtin].writes) is None:
            return None
        return not writes

    @property
    def keeps_ledger(self) -> bool:
        """Whether what clients are told of their commits is recorded, and compared with the database."""
        return self.ledger or self.builtin == "ledger"

    @property
    def rolls_back(self) -> bool:
        """Whether some of its transactions end with ROLLBACK on purpose."""
        return self.builtin is not None and BUILTINS[self.builtin].rolls_back

    @model_validator(mode="after")
    def _one_source(self) -> "WorkloadSpec":
        if (self.builtin is None) == (not self.script):
            raise ValueError('give exactly one of builtin (such as "tpcb-like") and script (a path)')
        paths, weights = zip(*map(weighted, self.script or ("",)), strict=True)
        if len(set(paths)) < len(paths):
            raise ValueError("script: the same path is there twice")
        if not any(weights):
            raise ValueError("script: every weight is 0: nothing would ever be run")
        if max(weights) > MOST_WEIGHT:
            raise ValueError(f"script: got a weight of {max(weights)}; allowed are at most {MOST_WEIGHT}")
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
            raise ValueError(f"{', '.join(given)}: of built-in scripts only; a script of your own says what it chooses")
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


MOST_REPEATS = 1000
Names = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""One name, or a list of them."""


class MeasureSpec(Frozen):
    """How it is measured."""

    warmup_s: DurationS = Field(
        default=5.0, alias="warmup", description="Load before measuring begins.", examples=["5s"]
    )
    duration_s: DurationS = Field(
        default=30.0, gt=0, alias="duration", description="Measured time of one trial.", examples=["60s"]
    )
    repeats: int = Field(default=5, ge=1, le=MOST_REPEATS, description="Trials of each variant.")
    order: Literal["random-blocks", "sequential"] = Field(
        default="random-blocks",
        description="random-blocks: every variant once a block, shuffled; sequential: variant after variant.",
    )
    seed: int = Field(default=1, ge=0, lt=2**63, description="Seed of the order, of the load and of the bootstrap.")
    baseline: dict[str, Level] = Field(
        default_factory=dict,
        description="Levels of the variant that others are compared to. Default: the first level of each factor.",
        examples=[{"storage": "disk"}],
    )
    compare: Names = Field(
        default=(),
        description="Factors along which variants are compared, at every combination of levels of the others: one name of "
        "[matrix], or a list. Default: those whose levels are names, such as storages; where all are numbers, the first. "
        "Different transactions are compared with each other only where nothing else is varied, or where this asks for it.",
        examples=["storage"],
    )
    aa: bool = Field(
        default=True,
        description="Measure the baseline twice, as an A/A pair, to show what this machine can tell apart.",
    )
    fresh_server: bool = Field(
        default=True,
        description="Start the server anew for each trial, so that all begin with empty shared buffers. False: restart or "
        "reload only where a variant's settings need it.",
    )
    probe_s: DurationS = Field(
        default=0.3,
        ge=0,
        alias="probe",
        description="For which each case of the fsync probe is measured on each storage, once it is made: what a durable "
        "write takes there, and how many commits group commit lets through. 0: not at all.",
        examples=["1s"],
    )
    probe_io: tuple[IoShape, ...] = Field(
        default=(),
        description="Shapes of `plinth probe io` that are measured on each storage that a server uses; needs fio.",
        examples=[["sequential", "depth_128"]],
    )
    probe_io_at: tuple[IoMoment, ...] = Field(
        default=("empty",),
        description="When: empty, before anything is put on the storages; loaded, with all datasets and no server running; "
        "measured, after the last trial.",
        examples=[["empty", "loaded"]],
    )
    probe_io_size_bytes: SizeBytes = Field(
        default=256 * 2**20, ge=2**20, alias="probe_io_size", description="Size of the probe's file.", examples=["1GiB"]
    )
    probe_io_s: DurationS = Field(
        default=1.0, gt=0, alias="probe_io_time", description="For which each job runs.", examples=["5s"]
    )
    actions: tuple[Action, ...] = Field(
        default=(),
        alias="action",
        description="What is done to the server at set times of each trial, beside the load; each is an event in the report. A "
        "trial whose action fails is a failed trial.",
        examples=[[{"at": "10s", "do": "checkpoint"}]],
    )
    stop_on_failure: bool = Field(default=False, description="End the run at the first failed trial.")
    max_written_bytes: SizeBytes | None = Field(
        default=None,
        gt=0,
        alias="max_written",
        description="Write budget: the run ends before more than this has been written to the disks under its storages, "
        "all together and by whomever; finished trials are kept. Default: none.",
        examples=["200GB"],
    )

    @model_validator(mode="after")
    def _actions_are_within_the_measured_time(self) -> "MeasureSpec":
        for action in self.actions:
            if action.at_s >= self.duration_s:
                raise ValueError(
                    f"action {action.title()}: the measured time is {format_duration(self.duration_s)} and over by then"
                )
        return self


class Experiment(Frozen):
    """One question, asked of storages and settings, and how it is measured."""

    model_config = ConfigDict(title="Plinth experiment")

    spec: Literal[1] = Field(description="Version of this format.")
    name: Name = Field(description="Short name; bundles are named after it.", examples=["ramdisk"])
    question: str = Field(min_length=1, description="What this experiment is to answer, in a sentence.")
    storage: dict[Name, StorageSpec] = Field(
        default_factory=dict, description="Places where a data directory can be stored."
    )
    server: ServerSpec = Field(default_factory=ServerSpec)
    dataset: DatasetSpec = Field(description="What is loaded before measuring.")
    workload: WorkloadSpec = Field(description="What the clients do.")
    matrix: dict[str, list[Level]] = Field(
        default_factory=dict,
        description="Factors: dotted paths into this file (storage, storage.NAME.*, server.settings.*, workload.clients, ...) "
        "and their levels. A factor in a storage's own fields makes a storage for each level.",
        examples=[{"storage": ["disk", "memory"], "workload.clients": [1, 16]}],
    )
    measure: MeasureSpec = Field(default_factory=MeasureSpec)
    durability: DurabilitySpec | None = Field(
        default=None,
        description="Power cuts after the trials, which test whether acknowledged commits are kept. Default: none; the report then "
        "judges from facts.",
    )
    objectives: tuple[Objective, ...] = Field(
        default=(),
        alias="objective",
        description="Bounds that variants have to keep. The report says of each variant whether it does; --fail-on makes a "
        "command end with exit code 99 where one does not.",
        examples=[[{"metric": "latency_p99", "max": "20ms"}]],
    )
    drive: DriveSpec | None = Field(
        default=None,
        description="What a drive is rated for: the report then says how long one lasts at the measured rates.",
    )
    reference: str | None = Field(
        default=None,
        min_length=1,
        description="Published results to set beside ours: one that Plinth brings along, or a file that ends with .toml, "
        "relative to this one.",
        examples=["s3-zfs-slog"],
    )
    full: dict[str, SettingValue | list[Level]] = Field(
        default_factory=dict,
        description="The published size, which --full asks for: keys of this file, as of --set, and their values there. The kind "
        "of dataset or storage begins its table anew. Of a factor, as many levels as in [matrix] stand for one another, in "
        "their order.",
        examples=[{"dataset.rows": 10**10, "measure.duration": "5min"}],
    )


def factor_path(factor: str) -> tuple[str, ...]:
    """Where a factor's level goes in the document.

    "storage" is short for server.storage; the name of a setting may hold dots (server.settings.auto_explain.log_analyze).
    """
    if factor == "storage":
        return ("server", "storage")
    if factor.startswith("server.settings."):
        return ("server", "settings", factor.removeprefix("server.settings."))
    return tuple(factor.split("."))


def factors_of_storages(matrix: Iterable[str]) -> tuple[str, ...]:
    """The factors that write into a storage's own fields: storage.NAME.FIELD."""
    return tuple(factor for factor in matrix if factor.startswith("storage."))


def with_levels(document: dict[str, Any], levels: dict[str, Level]) -> dict[str, Any]:
    """A copy of an experiment's raw document, without its matrix, with each factor's place set to its level."""
    changed = deepcopy({key: value for key, value in document.items() if key != "matrix"})
    for factor, level in levels.items():
        *parents, last = factor_path(factor)
        table: Any = changed
        for parent in parents:
            table = table.setdefault(parent, {})
            if not isinstance(table, dict):
                break
        else:
            table[last] = level
    return changed
