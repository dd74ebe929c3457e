"""Caveats for a sceptical reader: everything that weakens the results, each in one sentence."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from plinth.analyse.adaptive import Adaptive
from plinth.analyse.bootstrap import MIN_TRIALS
from plinth.analyse.machine_cpu import autovacuum_s
from plinth.analyse.machine_load import LOAD_CHECKS
from plinth.analyse.preparation import not_reached, not_steady_after_warmup
from plinth.analyse.trials import JudgedTrial, Measured, keeps_up, name_trials
from plinth.analyse.volume_credits import credit_caveats
from plinth.analyse.wording import commit_clause, missed_text
from plinth.model.analysis import NoiseFloor, TrialPattern, VariantResult
from plinth.model.caveat import Caveat, CaveatKind, by_weight
from plinth.model.contents import BundleContents
from plinth.model.factors import Design
from plinth.model.figures import more_command, percent
from plinth.model.safety import SafetyGrade
from plinth.model.trial import Trial
from plinth.model.units import format_count, format_duration

MANY_FAILURES = 0.01
BUSY_ENGINE = 0.9
"""Share of its threads' time that the load engine may use before it, and not the server, sets the pace."""


def caveats(
    contents: BundleContents,
    measured: dict[str, Measured],
    results: Sequence[VariantResult],
    design: Design,
    noise: NoiseFloor | None,
    noise_missing: str | None,
    patterns: Sequence[TrialPattern] = (),
) -> list[Caveat]:
    """Return all warnings, the heaviest first."""
    found: tuple[tuple[CaveatKind, Iterable[str]], ...] = (
        ("incomplete run", _of_run(contents)),
        ("lost trials", _of_lost_trials(measured)),
        ("bug", _of_bugs(measured)),
        ("busy machine", _of_machine(contents, busy=True)),
        ("safety", _of_safety(results)),
        ("flushes", _of_flushes(contents)),
        ("not compared", _of_comparability(measured, design)),
        ("A/A pair", _of_pair(noise)),
        ("pattern", (pattern.sentence for pattern in patterns)),
        ("load", _of_load(measured)),
        ("few trials", _of_design(contents, noise_missing)),
        ("target", _of_target(contents, measured, design)),
        ("spread", _of_spread(results)),
        ("added trials", _of_extensions(contents)),
        ("state of a trial", _of_trials(contents, measured)),
        ("plan", _of_plan(contents)),
        ("machine", _of_machine(contents, busy=False)),
        ("storage", (*_of_storages(contents), *credit_caveats(contents, measured))),
        ("gaps", _of_gaps(contents, measured)),
    )
    return by_weight([Caveat(kind, text) for kind, texts in found for text in texts])


def _of_run(contents: BundleContents) -> Iterator[str]:
    manifest = contents.manifest
    if manifest.status != "complete":
        why = f": {manifest.reason}" if manifest.reason else ""
        yield f"the run is {manifest.status}{why}; {len(contents.trials)} of {len(contents.expected_trials)} trials are in the bundle"
    else:
        yield from _missing(contents)
    for failure in manifest.failures:
        yield f"{failure.what} failed, and with it its trials: {failure.reason}"


def _of_plan(contents: BundleContents) -> Iterator[str]:
    plan = contents.plan
    if plan.overrides:
        yield f"differs from the experiment file: {'; '.join(plan.overrides)}"
    yield from plan.warnings


def _missing(contents: BundleContents) -> Iterator[str]:
    """Warn of missing trials: a run that has finished has every trial, failed ones too; the others were taken out of the bundle."""
    there = {one.trial.number for one in contents.trials}
    missing = [
        f"{planned.number} ({planned.variant})" for planned in contents.expected_trials if planned.number not in there
    ]
    if missing:
        trials, are = ("trial", "is") if len(missing) == 1 else ("trials", "are")
        yield (
            f"the run is complete, but {trials} {', '.join(missing)} of {len(contents.expected_trials)} {are} not in the bundle: "
            "removed after the run, so that every figure may be a selection"
        )


