"""The command line of `plinth bench`: pgbench's options with pgbench's meaning and messages, and a few of our own.

Reference: PostgreSQL 18's documentation of pgbench; --continue-on-error is PostgreSQL 19's.
"""

import re
import resource
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plinth.bench.failure import BenchFailure
from plinth.bench.fleet_options import complete_fleet
from plinth.bench.getopt_long import options, usage
from plinth.bench.numbers import INT_MAX, leading_float, leading_int, option_int, read_rate, read_seed
from plinth.bench.options import BenchOptions
from plinth.bench.scripts import BenchScript, ListRequested, builtin, script_file, show
from plinth.bench.tpcc_options import (
    DELIVERIES,
    FORMS,
    ISOLATIONS,
    PACINGS,
    choose_tpcc,
    complete_tpcc,
    set_mix,
    tpcc_option,
)

if TYPE_CHECKING:
    pass

INIT_STEPS = "dtgGvpf"
PROTOCOLS = ("simple", "extended", "prepared")
DEFAULT_TRANSACTIONS = 10
MOST_WAREHOUSES = 100_000
MAX_SCRIPTS = 128
_NAME = re.compile(r"(?:[a-z_]|[^\x00-\x7f])(?:\w|[^\x00-\x7f])*", re.ASCII | re.IGNORECASE)
_BENCH, _INIT, _BOTH = "benchmarking", "initialization", "both"


Apply = Callable[[BenchOptions, str], None]


@dataclass(frozen=True)
class Option:
    """One option: its letter if it has one, whether it takes an argument, where it is allowed, and what it does."""

    name: str
    letter: str | None
    takes_value: bool
    mode: str
    apply: Apply


def _flag(attribute: str) -> Apply:
    return lambda asked, _: setattr(asked, attribute, True)


def _text(attribute: str) -> Apply:
    return lambda asked, value: setattr(asked, attribute, value)


def _int(attribute: str, shown: str, least: int, most: int = INT_MAX) -> Apply:
    return lambda asked, value: setattr(asked, attribute, option_int(value, shown, least, most))


def _positive(value: str, what: str, most: float = float("inf")) -> float:
    number = leading_float(value)
    if not 0 < number <= most:
        raise BenchFailure(f'invalid {what}: "{value}"')
    return number


def _add(asked: BenchOptions, script: BenchScript) -> None:
    if len(asked.scripts) == MAX_SCRIPTS:
        raise BenchFailure(f"at most {MAX_SCRIPTS} SQL scripts are allowed")
    asked.scripts.append(script)


def _builtin(name: str | None) -> Apply:
    def apply(asked: BenchOptions, value: str) -> None:
        if name is None and value.partition("@")[0] == "tpcc":
            choose_tpcc(asked, value)
            return
        _add(asked, builtin(name or value))
        asked.uses_builtin = True

    return apply


def _clients(asked: BenchOptions, value: str) -> None:
    asked.clients = option_int(value, "-c/--client", 1, INT_MAX)
    needed = asked.clients + 3  # computed as in pgbench
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < needed:
        raise BenchFailure(
            f"need at least {needed} open files, but system limit is {most}",
            hint="Reduce number of clients, or use limit/ulimit to increase the system limit.",
        )


def _file(asked: BenchOptions, value: str) -> None:
    _add(asked, script_file(value))


def _define(asked: BenchOptions, value: str) -> None:
    name, equals, text = value.partition("=")
    if not equals or not name or not text:
        raise BenchFailure(f'invalid variable definition: "{value}"')
    if _NAME.fullmatch(name) is None:
        raise BenchFailure(f'option: invalid variable name: "{name}"')
    asked.variables[name] = text


def _init_steps(asked: BenchOptions, value: str) -> None:
    if not value:
        raise BenchFailure("no initialization steps specified")
    for step in value:
        if step not in f"{INIT_STEPS} ":
            raise BenchFailure(
                f'unrecognized initialization step "{step}"', detail=f'Allowed step characters are: "{INIT_STEPS}".'
            )
    asked.init_steps = value


def _protocol(asked: BenchOptions, value: str) -> None:
    if value not in PROTOCOLS:
        raise BenchFailure(f'invalid query mode (-M): "{value}"')
    asked.protocol, asked.protocol_given = value, True


