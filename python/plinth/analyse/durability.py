"""What the power cuts of a variant say: how many found damage, and how many of all cuts do so at most; and the controls of a run,
variants that must lose commits."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from plinth.analyse.safety import judge
from plinth.model.analysis import VariantResult
from plinth.model.base import Gap
from plinth.model.choices import CutMode
from plinth.model.contents import BundleContents
from plinth.model.durability import CutMoment, DamageKind, PowerCut
from plinth.model.facts import ServerFacts
from plinth.model.plan import Variant
from plinth.model.power_cuts import CutControl, CutControls, CutCount, DurabilityTest, RecoveryFigures
from plinth.model.safety import Safety, SafetyGrade
from plinth.model.units import format_count
from plinth.model.write_facts import SettingSeen, WriteFacts, settings_in_force, value_in_force

CONFIDENCE = 0.95
_WAL_WRITER_DELAY_MS = 200.0
"""PostgreSQL's default; facts have only settings that were asked for or differ from it."""
_MOST_SHOWN = 10
_MOST_NAMED = 3


def durability_of(
    variant: str,
    cuts: Sequence[PowerCut],
    planned: int,
    server: ServerFacts | None = None,
    writes: Sequence[WriteFacts] = (),
) -> DurabilityTest | None:
    """Return the test of a variant for which `planned` cuts were planned, with this server and these loads; None where none were."""
    if planned == 0:
        return None
    own = [cut for cut in cuts if cut.variant == variant]
    # Damage is damage, also when a later check could not be made.
    checked = [cut for cut in own if cut.was_tested]
    losing = [cut for cut in checked if cut.lost_commits]
    trials = _independent(checked)
    damaged_trials = sum(any(cut.damage for cut in cuts) for cuts in trials)
    recoveries = [cut.recovery_s for cut in checked if cut.recovery_s is not None]
    kinds: Counter[DamageKind] = Counter()
    for cut in checked:
        kinds.update({damage.kind for damage in cut.damage})
    damaged = [cut for cut in checked if cut.damage]
    return DurabilityTest(
        planned=planned,
        made=len(checked),
        failed=len(own) - len(checked),
        dropped=sum(cut.bytes_dropped > 0 or not cut.reports for cut in checked),
        damaged=len(damaged),
        images=sum(cut.recording is not None for cut in checked),
        independent=len(trials),
        grid=_grid(checked),
        kinds=dict(kinds),
        # The images of one recording look for the same commits.
        acknowledged=sum(max(cut.acknowledged for cut in cuts) for cuts in trials),
        lost_commits=sum(max(cut.lost_commits for cut in cuts) for cuts in trials),
        most_lost_commits=max((cut.lost_commits for cut in checked), default=0),
        most_lost_time_s=max((cut.lost_time_s for cut in losing if cut.lost_time_s is not None), default=None),
        lost_time_bound_s=_lost_time_bound_s(settings_in_force({}, server, writes)),
        most_lost_wal_bytes=max((cut.lost_wal_bytes for cut in losing if cut.lost_wal_bytes is not None), default=None),
        damaged_share_at_most=upper_bound(damaged_trials, len(trials)) if checked else None,
        recovery_median_s=median(recoveries) if recoveries else None,
        recovery_max_s=max(recoveries, default=None),
        recovery=_recovery(checked),
        examples=tuple(damaged[:_MOST_SHOWN]),
        not_checked=_not_checked(checked),
        gaps=_not_learned(own),
    )


def _recovery(cuts: Sequence[PowerCut]) -> RecoveryFigures | None:
    recoveries = [cut.recovery for cut in cuts if cut.recovery is not None]
    if not recoveries:
        return None
    mounted = [cut.mounted_s for cut in cuts if cut.mounted_s is not None]
    rates = [one.redo_bytes / one.redo_s for one in recoveries if one.redo_bytes and one.redo_s]
    rests = [
        max(0.0, cut.recovery_s - cut.mounted_s - cut.recovery.total_s)
        for cut in cuts
        if cut.recovery is not None and cut.mounted_s is not None and cut.recovery_s is not None
    ]
    return RecoveryFigures(
        cuts=len(recoveries),
        mounted_s=median(mounted) if mounted else None,
        before_redo_s=median(one.before_redo_s for one in recoveries),
        redo_s=median(one.redo_s for one in recoveries),
        redo_bytes=median(one.redo_bytes for one in recoveries),
        redo_bytes_per_s=median(rates) if rates else None,
        after_redo_s=median(one.after_redo_s for one in recoveries),
        session_s=median(rests) if rests else None,
    )


