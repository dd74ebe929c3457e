"""Experiments whose bottleneck is known by construction, run wholly: provision, trials with observation, bundle, analysis."""

import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from plinth.analyse import analyse
from plinth.bundle import read_bundle
from plinth.experiment import read_experiment
from plinth.model.bottleneck import Bottleneck, BottleneckKind
from plinth.model.load import LoadResult
from plinth.model.plan import Plan, PlannedTrial, ScriptText, Variant
from plinth.model.progress import Progress
from plinth.model.trial import Trial
from plinth.run.conduct import run_plan
from plinth.run.listener import Listener, LiveSecond
from plinth.run.planning.make_plan import make_plan

Levels = tuple[str, ...]
Cases = Mapping[Levels, tuple[BottleneckKind, Mapping[str, Any]]]
"""By levels of the factors: what must be found, and what of the variant is different from the experiment's."""

IN_MEMORY = """\
spec = 1
name = "known-in-memory"
question = "What holds it back?"
[storage.memory]
kind = "tmpfs"
size = "1GiB"
[server]
version = 18
[server.settings]
fsync = false
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "select-only"
protocol = "prepared"
threads = 2
[matrix]
"workload.builtin" = ["tpcb-like", "select-only"]
"workload.clients" = [24, 25, 26]
[measure]
warmup = "1s"
duration = "3s"
aa = false
fresh_server = false
"""
STARVED_CLIENTS = 26
"""Of the trials whose load engine a neighbour keeps from the CPU."""
_COMPUTES = "\\set drawn hash(random(1, 1000000))\n" * 3000 + "SELECT :drawn;"
COMPUTING = {"threads": 1, "scripts": (ScriptText(name="computes", source=_COMPUTES),)}
IN_MEMORY_CASES: Cases = {
    ("tpcb-like", "24"): ("locks", {}),
    ("select-only", "24"): ("server CPU", {}),
    ("select-only", "25"): ("load engine", COMPUTING),
    ("select-only", "26"): ("other processes", {"threads": 1}),
    ("tpcb-like", "26"): ("server CPU", {"reconnect": True, "clients": 8}),
    ("tpcb-like", "25"): ("none found", {"rate": 60.0, "clients": 8}),
}

ON_SLOW_DISKS = """\
spec = 1
name = "known-on-slow-disks"
question = "What holds it back?"
[storage.slow-flush]
kind = "emulated"
profile = "nvme"
size = "1GiB"
[storage.slow-flush.physics]
flush_latency = "5ms"
[storage.slow-read]
kind = "emulated"
profile = "nvme"
size = "1GiB"
[storage.slow-read.physics]
read_latency = "2ms"
channels = 2
[server]
version = 18
[server.settings]
shared_buffers = "8MB"
autovacuum = false
[dataset]
kind = "tpcb"
scale = 2
[workload]
protocol = "prepared"
clients = 8
builtin = "select-only"
[matrix]
storage = ["slow-flush", "slow-read"]
"workload.builtin" = ["simple-update", "select-only"]
[measure]
warmup = "1s"
duration = "3s"
aa = false
fresh_server = false
"""
ON_SLOW_DISKS_CASES: Cases = {
    ("slow-flush", "simple-update"): ("WAL flush", {}),
    # Loaded through the page cache, then read past it.
    ("slow-read", "select-only"): ("device reads", {"settings": {"debug_io_direct": "data"}}),
}


class Silent:
    """A listener that shows nothing, and starves the load engine of the trials that a neighbour is to limit."""

    def __init__(self) -> None:
        self._ends: list[Any] = []

    def phase(self, text: str) -> None: ...

    def progress(self, progress: Progress) -> None: ...
    def note(self, text: str) -> None: ...
    def second(self, live: LiveSecond) -> None: ...

    def trial_started(self, trial: PlannedTrial, variant: Variant, total: int) -> None:
        if variant.workload.clients == STARVED_CLIENTS:
            starving = starved_engine()
            starving.__enter__()
            self._ends.append(starving)

    def trial_ended(self, trial: Trial, load: LoadResult | None) -> None:
        while self._ends:
            self._ends.pop().__exit__(None, None, None)


