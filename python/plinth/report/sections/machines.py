"""How each machine of a fleet drove its part of the load, in words."""

from collections.abc import Callable, Sequence
from statistics import median

from plinth.model.contents import BundleContents
from plinth.model.figures import NOT_AVAILABLE, percent
from plinth.model.load import MachineTrial
from plinth.model.report import MachineText
from plinth.model.trial import Trial
from plinth.report.sections.section import Section, by_variant, sentences_of, table_of


def machine_texts(contents: BundleContents) -> tuple[MachineText, ...]:
    """Describe each machine of every variant with counted trials by a fleet, in the order of the plan."""
    counted = by_variant(
        contents,
        lambda trial: (
            (trial,) if trial.fleet is not None and trial.status == "complete" and trial.excluded is None else ()
        ),
    )
    return tuple(text for label, trials in counted for text in _of_variant(label, trials))


def _of_variant(label: str, trials: Sequence[Trial]) -> list[MachineText]:
    parts: dict[str, list[tuple[Trial, MachineTrial]]] = {}
    for trial in trials:
        for machine in trial.fleet.machines if trial.fleet else ():
            parts.setdefault(machine.name, []).append((trial, machine))
    return [_text(label, name, own) for name, own in parts.items()]


def _text(label: str, name: str, parts: Sequence[tuple[Trial, MachineTrial]]) -> MachineText:
    machines = [machine for _, machine in parts]
    rates = [machine.measured.done / (trial.measured_ns / 1e9) for trial, machine in parts if trial.measured_ns]
    p50, p99 = (
        _median([getattr(one, key) for one in machines], _milliseconds) for key in ("latency_p50_ns", "latency_p99_ns")
    )
    engine, cores = (_median([getattr(one, key) for one in machines], _percent) for key in ("engine_busy", "host_busy"))
    starts = [one.first_start_ns for one in machines if one.first_start_ns is not None]
    latest = _milliseconds(max(starts)) if starts else NOT_AVAILABLE
    known_to = _milliseconds(max(one.clock_error_ns for one in machines))
    return MachineText(
        variant=label,
        machine=name,
        trials=len(parts),
        clients=machines[0].clients,
        done=f"{_median(rates, lambda tps: f'{tps:,.0f}')} tps",
        latency=f"p50 {p50}, p99 {p99}",
        busy=f"engine {engine}, {machines[0].cores} cores {cores} busy",
        start=f"began {latest} late at most, clock known to {known_to}",
    )


def _median(values: Sequence[float | None], shown: Callable[[float], str]) -> str:
    known = [value for value in values if value is not None]
    return shown(median(known)) if known else NOT_AVAILABLE


def _milliseconds(ns: float) -> str:
    return f"{ns / 1e6:.3g} ms"


def _percent(share: float) -> str:
    return percent(share, 0)


MACHINES = Section(
    id="machines",
    title="Load machines",
    note="Each machine's own part of the load; medians over the trials that count. Busy is the share of their time in which the "
    "threads of its load engine worked or waited for a CPU, and the share of its cores' time that was not idle. A trial in which "
    "machines began further apart than allowed is excluded.",
    blocks=table_of(
        lambda report: report.machines,
        {
            "Variant": lambda one: one.variant,
            "Machine": lambda one: one.machine,
            "Trials": lambda one: str(one.trials),
            "Clients": lambda one: str(one.clients),
            "Done": lambda one: one.done,
            "Latency": lambda one: one.latency,
            "Busy": lambda one: one.busy,
            "Start": lambda one: one.start,
        },
    ),
    entries=sentences_of(
        lambda report: report.machines,
        lambda one: f"{one.variant}, {one.machine}",
        lambda one: f"{one.done}; {one.latency}; {one.busy}; {one.start}",
    ),
    nouns="machines",
    page="storage",
)