def _lost_time_bound_s(settings: Mapping[str, SettingSeen]) -> float | None:
    """Return three times wal_writer_delay: PostgreSQL's manual, Asynchronous Commit."""
    if value_in_force(settings, "synchronous_commit") != "off":
        return None
    delay = value_in_force(settings, "wal_writer_delay")  # in ms, as pg_settings has it
    return 3 * (_WAL_WRITER_DELAY_MS if delay is None or not delay.isdecimal() else float(delay)) / 1e3


def power_cut_sentence(tests: Sequence[tuple[str, DurabilityTest]]) -> str | None:
    """Return which variants, by their labels, were damaged: "3 of 16 power cuts did damage to disk; none of 32 to the other 2 variants."

    None where nothing is known of any cut.
    """
    damaged = [(label, test) for label, test in tests if test.damaged]
    clean = [(label, test) for label, test in tests if test.made and not test.damaged]
    unharmed = sum(test.made for _, test in clean)
    if not damaged:
        return f"None of {unharmed:,} power cuts did damage." if clean else None
    counts = [f"{test.damaged:,} of {test.made:,}" for _, test in damaged]
    parts = [f"{counts[0]} power cuts did damage to {damaged[0][0]}"]
    parts += [f"{count} to {label}" for count, (label, _) in zip(counts[1:_MOST_NAMED], damaged[1:], strict=False)]
    if len(damaged) > _MOST_NAMED:
        parts.append(f"others to {len(damaged) - _MOST_NAMED} more variants")
    if clean:
        parts.append(
            f"none of {unharmed:,} to {clean[0][0] if len(clean) == 1 else f'the other {len(clean)} variants'}"
        )
    return f"{', '.join(parts)}."


def _grid(cuts: Sequence[PowerCut]) -> tuple[CutCount, ...]:
    cells: dict[tuple[CutMoment, CutMode], list[PowerCut]] = {}
    for cut in cuts:
        cells.setdefault((cut.moment, cut.mode), []).append(cut)
    return tuple(
        CutCount(moment=moment, mode=mode, made=len(own), damaged=sum(bool(cut.damage) for cut in own))
        for (moment, mode), own in cells.items()
    )


def _independent(cuts: Sequence[PowerCut]) -> list[list[PowerCut]]:
    """Return each live cut alone, and the images of each recording together."""
    live = [[cut] for cut in cuts if cut.recording is None]
    recordings: dict[int, list[PowerCut]] = {}
    for cut in cuts:
        if cut.recording is not None:
            recordings.setdefault(cut.recording, []).append(cut)
    return [*live, *recordings.values()]


def upper_bound(damaged: int, made: int) -> float:
    """Return the bound that the share of all cuts that do damage does not exceed, with 95 % confidence: the exact one-sided bound of Clopper and
    Pearson (Biometrika 26, 1934); without any damage it is 1 - 0.05^(1/made), about 3 / made.
    """
    if damaged >= made:
        return 1.0
    from scipy.special import betaincinv

    return float(betaincinv(damaged + 1, made - damaged, CONFIDENCE))


def with_test(judged: Safety, test: DurabilityTest | None) -> Safety:
    """Return `judged` from facts, with what power cuts have shown: what was found to lose never counts as safe."""
    if test is None or test.made == 0:
        return judged
    reason = test.sentence
    if test.damaged:
        # What contradicts the test is no reason any longer.
        others = () if judged.grade == "keeps" else judged.reasons
        changed: dict[str, Any] = {"grade": "does not keep", "reasons": (reason, *others), "basis": "tested"}
    else:
        # That a known loss was not seen in some cuts is no test of it.
        basis = "tested" if judged.grade in ("keeps", "unknown") else "assumed"
        changed = {"reasons": (*judged.reasons, reason), "basis": basis}
    return judged.model_copy(update={**changed, "tested": test.outcome})