def _partition_method(asked: BenchOptions, value: str) -> None:
    if value.lower() not in ("range", "hash"):
        raise BenchFailure(f'invalid partition method, expecting "range" or "hash", got: "{value}"')
    asked.partition_method = value.lower()


def _scale(asked: BenchOptions, value: str) -> None:
    asked.scale = option_int(value, "-s/--scale", 1, INT_MAX)
    asked.scale_given = True


def _max_tries(asked: BenchOptions, value: str) -> None:
    asked.max_tries = leading_int(value)
    if not 0 <= asked.max_tries <= INT_MAX:
        raise BenchFailure(f'invalid number of maximum tries: "{value}"')


def _random_seed(asked: BenchOptions, value: str) -> None:
    _seed_from(asked, value, "--random-seed option")


def _seed_from(asked: BenchOptions, value: str, source: str) -> None:
    asked.seed = read_seed(value, source)
    asked.print_message(f"setting random seed to {asked.seed}")


def _show_script(asked: BenchOptions, value: str) -> None:
    raise ListRequested(show(value))


def _latency_limit(asked: BenchOptions, value: str) -> None:
    """Return the limit in whole microseconds, as pgbench does: less than one is no limit."""
    limit_us = int(_positive(value, "latency limit") * 1000)
    asked.latency_limit_ms = limit_us / 1000 if limit_us else None


def _sampling_rate(asked: BenchOptions, value: str) -> None:
    asked.sampling_rate = _positive(value, "sampling rate", most=1.0)


def _rate(asked: BenchOptions, value: str) -> None:
    asked.rate = read_rate(value)


def _arrivals(asked: BenchOptions, value: str) -> None:
    if value not in ("poisson", "uniform"):
        raise BenchFailure(f'invalid arrivals, expecting "poisson" or "uniform", got: "{value}"')
    asked.arrivals = value


def _percentiles(asked: BenchOptions, value: str) -> None:
    parts = value.split(",")
    numbers = [leading_float(part) for part in parts]
    if any(not 0 < number <= 100 or not part.strip() for number, part in zip(numbers, parts, strict=True)):
        raise BenchFailure(
            f'invalid percentiles: "{value}"', detail='Expecting numbers above 0 and up to 100: "50,95,99.9".'
        )
    asked.percentiles = tuple(numbers)


def _warmup(asked: BenchOptions, value: str) -> None:
    number = leading_float(value)
    if number < 0 or (number == 0 and value.strip() not in ("0", "0.0")):
        raise BenchFailure(f'invalid warm-up time: "{value}"', detail="Expecting seconds: 5, or 0.5.")
    asked.warmup_s = number


