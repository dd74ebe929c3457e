"""The load of `plinth bench`: the engine's configuration, its errors as they happen, and its result."""

import itertools
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from plinth.bench.events import EventPrinter, as_libpq
from plinth.bench.failure import BenchFailure
from plinth.bench.fleet_options import fleet_words
from plinth.bench.lossless import raw_of, text_of
from plinth.bench.options import BenchOptions
from plinth.bench.outcome import CommandOutcome, Counts, Latency, Outcome, ScriptOutcome
from plinth.bench.progress import Progress
from plinth.bench.scripts import BenchScript
from plinth.model.histogram import Buckets
from plinth.system.owner import SHELL_COMMANDS, shell_user

if TYPE_CHECKING:
    from plinth._native import LoadRun
    from plinth.bench.fleet import FleetRun
    from plinth.model.connection import Connection
    from plinth.model.load import Histogram, LoadResult, ScriptTotals

_STATEMENTS = ("SQL", "gset", "aset")
_SHOWN_BYTES = 127
_POLL_S = 0.1
_STOP_TIMEOUT_S = 10.0
_FOR_EVER_S = 366 * 86_400
"""The engine's longest duration; a longer one is taken as no limit."""


class BenchLoad:
    """One load. `result` is there after `run`."""

    result: "LoadResult"
    interrupted = False
    """By Ctrl-C."""

    def __init__(self, asked: BenchOptions, variables: dict[str, str], target: "Connection", err: TextIO) -> None:
        self._asked = asked
        self._variables = variables
        self._target = target
        self._err = err
        self._commands = [_commands_of(script) for script in asked.scripts]
        self._events = EventPrinter(asked, [[command["name"] for command in each] for each in self._commands])

    def run(self) -> Outcome:
        """Run to the end. Ctrl-C ends it early, with what was measured. Raises BenchFailure when it cannot begin."""
        progress = Progress(self._asked, self._err)
        with self._opened() as run:
            self._start(run)
            self._follow(run, progress, time.time_ns())
            given = run.result()
        from plinth.common.shown import bytes_shown_in_json
        from plinth.model.load import LoadResult  # only now: the first transaction does not wait for it

        self.result = LoadResult.model_validate_json(bytes_shown_in_json(given))
        return self._outcome()

    @contextmanager
    def _opened(self) -> "Iterator[LoadRun | FleetRun]":
        """Yield the load by this process, or by the machines of the fleet. Raises BenchFailure for what it cannot run."""
        from plinth._native import ConfigError, LoadRun, ScriptError

        config = json.dumps(self._config(), ensure_ascii=False)
        try:
            alone = LoadRun(config)
        except ScriptError as error:
            raise BenchFailure(f"{error.file}:{error.line}: {error.message}") from error
        except ConfigError as error:
            raise BenchFailure(str(error)) from error
        fleet = self._asked.fleet
        if fleet is None:
            yield alone
            return
        from plinth.bench.fleet import FleetRun

        self._asked.print_message(f"load from {fleet_words(fleet)}")
        with FleetRun(config, fleet) as run:
            yield run

    def _start(self, run: "LoadRun | FleetRun") -> None:
        from plinth._native import ConnectError, EngineError

        try:
            run.start()
        except ConnectError as error:
            raise BenchFailure(
                as_libpq(error.message), then=f"could not create connection for client {error.client}"
            ) from error
        except EngineError as error:
            raise BenchFailure(str(error)) from error

    @property
    def aborted(self) -> bool:
        """Return whether a client ended before its time."""
        return self.result.clients_aborted > 0

    @property
    def aborted_thread(self) -> int:
        """Return the thread of the first client that did; threads have as many clients as one another, or the first ones more."""
        first = self._events.first_aborted or 0
        dealt = 0
        threads = self._asked.threads
        for thread in range(threads):
            dealt += -(-(self._asked.clients - dealt) // (threads - thread))
            if first < dealt:
                return thread
        raise AssertionError("every client has a thread")

    def _config(self) -> dict[str, Any]:
        asked = self._asked
        return {
            "connection": self._target.for_engine(),
            "clients": asked.clients,
            "threads": asked.jobs,
            "protocol": asked.protocol,
            "scripts": [_configured(script) for script in asked.scripts],
            "deck": asked.tpcc,
            "variables": self._variables | asked.variables,
            "warmup_s": asked.warmup_s,
            "duration_s": float(min(asked.time_s, _FOR_EVER_S)) if asked.time_s else None,
            "transactions_per_client": None if asked.time_s else asked.transactions,
            "rate": self._rate(),
            "latency_limit_s": None if asked.latency_limit_ms is None else asked.latency_limit_ms / 1000,
            "seed": asked.seed,
            "max_tries": asked.max_tries,
            "reconnect": asked.connect,
            "abort_on_error": not asked.continue_on_error,
            "require_all_clients": True,
            "check_variables": False,
            "exit_on_abort": asked.exit_on_abort,
            "verbose_errors": asked.verbose_errors,
            "command_latencies": asked.report_per_command,
            "log": self._log(),
            "shell_user": self._shell_user(),
            "connect_timeout_s": 86_400.0,
            # pgbench exits at once, and its other clients' transactions are lost.
            "stop_timeout_s": 0.0 if asked.exit_on_abort else _STOP_TIMEOUT_S,
        }

    def _shell_user(self) -> dict[str, Any] | None:
        """Return the user for shell commands, with our environment: root runs them as the user who runs servers."""
        if not any(command["name"] in SHELL_COMMANDS for each in self._commands for command in each):
            return None
        if self._asked.fleet is not None:  # where each agent finds out who that is
            self._asked.print_message(
                "warning: shell commands of scripts run on each machine of the fleet, never as root"
            )
            return None
        user = shell_user()
        if user is None:
            return None
        name = user.environment["USER"]
        self._asked.print_message(f"warning: shell commands of scripts run as user {name}, never as root")
        return {"uid": user.uid, "gid": user.gid, "environment": {**os.environ, **user.environment}}

    def _rate(self) -> dict[str, Any] | None:
        rate, arrivals = self._asked.rate, self._asked.arrivals
        if rate is None:
            return None
        return (rate if arrivals is None else rate.model_copy(update={"arrivals": arrivals})).model_dump()

    def _log(self) -> dict[str, Any] | None:
        asked = self._asked
        if not asked.log:
            return None
        return {
            "prefix": "pgbench_log" if asked.log_prefix is None else asked.log_prefix,
            "sampling_rate": asked.sampling_rate,
            "aggregate_interval_s": asked.aggregate_interval_s or None,
            "failures_detailed": asked.failures_detailed,
        }

    def _follow(self, run: "LoadRun | FleetRun", progress: Progress, began_unix_ns: int) -> None:
        try:
            while not run.wait(_POLL_S):
                self._print_progress(json.loads(run.progress()), progress, began_unix_ns)
        except KeyboardInterrupt:
            self.interrupted = True
            self._asked.print_message("interrupted: statements under way may end; Ctrl-C again waits for nothing")
            run.stop()
            run.wait(_STOP_TIMEOUT_S + 1)
        self._print_progress(json.loads(run.progress()), progress, began_unix_ns)

    def _print_progress(self, state: dict[str, Any], progress: Progress, began_unix_ns: int) -> None:
        progress.add(state["seconds"], began_unix_ns)
        self._events.print_events(state["events"], state["events_dropped"])

    def _outcome(self) -> Outcome:
        result = self.result
        connects = [histogram for histogram in result.histograms if histogram.scope == "connect"]
        lags = [histogram for histogram in result.histograms if histogram.scope == "schedule_lag"]
        latencies = Buckets.transactions(result.histograms)
        connecting_ns = sum(histogram.sum_ns for histogram in connects) if self._asked.connect else result.connect_ns
        return Outcome(
            scripts=tuple(self._script(index, script) for index, script in enumerate(result.scripts)),
            duration_us=result.measured_ns / 1000,
            connecting_us=connecting_ns / 1000,
            lag_sum_us=sum(histogram.sum_ns for histogram in lags) / 1000,
            lag_max_us=max((histogram.max_ns for histogram in lags), default=0) / 1000,
            late=result.measured.late or 0,
            percentiles_us=tuple(
                (each, latencies.percentile_ns(each / 100) / 1000 if latencies else 0.0)
                for each in self._asked.percentiles
            ),
        )

    def _script(self, index: int, script: "ScriptTotals") -> ScriptOutcome:
        asked = self._asked.scripts[index]
        totals = script.measured
        serialization, deadlock = totals.serialization_failures or 0, totals.deadlock_failures or 0
        own = [histogram for histogram in self.result.histograms if histogram.script == script.name]
        counts = Counts(
            done=totals.done,
            skipped=totals.skipped,
            serialization_failures=serialization,
            deadlock_failures=deadlock,
            other_failures=totals.failed - serialization - deadlock if self._asked.continue_on_error else 0,
            retried=totals.retried,
            retries=totals.retries,
            rolled_back=totals.rolled_back or 0,
            latency=sum((_latency(one) for one in own if one.scope == "transaction"), Latency()),
        )
        commands = self._command_outcomes(index, script.name, own) if self._asked.report_per_command else ()
        return ScriptOutcome(asked.description, asked.weight, counts, commands)

    def _command_outcomes(self, index: int, name: str, own: "list[Histogram]") -> tuple[CommandOutcome, ...]:
        """Return the outcome of each command: a line may have several statements, which are numbered, but only one meta command."""
        if self._asked.scripts[index].native is not None:
            return self._native_outcomes(name, own)
        latencies = {(one.statement, one.line): _latency(one) for one in own if one.scope in ("statement", "command")}
        errors = [error for error in self.result.errors if error.script == name]
        numbers = itertools.count()
        outcomes = []
        for command in self._commands[index]:
            where = (next(numbers) if command["name"] in _STATEMENTS else None, command["line"])
            here = [error for error in errors if (error.statement, error.line) == where]
            failures = sum(error.count - (error.retried or 0) for error in here)
            retries = sum(error.retried or 0 for error in here)
            outcomes.append(CommandOutcome(_shown(command), latencies.get(where, Latency()), failures, retries))
        return tuple(outcomes)

    def _native_outcomes(self, name: str, own: "list[Histogram]") -> tuple[CommandOutcome, ...]:
        """Return the statements of a transaction that is compiled in, those that were sent."""
        errors = [error for error in self.result.errors if error.script == name]
        outcomes = []
        for sent in sorted((one for one in own if one.scope == "statement"), key=lambda one: one.statement or 0):
            here = [error for error in errors if error.statement == sent.statement]
            failures = sum(error.count - (error.retried or 0) for error in here)
            retries = sum(error.retried or 0 for error in here)
            outcomes.append(CommandOutcome(sent.text or "", _latency(sent), failures, retries))
        return tuple(outcomes)


def _configured(script: BenchScript) -> dict[str, Any]:
    if script.native is not None:
        return script.native
    return {"name": script.description, "source": script.source, "weight": script.weight}


def _commands_of(script: BenchScript) -> list[dict[str, Any]]:
    """Return the commands of a script; none of a transaction that is compiled in, whose statements the results name."""
    from plinth._native import parse_script

    if script.native is not None:
        return []
    return json.loads(parse_script(script.description, script.source, None))["commands"]


def _shown(command: dict[str, Any]) -> str:
    """Return no more of a statement than pgbench shows."""
    if command["name"] not in _STATEMENTS:
        return command["text"]
    return text_of(raw_of(command["text"])[:_SHOWN_BYTES])


def _latency(histogram: "Histogram") -> Latency:
    """Return the moments of a histogram: the mean by the exact sum, the spread by the buckets, which are right to 3 digits."""
    latencies = Buckets.of([histogram])
    mean_us, stddev_us = latencies.mean_ns() / 1000, latencies.stddev_ns() / 1000
    return Latency(histogram.count, histogram.sum_ns / 1000, histogram.count * (stddev_us**2 + mean_us**2))