def _of_pair(noise: NoiseFloor | None) -> Iterator[str]:
    if noise and noise.alarm:
        seen = max(noise.ratio.value, 1 / noise.ratio.value)
        yield f"the A/A pair, twice the same variant, came out {seen:.2f}x apart: distrust small differences"


def _of_design(contents: BundleContents, noise_missing: str | None) -> Iterator[str]:
    measure = contents.plan.experiment.measure
    several = sum(not variant.is_aa_twin for variant in contents.plan.variants) > 1
    if measure.repeats < MIN_TRIALS:
        missing = more_command(MIN_TRIALS - measure.repeats)
        yield f"{format_count(measure.repeats, 'trial')} of each variant: too few for intervals, which need {MIN_TRIALS} ({missing})"
    if several and measure.order == "sequential":
        yield "trials ran variant after variant: a drift of the machine looks like a difference between variants"
    if noise_missing and several:
        yield f"the noise floor is not known: {noise_missing}"


def _of_extensions(contents: BundleContents) -> Iterator[str]:
    """Return warnings about added trials: that the results were known before, and that storages and days are mixed."""
    plan = contents.plan
    if not plan.extensions:
        return
    ends = [extension.first_trial - 1 for extension in plan.extensions[1:]] + [len(plan.trials)]
    added = [
        f"trials {extension.first_trial} to {end} on {_date(extension.added_unix_ns)}"
        for extension, end in zip(plan.extensions, ends, strict=True)
    ]
    yield (
        f"{', '.join(added)} were added when results were known already, on storages, servers and data that were made "
        "again: where there is no difference, one is then shown in 6 to 9 of 100 experiments, and not in 4 or 5"
    )


def _of_target(contents: BundleContents, measured: dict[str, Measured], design: Design) -> Iterator[str]:
    """Warn of trials that were to end once every comparison was decided: what the others rest on, and comparisons that are open."""
    adaptive = Adaptive.of(contents.plan, design)
    if adaptive is None or contents.manifest.status != "complete":
        return
    blocks = max((planned.block for planned in contents.expected_trials), default=0)
    undecided = adaptive.open_comparisons({id_: one.log_tps for id_, one in measured.items()}, blocks)
    end = contents.manifest.trials_end
    if end is not None and end.reason == "decided" and undecided:
        yield (
            f"the trials ended after block {end.block} as decided, but of {len(adaptive.pairs)} comparisons, {undecided} are not, "
            "by the trials that are in the bundle: trials were altered after the run"
        )
    elif undecided:
        open_ = adaptive.undecided_text(undecided)
        if end is None:
            yield f"{open_} after {format_count(blocks, 'block')}, the most that measure.repeats allows"
        else:
            yield f"{open_} after {format_count(blocks, 'block')}, when measure.budget was spent; {more_command('N')} runs up to N blocks more"


def _date(unix_ns: int) -> str:
    return f"{datetime.fromtimestamp(unix_ns / 1e9, UTC):%Y-%m-%d}"


def _of_spread(results: Sequence[VariantResult]) -> Iterator[str]:
    """Warn of variants whose trials differ so much that no interval is stated; too few for any is said of the design."""
    wide = [(result.label, result.tps) for result in results if result.tps is not None]
    for label, tps in wide:
        if tps.n >= MIN_TRIALS and tps.more_trials is not None:
            more = f"about {tps.more_trials} more would tell its order of magnitude ({more_command(tps.more_trials)})"
            yield f"throughput of {label}: {tps.note}; {more}"


