"""Whether a run's power cuts find what must be found: its controls' result, or that they were not run, is in the analysis."""

from dataclasses import replace
from typing import Any

from analyse_bundles import bundle, storage_facts
from plinth.analyse import analyse
from plinth.model.contents import BundleContents
from plinth.model.durability import Damage, PlannedCut, PowerCut

LOST = Damage(kind="lost commit", count=3, evidence=("client 1, number 7",))


def with_cuts(damaged: dict[str, int], made: int = 4, **volatile: Any) -> BundleContents:
    """A run of disk and memory with `made` cuts each, of which `damaged` found damage; memory is volatile."""
    contents = bundle({"disk": [100.0, 101.0], "memory": [200.0, 201.0]})
    ids = {variant.label: variant.id for variant in contents.plan.variants}
    cuts = [
        PowerCut(
            number=number,
            variant=ids[label],
            seed=number,
            mode="drop",
            moment="load",
            started_unix_ns=0,
            disks=("disk",),
            after_s=0.1,
            acknowledged=10,
            unanswered=0,
            recovery_s=1.0,
            damage=(LOST,) if place < damaged[label] else (),
        )
        for label in damaged
        for place, number in enumerate(range(1, made + 1))
    ]
    planned = tuple(
        PlannedCut(number=cut.number, variant=cut.variant, seed=cut.seed, mode=cut.mode, moment=cut.moment)
        for cut in cuts
    )
    return replace(
        contents,
        plan=contents.plan.model_copy(update={"cuts": planned}),
        cuts=tuple(cuts),
        storages={"disk": storage_facts("disk"), "memory": storage_facts("memory", **volatile)},
    )


def sentence(contents: BundleContents) -> str:
    found = analyse(contents).cut_controls
    assert found is not None
    return found.sentence


def test_a_run_without_power_cuts_has_no_controls() -> None:
    assert analyse(bundle({"disk": [1.0], "memory": [2.0]})).cut_controls is None


def test_a_control_that_was_found_is_counted_with_why_it_must_be() -> None:
    contents = with_cuts({"disk": 0, "memory": 3}, volatile=True)
    found = analyse(contents).cut_controls
    assert found is not None
    (control,) = found.controls
    assert (control.label, control.made, control.damaged) == ("memory", 4, 3)
    assert "volatile" in control.expected
    assert "damage was found in 3 of 4 power cuts of memory" in found.sentence


def test_a_control_that_was_not_found_takes_away_from_clean_results() -> None:
    said = sentence(with_cuts({"disk": 0, "memory": 0}, volatile=True))
    assert "none was found in 4 power cuts of memory" in said
    assert "rest on little" in said


def test_a_run_without_a_control_says_that_none_was_run() -> None:
    said = sentence(with_cuts({"disk": 0, "memory": 0}))
    assert said.startswith("Controls were not run")
    assert "durability-controls.toml" in said
