"""The disclosure list: which practices of good benchmarking this run follows, derived from its bundle."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from plinth.model.analysis import Analysis
from plinth.model.contents import BundleContents
from plinth.model.figures import number, percent
from plinth.model.plan import Variant
from plinth.model.report import Disclosure, Report
from plinth.model.trial import Trial
from plinth.model.units import format_count, format_duration, format_size
from plinth.report.sections.section import Bullets, Section
from plinth.report.text import noise_sentence

CHECKPOINT = "checkpoint"
"""Prefix of the kinds of checkpoint events."""
IDLE = 0.05
"""Share of the cores that other programs may use in a trial on a machine that is called idle."""


class _Score(NamedTuple):
    """`part` of `whole` fulfil a claim."""

    part: int
    whole: int
    evidence: str


def disclosures(contents: BundleContents, analysis: Analysis) -> tuple[Disclosure, ...]:
    """Return every claim with its status."""
    return tuple(_disclosure(claim, score(contents, analysis)) for claim, score in _CLAIMS)


def _disclosure(claim: str, score: _Score) -> Disclosure:
    status = "no" if not score.part else "yes" if score.part == score.whole else "partly"
    return Disclosure(claim=claim, status=status, evidence=score.evidence)


def _yes_or_no(holds: bool, evidence: str) -> _Score:
    return _Score(int(holds), 1, evidence)


def _counted(contents: BundleContents) -> list[Trial]:
    return [t.trial for t in contents.trials if t.trial.status == "complete" and t.trial.excluded is None]


def _spread(contents: BundleContents, analysis: Analysis) -> _Score:
    with_interval = [v for v in analysis.variants if v.tps is not None and v.tps.interval is not None]
    return _Score(
        len(with_interval),
        len(analysis.variants),
        f"{len(with_interval)} of {len(analysis.variants)} variants have an interval; every trial is drawn as a dot",
    )


def _interleaved(contents: BundleContents, analysis: Analysis) -> _Score:
    order = contents.plan.experiment.measure.order
    return _yes_or_no(
        order == "random-blocks" and len({trial.block for trial in contents.expected_trials}) > 1,
        f'order = "{order}", {len({trial.block for trial in contents.expected_trials})} blocks',
    )


def _aa_pair(contents: BundleContents, analysis: Analysis) -> _Score:
    noise = analysis.noise
    is_shown = noise is not None and noise.ratio.more_trials is None
    return _yes_or_no(is_shown, noise_sentence(analysis).removeprefix("Noise floor: "))


def _warmup(contents: BundleContents, analysis: Analysis) -> _Score:
    measure = contents.plan.experiment.measure
    longest = format_duration(measure.longest_warmup_s)
    until = "" if measure.warmup_max_s is None else "until throughput was steady, at most "
    return _yes_or_no(measure.longest_warmup_s > 0, f"{until}{longest} before each trial, not counted")


def _steady(contents: BundleContents, analysis: Analysis) -> _Score:
    counted = [p for v in analysis.variants for p in v.trials if p.excluded is None and p.failure is None]
    steady = sum(point.steady is True for point in counted)
    short = sum(point.steady is None for point in counted)
    unknown = f"; {short} were too short to judge" if short else ""
    return _Score(steady, len(counted), f"{steady} of {len(counted)} trials show no trend or jump{unknown}")


def _checkpoint(contents: BundleContents, analysis: Analysis) -> _Score:
    complete = [t for t in contents.trials if t.trial.status == "complete"]
    with_one = [
        t for t in complete if any(e.kind.startswith(CHECKPOINT) and e.t_ns >= t.trial.warmup_ns for e in t.events)
    ]
    return _Score(len(with_one), len(complete), f"seen in {len(with_one)} of {len(complete)} trials")


def _settings(contents: BundleContents, analysis: Analysis) -> _Score:
    read = [v for v in contents.plan.variants if v.id in contents.servers]
    return _Score(len(read), len(contents.plan.variants), f"for {len(read)} of {len(contents.plan.variants)} variants")


def _safety(contents: BundleContents, analysis: Analysis) -> _Score:
    losing = [v.label for v in analysis.variants if v.safety.grade != "keeps" and not v.is_aa_twin]
    evidence = (
        f"judged from facts; may lose: {', '.join(losing)}" if losing else "judged from facts; no variant loses commits"
    )
    return _yes_or_no(bool(analysis.variants), evidence)


def _power_cut(contents: BundleContents, analysis: Analysis) -> _Score:
    tests = [variant.durability for variant in analysis.variants if not variant.is_aa_twin]
    tested = [test for test in tests if test is not None and test.made]
    if not tested:
        return _yes_or_no(False, "safety is judged from settings and facts; no power cut was made")
    made, damaged = sum(test.made for test in tested), sum(test.damaged for test in tested)
    return _Score(len(tested), len(tests), f"{format_count(made, 'power cut')}, of which {damaged} did damage")


def _hardware(contents: BundleContents, analysis: Analysis) -> _Score:
    whole = [s.name for s in contents.storages.values() if s.stack and not s.gaps]
    others = "".join(f"; host {name}: {host.cpu_model}" for name, host in contents.plan.hosts.items())
    return _Score(
        len(whole),
        max(1, len(contents.storages)),
        f"{contents.host.cpu_model}{others}; {len(whole)} of {len(contents.storages)} storages completely described",
    )


def _data_size(contents: BundleContents, analysis: Analysis) -> _Score:
    sizes = [cluster.data_bytes for cluster in contents.plan.clusters]
    limits = {one.memory_limit_bytes for one in contents.servers.values() if one.memory_limit_bytes is not None}
    limited = f", limited to {', '.join(map(format_size, sorted(limits)))} for the server" if limits else ""
    evidence = (
        f"about {format_size(max(sizes, default=0))}, memory {format_size(contents.host.memory_total_bytes)}{limited}"
    )
    return _yes_or_no(bool(sizes), f"{evidence} (an estimate of the plan)")


def _raw_data(contents: BundleContents, analysis: Analysis) -> _Score:
    kept = [t for t in contents.trials if t.series]
    return _Score(len(kept), len(contents.trials), f"seconds and histograms of {len(kept)} trials in {contents.path}")


def _percentiles(contents: BundleContents, analysis: Analysis) -> _Score:
    measured = [v for v in analysis.variants if v.tps is not None]
    return _Score(
        sum(v.latency is not None for v in measured),
        len(measured),
        "from each trial's merged histogram, never averaged; of a variant the median of its trials",
    )


def _failures(contents: BundleContents, analysis: Analysis) -> _Score:
    counts = [trial.measured.failed for trial in _counted(contents) if trial.measured]
    return _yes_or_no(bool(counts), f"{sum(counts):,} failed transactions, none of them in a latency")


def _agrees(contents: BundleContents, analysis: Analysis) -> _Score:
    checks = [check for t in contents.trials for check in t.trial.checks]
    good = sum(check.ok for check in checks)
    return _Score(good, len(checks), f"{good} of {len(checks)} checks hold" if checks else "n/a: no check was made")


def _client(contents: BundleContents, analysis: Analysis) -> _Score:
    costs = [v.engine_cpu_ns_per_transaction for v in analysis.variants if v.engine_cpu_ns_per_transaction is not None]
    if not costs:
        return _yes_or_no(False, "n/a: not measured")
    least, most = (number(cost / 1000) for cost in (min(costs), max(costs)))
    return _yes_or_no(True, f"{least if least == most else f'{least} to {most}'} us of CPU per transaction")


def _own_machine(contents: BundleContents, analysis: Analysis) -> _Score:
    """Judge it of servers that are known to be elsewhere only: an external server may well be on this machine."""
    variants = [variant for variant in contents.plan.variants if not variant.is_aa_twin]
    places = [_is_here(contents, variant) for variant in variants]
    elsewhere = places.count(False)
    if True in places:
        evidence = "load and server share one machine, and its CPU"
        if elsewhere:
            evidence += f", in {places.count(True)} of {len(places)} variants"
    elif None in places:
        evidence = "n/a: the bundle does not have on which machine the external server is"
    else:
        evidence = "the server is on another machine"
    return _Score(elsewhere, max(1, len(places)), evidence)


def _is_here(contents: BundleContents, variant: Variant) -> bool | None:
    """Return whether a variant's server is on the machine of the load; None where that is not known."""
    connection = contents.cluster_of(variant).primary.server.connection
    if connection is None:
        return True
    facts = contents.servers.get(variant.id)
    return None if facts is None else facts.on_this_machine