@contextmanager
def starved_engine() -> Iterator[None]:
    """Leave the load engine's threads what a busy loop leaves of one core to the lowest of priorities."""
    core = max(os.sched_getaffinity(0))
    neighbour = _busy_orphan(core)
    ended = threading.Event()

    def starve() -> None:
        starved: set[Path] = set()
        while not ended.wait(0.02):
            for task in Path("/proc/self/task").iterdir():
                with suppress(OSError):  # a thread that has just ended
                    if task not in starved and (task / "comm").read_text().startswith("plinth-load"):
                        os.sched_setaffinity(int(task.name), {core})
                        os.sched_setscheduler(int(task.name), os.SCHED_IDLE, os.sched_param(0))
                        starved.add(task)

    starver = threading.Thread(target=starve)
    starver.start()
    try:
        yield
    finally:
        ended.set()
        starver.join()
        signal.pidfd_send_signal(neighbour, signal.SIGKILL)
        select.select([neighbour], [], [])
        os.close(neighbour)


def _busy_orphan(core: int) -> int:
    """Start a busy loop on this core that no process of the run descends from; return a pidfd of it."""
    busy = f"taskset -c {core} sh -c 'while :; do :; done' >/dev/null & echo $!"
    started = subprocess.run(["sh", "-c", busy], stdout=subprocess.PIPE, text=True, check=True)
    return os.pidfd_open(int(started.stdout))


def run_known(folder: Path, experiment: str, cases: Cases, repeats: int) -> dict[BottleneckKind, list[Bottleneck]]:
    """What was found in each of `repeats` trials of each case, by what must be found."""
    found = run_cases(folder, experiment, cases, repeats, lambda plan: Silent())
    by_kind: dict[BottleneckKind, list[Bottleneck]] = {}
    for levels, bottlenecks in found.items():
        by_kind.setdefault(cases[levels][0], []).extend(bottlenecks)
    return by_kind


def run_cases(
    folder: Path, experiment: str, cases: Cases, repeats: int, listener: Callable[[Plan], Listener]
) -> dict[Levels, list[Bottleneck]]:
    """What was found in each of `repeats` trials of each case, by its levels."""
    file = folder / "experiment.toml"
    file.write_text(f"{experiment}repeats = {repeats}\n")
    loaded = read_experiment(file, ())
    bundle = folder / "bundle"
    plan = make_plan(loaded, run_id=f"k{os.getpid()}", bundle=bundle)
    status = run_plan(_with_cases(plan, cases), file.read_text(), bundle, listener(plan))
    contents = read_bundle(bundle)
    assert status.failed_trials == 0, [trial.trial.failure for trial in contents.trials]
    levels = {variant.id: levels_of(variant) for variant in plan.variants}
    found: dict[Levels, list[Bottleneck]] = {}
    for result in analyse(contents).variants:
        for point in result.trials:
            assert point.bottleneck is not None
            found.setdefault(levels[result.id], []).append(point.bottleneck)
    return found


def levels_of(variant: Variant) -> Levels:
    return tuple(str(level) for level in variant.levels.values())


def _with_cases(plan: Plan, cases: Cases) -> Plan:
    """The plan with the trials of these cases only."""
    variants = tuple(
        _changed(variant, cases[levels_of(variant)][1]) if levels_of(variant) in cases else variant
        for variant in plan.variants
    )
    kept = {variant.id for variant in variants if levels_of(variant) in cases}
    trials = tuple(trial for trial in plan.trials if trial.variant in kept)
    return plan.model_copy(update={"variants": variants, "trials": trials})


def _changed(variant: Variant, changes: Mapping[str, Any]) -> Variant:
    workload = {key: value for key, value in changes.items() if key not in ("settings", "scripts")}
    return variant.model_copy(
        update={
            "settings": variant.settings | changes.get("settings", {}),
            "scripts": changes.get("scripts", variant.scripts),
            "workload": variant.workload.model_copy(update=workload),
        }
    )


def short(bottleneck: Bottleneck) -> str:
    figures = ", ".join(f"{one.what} {one.value:.3g}" for one in bottleneck.evidence[:8])
    return f"{bottleneck.kind} ({bottleneck.confidence}): {bottleneck.sentence} [{figures}]"