def _of_safety(results: Sequence[VariantResult]) -> Iterator[str]:
    if sum(result.rank is not None and not result.is_aa_twin for result in results) < 2:
        return
    first = [result for result in results if result.rank == 1 and not result.is_aa_twin]
    unsafe: dict[tuple[SafetyGrade, str], list[VariantResult]] = {}
    for result in first:
        if result.safety.grade != "keeps":
            unsafe.setdefault((result.safety.grade, result.safety.reasons[0]), []).append(result)
    for (grade, reason), alike in unsafe.items():
        others = len(alike) - 1
        more = f" (and so {'does' if others == 1 else 'do'} {format_count(others, 'other variant')} at other levels)"
        yield f"{alike[0].label} ranks first{more if others else ''}, but {commit_clause(grade)}: {reason}"


def _of_flushes(contents: BundleContents) -> Iterator[str]:
    for storage, probe in contents.probes.items():
        if probe.plausibility.verdict == "suspicious":
            yield f"flushes of storage {storage} are suspicious: {'; '.join(probe.plausibility.reasons)}"


def _of_comparability(measured: dict[str, Measured], design: Design) -> Iterator[str]:
    for one in measured.values():
        if not one.counted:
            yield f"{one.variant.label}: no trial counts, so it has no figures"
    for stratum in design.strata:
        baseline = measured[stratum.baseline]
        for one in (measured[variant] for variant in stratum.variants if variant != stratum.baseline):
            if one.counted and not one.log_tps.keys() & baseline.log_tps.keys():
                yield f"{one.variant.label} is not compared: no block has a counted trial of it and of {baseline.variant.label}"
        if len(stratum.variants) == 1 and len(design.strata) > 1:
            compared = " and ".join(design.factor(name).title for name in design.compared)
            yield f"{baseline.variant.label} is not compared: no other variant differs from it only in {compared}"


def _of_lost_trials(measured: dict[str, Measured]) -> Iterator[str]:
    def failed(judged: JudgedTrial) -> str | None:
        trial = judged.contents.trial
        return (trial.failure or "no reason was kept") if trial.status == "failed" else None

    yield from _grouped(measured, "failed", failed)
    yield from _grouped(measured, "excluded", lambda judged: judged.excluded)
    yield from _checks(measured)


def _of_trials(contents: BundleContents, measured: dict[str, Measured]) -> Iterator[str]:
    yield from _grouped(measured, "the cache was not in the state asked for", not_reached)
    longest = format_duration(contents.plan.experiment.measure.longest_warmup_s)
    yield from _grouped(measured, f"not steady after {longest} of warm-up", not_steady_after_warmup)
    yield from _grouped(measured, "not steady", _unsteady)


def _unsteady(judged: JudgedTrial) -> str | None:
    if judged.steadiness.steady is not False:
        return None
    ran_s = 0 if judged.seen is None else round(autovacuum_s(judged.seen))
    return (
        f"{judged.steadiness.reason}{f'; autovacuum workers ran for {ran_s} s of the measured time' if ran_s else ''}"
    )


def _checks(measured: dict[str, Measured]) -> Iterator[str]:
    for label, judged in _all_trials(measured):
        for check in judged.contents.trial.checks:
            if not check.ok:
                yield (
                    f"{label}, trial {judged.number}: check failed: {check.name}: "
                    f"expected {check.expected}, got {check.got}"
                )


def _of_load(measured: dict[str, Measured]) -> Iterator[str]:
    yield from _grouped(measured, "many failed transactions", lambda judged: _failures(judged.contents.trial))
    yield from _schedules(measured)
    yield from _grouped(measured, "the load engine was the bottleneck", _bottleneck)


def _schedules(measured: dict[str, Measured]) -> Iterator[str]:
    """Warn of schedules that were missed: throughput of an open loop is what was asked for only while the server keeps up."""
    for one in measured.values():
        loop = one.open_loop()
        if loop is None or not loop.scheduled:
            continue
        if not keeps_up(loop, len(one.counted) * one.variant.workload.clients):
            yield f"{one.variant.label} did not keep up with the schedule: {missed_text(loop)}"
        if loop.late:
            yield f"{one.variant.label}: {loop.late:,} of {loop.done:,} transactions took longer than the latency limit"