# In pgbench's order, which its complaints about ambiguous names keep.
OPTIONS = (
    Option("builtin", "b", True, _BOTH, _builtin(None)),
    Option("client", "c", True, _BENCH, _clients),
    Option("connect", "C", False, _BENCH, _flag("connect")),
    Option("dbname", "d", True, _BOTH, _text("dbname")),
    Option("define", "D", True, _BENCH, _define),
    Option("file", "f", True, _BENCH, _file),
    Option("fillfactor", "F", True, _INIT, _int("fillfactor", "-F/--fillfactor", 10, 100)),
    Option("host", "h", True, _BOTH, _text("host")),
    Option("initialize", "i", False, _BOTH, _flag("initialize")),
    Option("init-steps", "I", True, _INIT, _init_steps),
    Option("jobs", "j", True, _BENCH, _int("jobs", "-j/--jobs", 1)),
    Option("log", "l", False, _BENCH, _flag("log")),
    Option("latency-limit", "L", True, _BENCH, _latency_limit),
    Option("no-vacuum", "n", False, _BOTH, _flag("no_vacuum")),
    Option("port", "p", True, _BOTH, _text("port")),
    Option("progress", "P", True, _BENCH, _int("progress_s", "-P/--progress", 1)),
    Option("protocol", "M", True, _BENCH, _protocol),
    Option("quiet", "q", False, _INIT, _flag("quiet")),
    Option("report-per-command", "r", False, _BENCH, _flag("report_per_command")),
    Option("rate", "R", True, _BENCH, _rate),
    Option("scale", "s", True, _BOTH, _scale),
    Option("select-only", "S", False, _BENCH, _builtin("select-only")),
    Option("skip-some-updates", "N", False, _BENCH, _builtin("simple-update")),
    Option("time", "T", True, _BENCH, _int("time_s", "-T/--time", 1)),
    Option("transactions", "t", True, _BENCH, _int("transactions", "-t/--transactions", 1)),
    Option("username", "U", True, _BOTH, _text("username")),
    Option("vacuum-all", "v", False, _BENCH, _flag("vacuum_all")),
    Option("unlogged-tables", None, False, _INIT, _flag("unlogged_tables")),
    Option("tablespace", None, True, _INIT, _text("tablespace")),
    Option("index-tablespace", None, True, _INIT, _text("index_tablespace")),
    Option("sampling-rate", None, True, _BENCH, _sampling_rate),
    Option("aggregate-interval", None, True, _BENCH, _int("aggregate_interval_s", "--aggregate-interval", 1)),
    Option("progress-timestamp", None, False, _BENCH, _flag("progress_timestamp")),
    Option("log-prefix", None, True, _BENCH, _text("log_prefix")),
    Option("foreign-keys", None, False, _INIT, _flag("foreign_keys")),
    Option("random-seed", None, True, _BENCH, _random_seed),
    Option("show-script", None, True, _BOTH, _show_script),
    Option("partitions", None, True, _INIT, _int("partitions", "--partitions", 0)),
    Option("partition-method", None, True, _INIT, _partition_method),
    Option("failures-detailed", None, False, _BENCH, _flag("failures_detailed")),
    Option("max-tries", None, True, _BENCH, _max_tries),
    Option("verbose-errors", None, False, _BENCH, _flag("verbose_errors")),
    Option("exit-on-abort", None, False, _BENCH, _flag("exit_on_abort")),
    Option("debug", None, False, _BOTH, _flag("debug")),
)
OURS = (
    Option("arrivals", None, True, _BENCH, _arrivals),
    Option("continue-on-error", None, False, _BENCH, _flag("continue_on_error")),
    Option("delivery", None, True, _BENCH, tpcc_option("delivery", DELIVERIES)),
    Option("fleet", None, True, _BENCH, _text("fleet_machines")),
    Option("fleet-command", None, True, _BENCH, _text("fleet_command")),
    Option("form", None, True, _BENCH, tpcc_option("form", FORMS)),
    Option("isolation", None, True, _BENCH, tpcc_option("isolation", ISOLATIONS)),
    Option("json", None, True, _BENCH, _text("json")),
    Option("mix", None, True, _BENCH, set_mix),
    Option("pacing", None, True, _BENCH, tpcc_option("pacing", PACINGS)),
    Option("percentiles", None, True, _BENCH, _percentiles),
    Option("warmup", None, True, _BENCH, _warmup),
)


def parse(words: Sequence[str], environment: Mapping[str, str], print_message: Callable[[str], None]) -> BenchOptions:
    """Return the options of a command line, judged in pgbench's order; `print_message` gets messages that are printed at
    once.

    Raises BenchFailure, and ListRequested where only a listing was asked for.
    """
    asked = BenchOptions(print_message=print_message, seed=read_seed("time", "the clock"))
    if "PGBENCH_RANDOM_SEED" in environment:
        _seed_from(asked, environment["PGBENCH_RANDOM_SEED"], "PGBENCH_RANDOM_SEED environment variable")
    by_name = {option.name: option for option in (*OPTIONS, *OURS)}
    short = {option.letter: option.name for option in OPTIONS if option.letter}
    long = {option.name: option.takes_value for option in OPTIONS}
    unabbreviated = {option.name: option.takes_value for option in OURS}
    operands: list[str] = []
    for found in options(words, long, short, unabbreviated):
        if found.name is None:
            operands.append(found.value or "")
            continue
        option = by_name[found.name]
        option.apply(asked, found.value or "")
        asked.modes.add(option.mode)
    if asked.tpcc and not asked.initialize:
        complete_tpcc(asked)
    if not asked.scripts and not asked.initialize:
        asked.scripts.append(builtin("tpcb-like"))
        asked.uses_builtin = True
    if not asked.initialize and sum(script.weight for script in asked.scripts) == 0:
        raise BenchFailure("total script weight must not be zero")
    if asked.dbname is None and operands:
        asked.dbname = operands.pop(0)
    if operands:
        too_many = f'too many command-line arguments (first is "{operands[0]}")'
        raise BenchFailure(too_many, hint=usage("").hint)
    asked.jobs = min(asked.jobs, asked.clients)
    if asked.initialize:
        _complete_initialization(asked)
    else:
        _complete_benchmark(asked)
    return asked