def _not_learned(cuts: Sequence[PowerCut]) -> tuple[Gap, ...]:
    """Return the cuts of which nothing was learned, by their reason."""
    numbers: dict[str, list[str]] = {}
    for cut in cuts:
        if cut.failure is not None and not cut.was_tested:
            numbers.setdefault(cut.failure, []).append(str(cut.number))
    return tuple(
        Gap(what=f"{'cut' if len(of) == 1 else 'cuts'} {_first_of(of)}", reason=reason)
        for reason, of in numbers.items()
    )


def _first_of(numbers: Sequence[str]) -> str:
    more = len(numbers) - _MOST_SHOWN
    return ", ".join(numbers[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _not_checked(cuts: Sequence[PowerCut]) -> tuple[Gap, ...]:
    """Return the checks that could not be made, by their reason and how many cuts lack them."""
    missing = Counter((check.name, check.not_run) for cut in cuts for check in cut.checks if check.not_run is not None)
    alike: dict[tuple[str | None, int], list[str]] = {}
    for (name, reason), count in missing.items():
        alike.setdefault((reason, count), []).append(name)
    return tuple(
        Gap(what=f"{', '.join(names)}, in {format_count(count, 'cut')}", reason=reason or "")
        for (reason, count), names in alike.items()
    )


_LOSING: tuple[SafetyGrade, ...] = ("does not keep", "may lose recent commits")
_RUN_THEM = "`plinth run experiments/durability-controls.toml` shows it for this machine"


def controls_of(contents: BundleContents, results: Sequence[VariantResult]) -> CutControls | None:
    """Return the controls of a run; None of one in which no power was cut."""
    if not any(result.durability is not None and result.durability.made for result in results):
        return None
    variants = {variant.id: variant for variant in contents.plan.variants}
    controls = []
    for result in results:
        if result.durability is None or result.is_aa_twin:
            continue
        variant = variants[result.id]
        if (expected := _why_it_must_lose(variant, contents)) is not None:
            test = result.durability
            controls.append(
                CutControl(
                    variant=result.id, label=result.label, expected=expected, made=test.made, damaged=test.damaged
                )
            )
    return CutControls(controls=tuple(controls), sentence=_sentence(controls))


def _why_it_must_lose(variant: Variant, contents: BundleContents) -> str | None:
    """Return what its facts or settings say; facts of an emulated disk know that it lies. None where nothing does."""
    server = contents.servers.get(variant.id)
    judged = judge(variant, contents.storages_of(variant), server, contents.writes_of(variant))
    return judged.reasons[0] if judged.grade in _LOSING else None


def _sentence(controls: Sequence[CutControl]) -> str:
    if not controls:
        return (
            "Controls were not run: no variant of this run must lose commits, so nothing in it shows that its "
            f"power cuts find a loss; {_RUN_THEM}."
        )
    found = [control for control in controls if control.damaged]
    missed = [control for control in controls if not control.damaged]
    parts = []
    if found:
        damaged, made = sum(control.damaged for control in found), sum(control.made for control in found)
        parts.append(f"damage was found in {damaged:,} of {format_count(made, 'power cut')} of {_names(found)}")
    if missed:
        made = sum(control.made for control in missed)
        parts.append(
            f"none was found in {format_count(made, 'power cut')} of {_names(missed)}, so that clean results of this run "
            "rest on little"
            if not found
            else f"none in {format_count(made, 'power cut')} of {_names(missed)}"
        )
    return f"Controls, which must lose commits: {'; '.join(parts)}."


def _names(controls: Sequence[CutControl]) -> str:
    named = ", ".join(control.label for control in controls[:_MOST_NAMED])
    more = len(controls) - _MOST_NAMED
    return f"{named} and {format_count(more, 'more variant')}" if more > 0 else named