def _failures(trial: Trial) -> str | None:
    totals = trial.measured
    if totals is None or totals.failed <= MANY_FAILURES * (totals.done + totals.failed):
        return None
    most = max(trial.errors, key=lambda error: error.count, default=None)
    return f"more than {percent(MANY_FAILURES, 0)}" + (f", most often: {most.message}" if most else "")


def _bottleneck(judged: JudgedTrial) -> str | None:
    trial, engine = judged.contents.trial, judged.contents.trial.engine
    if engine is None:
        return None
    available_ns = engine.threads * trial.measured_ns
    if available_ns and engine.user_cpu_ns + engine.system_cpu_ns > BUSY_ENGINE * available_ns:
        return f"its {'threads' if engine.driver is None else 'processes'} were busy more than {percent(BUSY_ENGINE, 0)} of the time"
    if engine.loop_lag_p99_ns is None:
        return None
    if judged.latency and engine.loop_lag_p99_ns > judged.latency.percentile_ns(0.5):
        return "at p99 replies waited in it longer than the median latency"
    return None


def _of_machine(contents: BundleContents, *, busy: bool) -> Iterator[str]:
    """Return what the doctor found before the run, of others that were at work or else of all the rest: the most severe in words, the
    others counted."""
    for examination in contents.doctor.examinations if contents.doctor else ():
        found = [one for one in examination.at_least("warning") if (one.id in LOAD_CHECKS) == busy]
        if found:
            weightiest, *others = found
            more = f"; {len(others)} more in the report" if others else ""
            about = "the machine" if weightiest.about == "machine" else weightiest.about
            if weightiest.severity == "warning":  # as all of these are called
                yield f"found on {about} before the run: {weightiest.saw}{more}"
            else:
                yield f"{weightiest.severity} of {about}, found before the run: {weightiest.saw}{more}"


def _of_storages(contents: BundleContents) -> Iterator[str]:
    for storage in contents.storages.values():
        yield from (f"{storage.name}: {note}" for note in storage.notes)


def _of_bugs(measured: dict[str, Measured]) -> Iterator[str]:
    bugs = {
        gap.reason: gap.what for _, judged in _all_trials(measured) for gap in judged.contents.trial.gaps if gap.is_bug
    }
    yield from (f"{what} could not be read: {reason}" for reason, what in bugs.items())


def _of_gaps(contents: BundleContents, measured: dict[str, Measured]) -> Iterator[str]:
    unread = _count_gaps(contents, measured)
    if unread:
        yield (
            f"{unread} {'figure' if unread == 1 else 'figures'} could not be read: the report lists "
            f"{'it with its reason' if unread == 1 else 'them with their reasons'}"
        )


def _count_gaps(contents: BundleContents, measured: dict[str, Measured]) -> int:
    """Return what was not available; the same thing in several trials counts once."""
    of_stacks = sum(len(storage.gaps) for storage in contents.storages.values())
    of_servers = {gap.what for server in contents.servers.values() for gap in server.gaps}
    of_trials = {gap.what for _, judged in _all_trials(measured) for gap in judged.contents.trial.gaps}
    return of_stacks + len(contents.host.gaps) + len(of_servers) + len(of_trials)


def _all_trials(measured: dict[str, Measured]) -> Iterator[tuple[str, JudgedTrial]]:
    for one in measured.values():
        for judged in one.trials:
            yield one.variant.label, judged


def _grouped(measured: dict[str, Measured], what: str, reason_of: Callable[[JudgedTrial], str | None]) -> Iterator[str]:
    """Return one sentence for all trials of a variant with the same reason: "memory, trials 4, 7: failed: reason"."""
    groups: dict[tuple[str, str], list[JudgedTrial]] = {}
    for label, judged in _all_trials(measured):
        reason = reason_of(judged)
        if reason is not None:
            groups.setdefault((label, reason), []).append(judged)
    for (label, reason), trials in groups.items():
        yield f"{label}, {name_trials(trials)}: {what}: {reason}"
