"""What a sceptical reader of a comparison of runs must know."""

from collections.abc import Sequence
from datetime import UTC, datetime

from plinth.analyse.bootstrap import MIN_TRIALS
from plinth.analyse.machine_load import share_of
from plinth.model.analysis import NoiseFloor
from plinth.model.figures import number
from plinth.model.run_comparison import Difference
from plinth.model.run_figures import RunFigures, VariantFigures
from plinth.model.safety import grade_words
from plinth.model.tpcc_notice import NOTICE
from plinth.model.units import format_count

Pairs = Sequence[tuple[VariantFigures, VariantFigures]]


def caveats(
    runs: Sequence[RunFigures], differences: Sequence[Difference], pairs: Pairs, floors: Sequence[NoiseFloor | None]
) -> tuple[str, ...]:
    """The most important first. `pairs` are the variants as matched, `floors` what each run's A/A pair showed."""
    return (
        _not_interleaved(runs),
        *_derived_workload(runs),
        *_machines(differences),
        *_load(differences),
        *_what_differs(differences),
        *_safety(pairs),
        *_alarms(runs, floors),
        *_incomplete(runs),
        *_unknown_load(runs),
        *_few_trials(pairs),
    )


def _not_interleaved(runs: Sequence[RunFigures]) -> str:
    days = " and ".join(dict.fromkeys(_day(run) for run in (runs[0], runs[-1])))
    return (
        f"The trials of these runs ({days}) are not interleaved: a change of the machine from one run to the other cannot be told "
        "from the effect of what differs between them. The intervals hold only the noise between the trials within each run."
    )


def _derived_workload(runs: Sequence[RunFigures]) -> list[str]:
    of_variants = {(one.name, one.value) for run in runs for variant in run.variants for one in variant.conditions}
    return [NOTICE] if ("builtin", "tpcc") in of_variants else []


def _day(run: RunFigures) -> str:
    return f"{datetime.fromtimestamp(run.created_unix_ns / 1e9, UTC):%Y-%m-%d %H:%M} UTC"


def _machines(differences: Sequence[Difference]) -> list[str]:
    names = [one.name for one in differences if one.kind == "machine"]
    if not names:
        return []
    return [
        f"The machines differ ({', '.join(names)}): a ratio is of machine, storage and settings together, not of a change to one."
    ]


def _load(differences: Sequence[Difference]) -> list[str]:
    names = [one.name for one in differences if one.kind == "load"]
    return [f"The machine was under different load ({', '.join(names)}): a ratio is of it, too."] if names else []


def _unknown_load(runs: Sequence[RunFigures]) -> list[str]:
    unknown = [
        run.run_id for run in runs if any(one.trials and share_of(one, "others_cpu") is None for one in run.variants)
    ]
    if not unknown:
        return []
    return [
        f"What other processes did during the trials of {', '.join(unknown)} is not known: whether the machine was under the same "
        "load cannot be told."
    ]


def _what_differs(differences: Sequence[Difference]) -> list[str]:
    kinds = list(dict.fromkeys(one.kind for one in differences if one.kind != "machine"))
    if not differences:
        return [
            "Nothing that is recorded differs between the runs: a difference is the machine's drift, or not recorded."
        ]
    if len(kinds) > 1:
        return [f"Several things differ at once ({', '.join(kinds)}): no ratio can be ascribed to one of them."]
    return []


def _safety_words(figures: VariantFigures) -> str:
    return grade_words(figures.safety, figures.safety_basis)


def _safety(pairs: Pairs) -> list[str]:
    changed = {
        after.label: f"{after.label}: what becomes of acknowledged commits in a power failure changed from "
        f'"{_safety_words(before)}" to "{_safety_words(after)}".'
        for before, after in pairs
        if before.safety != after.safety
    }
    return list(changed.values())


def _alarms(runs: Sequence[RunFigures], floors: Sequence[NoiseFloor | None]) -> list[str]:
    return [
        f"In run {run.run_id} the A/A pair, two identical variants, was told apart by {number(floor.smallest_ratio)}x: "
        "no smaller difference is called better or worse."
        for run, floor in zip(runs, floors, strict=True)
        if floor is not None and floor.alarm
    ]


def _incomplete(runs: Sequence[RunFigures]) -> list[str]:
    return [
        f"Run {run.run_id} is not complete (status: {run.status}): its trials may be a selection, and no seal shows that they are unchanged."
        for run in runs
        if run.status != "complete"
    ]


def _few_trials(pairs: Pairs) -> list[str]:
    few = dict.fromkeys(
        after.label for before, after in pairs if min(len(before.trials), len(after.trials)) < MIN_TRIALS
    )
    left_out = sum(side.left_out for side in {id(side): side for pair in pairs for side in pair}.values())
    found = (
        [f"Fewer than {MIN_TRIALS} trials on one side give no interval and no verdict: {', '.join(few)}."]
        if few
        else []
    )
    return found + ([f"{format_count(left_out, 'trial')} failed or excluded, and left out."] if left_out else [])
