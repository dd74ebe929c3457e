"""The order of power cuts, and which are left."""

import pytest

from analyse_bundles import bundle
from plinth.model.durability import (
    Damage,
    DurabilitySpec,
    PlannedCut,
    PowerCut,
    attempt_of,
    cuts_left,
    recording_name,
)
from plinth.plan.order import order_cuts

VARIANTS = bundle({"disk": [1.0], "memory": [1.0], "A/A": [1.0]}).plan.variants


def made(planned: PlannedCut, *damage: Damage) -> PowerCut:
    return PowerCut(
        **planned.model_dump(),
        started_unix_ns=0,
        disks=(),
        after_s=None,
        acknowledged=1,
        unanswered=0,
        recovery_s=None,
        damage=damage,
    )


def order(**spec: object) -> list[PlannedCut]:
    return order_cuts(VARIANTS, DurabilitySpec.model_validate(spec), seed=7)


def test_without_the_table_there_are_no_cuts():
    assert order_cuts(VARIANTS, None, seed=1) == []


def test_variants_take_turns_and_the_twin_has_none():
    cuts = order(cuts=3)
    assert [cut.number for cut in cuts] == [1, 2, 3, 4, 5, 6]
    twin = next(variant.id for variant in VARIANTS if variant.is_aa_twin)
    assert [cut.variant for cut in cuts] == [one.id for one in VARIANTS if one.id != twin] * 3


def test_a_round_is_the_same_for_every_variant_and_rounds_differ():
    cuts = order(cuts=24)
    rounds = [{(cut.seed, cut.mode, cut.moment) for cut in cuts[at : at + 2]} for at in range(0, 48, 2)]
    assert all(len(one) == 1 for one in rounds)
    assert len({cut.seed for cut in cuts}) == 24
    kinds = [(cut.mode, cut.moment) for cut in cuts[::2]]
    assert {kinds.count(kind) for kind in kinds} == {1}, "four modes at six moments, each once"


def test_the_order_depends_on_the_seed_only():
    assert order(cuts=5) == order(cuts=5)
    assert order(cuts=5) == order(cuts=9)[:10], "more cuts are further cuts"


@pytest.mark.parametrize(("stop_after", "left"), [(1, [4]), (2, [3, 4]), (None, [3, 4])])
def test_damage_ends_the_cuts_of_its_variant(stop_after: int | None, left: list[int]):
    cuts = order(cuts=2)
    found = [made(cuts[0], Damage(kind="lost commit", count=1, evidence=("x",))), made(cuts[1])]
    assert [cut.number for cut in cuts_left(cuts, found, stop_after)] == left


def test_images_are_spread_over_recordings_each_with_every_mode_and_moment():
    moments = ["load", "checkpoint", "recovery"]
    cuts = order(atlas=16, recordings=2, modes=["drop", "torn"], moments=moments, points=["change"], tear_sizes=[512])
    variants = [one.id for one in VARIANTS if not one.is_aa_twin]
    assert [cut.number for cut in cuts] == list(range(1, 16 * len(variants) + 1))
    assert [(cut.recording, cut.variant) for cut in cuts][::8] == [(n, one) for n in (1, 2) for one in variants]
    for start in range(0, len(cuts), 8):
        group = cuts[start : start + 8]
        assert len({(cut.recording, cut.variant) for cut in group}) == 1
        kinds = {(cut.mode, cut.moment) for cut in group}
        assert kinds == {(mode, moment) for mode in ("drop", "torn") for moment in ("load", "checkpoint")}
    assert len({cut.seed for cut in cuts}) == 16


def test_images_are_taken_at_flushes_and_at_changes_and_tear_at_each_size():
    cuts = [cut for cut in order(atlas=7, recordings=1, moments=["load"]) if cut.variant == VARIANTS[0].id]
    assert [(cut.point, cut.mode, cut.tear_bytes) for cut in cuts] == [
        ("flush", "drop", 0),
        ("change", "drop", 0),
        ("change", "subset", 0),
        ("change", "prefix", 0),
        ("change", "torn", 512),
        ("change", "torn", 4096),
        ("change", "torn", 8192),
    ]
    only = order(atlas=9, recordings=3, points=["flush"])
    assert {(cut.point, cut.mode) for cut in only} == {("flush", "drop")}


def test_few_images_of_many_recordings_have_every_kind_in_turn():
    cuts = [cut for cut in order(atlas=35, recordings=35) if cut.variant == VARIANTS[0].id]
    assert len({(cut.moment, cut.point, cut.mode, cut.tear_bytes) for cut in cuts}) == 35


def test_live_cuts_come_before_images_and_more_recordings_than_images_are_none():
    cuts = order(cuts=2, atlas=3)
    assert [cut.recording is None for cut in cuts] == [True] * 4 + [False] * 6
    assert {cut.recording for cut in cuts} == {None, 1, 2, 3}


def test_a_cut_of_which_nothing_was_learned_was_not_tested():
    (planned, *_) = order(cuts=1)
    untested = made(planned).model_copy(update={"failure": "no image"})
    assert made(planned).was_tested and not untested.was_tested
    damaged = made(planned, Damage(kind="lost commit", count=1, evidence=("x",)))
    assert damaged.model_copy(update={"failure": "the check took too long"}).was_tested


def test_the_folder_of_a_recording_tells_the_attempt():
    image = order(atlas=1, recordings=1)[0]
    for attempt in (1, 2, 10):
        assert attempt_of(recording_name(image.model_copy(update={"attempt": attempt})), image) == attempt
    other = image.model_copy(update={"recording": 2, "attempt": 3})
    for name in (
        "0001",
        "cut-00001",
        f"{recording_name(image)}-attempt-",
        f"{recording_name(image)}0",
        recording_name(other),
    ):
        assert attempt_of(name, image) is None