def _idle_machine(contents: BundleContents, analysis: Analysis) -> _Score:
    """Judge whether other programs left the machine to the run, by the CPU that they used in each counted trial."""
    cores = contents.host.cores
    points = [p for v in analysis.variants for p in v.trials if p.excluded is None and p.failure is None]
    known = [(p.neighbours_cores, p.number) for p in points if p.neighbours_cores is not None]
    if not known:
        return _yes_or_no(
            False,
            "n/a: the CPU of other processes was not told from the server's" if points else "n/a: no trial counts",
        )
    busy = sum(used >= IDLE * cores for used, _ in known)
    most, number_of_most = max(known)
    how = (
        f"{percent(IDLE, 0)} of {format_count(cores, 'core')} or more"
        if busy
        else f"less than {percent(IDLE, 0)} of the cores"
    )
    counted = f"{busy or len(known)} of {format_count(len(points), 'trial')}"
    unknown = f"; of {len(points) - len(known)} it is not known" if len(known) < len(points) else ""
    evidence = (
        f"other processes used {how} in {counted}; the most: {most:.2f} cores, in trial {number_of_most}{unknown}"
    )
    return _Score(len(known) - busy, len(points), evidence)


def _repeatable(contents: BundleContents, analysis: Analysis) -> _Score:
    return _yes_or_no(
        bool(contents.experiment_toml),
        f"experiment file, seed {contents.plan.experiment.measure.seed} and versions are on this page",
    )


_CLAIMS: Sequence[tuple[str, Callable[[BundleContents, Analysis], _Score]]] = (
    ("Spread is shown, not only a single figure", _spread),
    ("Trials of all variants are interleaved at random", _interleaved),
    ("An A/A pair shows the noise floor", _aa_pair),
    ("Warm-up is excluded", _warmup),
    ("Throughput was steady while measured", _steady),
    ("Measured long enough to hold a checkpoint", _checkpoint),
    ("Settings were read back from the server", _settings),
    ("Durability is reported with speed", _safety),
    ("Durability was tested by cutting power", _power_cut),
    ("Hardware and storage stack are listed", _hardware),
    ("Data size is reported with memory size", _data_size),
    ("Percentiles come from merged histograms", _percentiles),
    ("Failed transactions are excluded from latencies", _failures),
    ("Totals agree with the database's own counters", _agrees),
    ("The load engine's own cost is reported", _client),
    ("The load ran on a separate machine", _own_machine),
    ("The machine was idle but for the run", _idle_machine),
    ("Raw data is kept", _raw_data),
    ("It can be run again from this page", _repeatable),
)
_MARKS = {"yes": "yes", "partly": "partly", "no": "**no**"}


def _blocks(report: Report) -> list[Bullets]:
    return [Bullets([f"{_MARKS[one.status]}: {one.claim} ({one.evidence})" for one in report.disclosures])]


DISCLOSURE = Section(id="disclosure", title="Disclosure", blocks=_blocks)