def _complete_initialization(asked: BenchOptions) -> None:
    if _BENCH in asked.modes or asked.scripts:
        raise BenchFailure("some of the specified options cannot be used in initialization (-i) mode")
    if asked.partitions == 0 and asked.partition_method is not None:
        raise BenchFailure("--partition-method requires greater than zero --partitions")
    if asked.partitions > 0 and asked.partition_method is None:
        asked.partition_method = "range"
    if asked.no_vacuum:
        asked.init_steps = asked.init_steps.replace("v", " ")
    if asked.foreign_keys and "f" not in asked.init_steps:
        asked.init_steps += "f"
    if asked.tpcc:
        _check_warehouses(asked)


def _check_warehouses(asked: BenchOptions) -> None:
    if "G" in asked.init_steps:
        raise BenchFailure(
            'the initialization step "G" is not there for tpcc', hint="Its rows are made here: take g (-I dtgvp)."
        )
    if asked.scale > MOST_WAREHOUSES:
        raise BenchFailure(f"-s/--scale must be in range 1..{MOST_WAREHOUSES} for tpcc, whose unit is a warehouse")
    if asked.partition_method == "range" and asked.partitions > asked.scale:
        raise BenchFailure(
            f"got {asked.partitions} partitions by ranges of {asked.scale} warehouses",
            hint="Give at most as many partitions as warehouses, or --partition-method=hash.",
        )


def _complete_benchmark(asked: BenchOptions) -> None:
    if asked.transactions == 0 and asked.time_s == 0:
        asked.transactions = DEFAULT_TRANSACTIONS
        defaulted = True
    else:
        defaulted = False
    for wrong, message in _contradictions(asked, defaulted):
        if wrong:
            raise BenchFailure(message)
    complete_fleet(asked)


def _contradictions(asked: BenchOptions, defaulted: bool) -> Iterable[tuple[bool, str]]:
    interval, time_s = asked.aggregate_interval_s, asked.time_s
    yield (
        _INIT in asked.modes,
        "some of the specified options cannot be used in benchmarking mode",
    )
    yield (
        not defaulted and asked.transactions > 0 and time_s > 0,
        "specify either a number of transactions (-t) or a duration (-T), not both",
    )
    yield (
        asked.sampling_rate is not None and not asked.log,
        "log sampling (--sampling-rate) is allowed only when logging transactions (-l)",
    )
    yield (
        asked.sampling_rate is not None and interval > 0,
        "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time",
    )
    yield (
        interval > 0 and not asked.log,
        "log aggregation is allowed only when actually logging transactions",
    )
    yield (
        asked.log_prefix is not None and not asked.log,
        "log file prefix (--log-prefix) is allowed only when logging transactions (-l)",
    )
    yield (
        0 < time_s < interval,
        f"number of seconds for aggregation ({interval}) must not be higher than test duration ({time_s})",
    )
    yield (
        time_s > 0 and interval > 0 and time_s % max(interval, 1) != 0,
        f"duration ({time_s}) must be a multiple of aggregation interval ({interval})",
    )
    yield (
        asked.progress_timestamp and asked.progress_s == 0,
        "--progress-timestamp is allowed only under --progress",
    )
    yield (
        bool(asked.tpcc_options) and not asked.tpcc,
        f"{', '.join(f'--{key}' for key in asked.tpcc_options)}: allowed only under -b tpcc",
    )
    yield (
        asked.arrivals is not None and asked.rate is None,
        "--arrivals is allowed only under --rate",
    )
    yield (
        asked.max_tries == 0 and asked.latency_limit_ms is None and time_s == 0,
        "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)",
    )
