"""The controls of a run's power cuts: its variants that must lose commits, and whether the cuts found it."""

from collections.abc import Sequence

from plinth.analyse.safety import judge
from plinth.model.analysis import CutControl, CutControls, VariantResult
from plinth.model.contents import BundleContents
from plinth.model.plan import Variant
from plinth.model.safety import SafetyGrade
from plinth.model.units import format_count

_LOSING: tuple[SafetyGrade, ...] = ("does not keep", "may lose recent commits")
_MOST_NAMED = 3
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
