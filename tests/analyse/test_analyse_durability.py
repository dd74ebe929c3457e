"""What power cuts say: the exact bound, and how a test changes what was judged from facts."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plinth.analyse.durability import durability_of, power_cut_sentence, upper_bound, with_test
from plinth.model.durability import Damage, IntegrityCheck, PowerCut
from plinth.model.facts import ServerFacts, Setting
from plinth.model.safety import Safety

KEEPS = Safety(grade="keeps", reasons=("every commit is flushed",))
VOLATILE = Safety(grade="does not keep", reasons=("memory is volatile",))


def cut(
    number: int,
    *damage: Damage,
    failure: str | None = None,
    acknowledged: int = 100,
    not_run: str | None = None,
    recording: int | None = None,
):
    return PowerCut(
        number=number,
        variant="v",
        seed=number,
        mode="drop",
        moment="load",
        recording=recording,
        started_unix_ns=0,
        disks=("disk",),
        after_s=0.5,
        acknowledged=acknowledged,
        unanswered=2,
        recovery_s=float(number),
        damage=damage,
        checks=(IntegrityCheck(name="verify_heapam", not_run=not_run),),
        failure=failure,
    )


def lost(count: int) -> Damage:
    return Damage(kind="lost commit", count=count, evidence=("rows are missing",))


@pytest.mark.parametrize(("damaged", "made", "bound"), [(0, 1, 0.95), (0, 300, 1 - 0.05 ** (1 / 300)), (3, 3, 1.0)])
def test_bounds_that_can_be_written_down(damaged: int, made: int, bound: float):
    assert upper_bound(damaged, made) == pytest.approx(bound)


@given(st.integers(0, 60).flatmap(lambda k: st.tuples(st.just(k), st.integers(k + 1, 80))))
def test_at_the_bound_so_few_are_seen_in_one_of_twenty(case: tuple[int, int]):
    damaged, made = case
    share = upper_bound(damaged, made)
    seen = sum(comb(made, k) * share**k * (1 - share) ** (made - k) for k in range(damaged + 1))
    assert seen == pytest.approx(0.05, abs=1e-6)


def test_a_variant_without_planned_cuts_has_no_test():
    assert durability_of("v", (), planned=0) is None


def test_cuts_of_which_nothing_was_learned_count_neither_way():
    test = durability_of("v", [cut(1), cut(2, failure="the load could not start"), cut(3)], planned=4)
    assert test is not None
    assert (test.planned, test.made, test.failed, test.damaged, test.acknowledged) == (4, 2, 1, 0, 200)
    assert test.damaged_share_at_most == pytest.approx(1 - 0.05**0.5)
    assert test.gaps[0].reason == "the load could not start"
    assert "all of 200 acknowledged commits were there after 2 power cuts" in test.sentence


def test_what_was_lost_is_counted():
    test = durability_of("v", [cut(1, lost(7)), cut(2), cut(3, lost(5))], planned=3)
    assert test is not None
    assert (test.damaged, test.lost_commits, test.most_lost_commits, test.kinds) == (2, 12, 7, {"lost commit": 2})
    assert (test.recovery_median_s, test.recovery_max_s) == (2.0, 3.0)
    assert [example.number for example in test.examples] == [1, 3]


def test_cuts_are_counted_by_where_they_fell_and_what_was_lost():
    torn = cut(3, lost(1)).model_copy(update={"mode": "torn", "moment": "checkpoint"})
    test = durability_of("v", [cut(1), cut(2, lost(2)), torn, cut(4, failure="no load")], planned=4)
    assert test is not None
    assert [(one.moment, one.mode, one.made, one.damaged) for one in test.grid] == [
        ("load", "drop", 2, 1),
        ("checkpoint", "torn", 1, 1),
    ]


def test_the_recovery_point_is_the_worst_cut_that_lost_commits():
    cuts = [
        cut(1, lost(7)).model_copy(update={"lost_time_s": 0.64, "lost_wal_bytes": 4096}),
        cut(2, lost(2)).model_copy(update={"lost_time_s": 0.2, "lost_wal_bytes": 1_200_000}),
        cut(3).model_copy(update={"lost_wal_bytes": 9_000_000}),
    ]
    test = durability_of("v", cuts, planned=3)
    assert test is not None
    assert (test.most_lost_time_s, test.most_lost_wal_bytes) == (0.64, 1_200_000)
    assert test.sentence.endswith(
        "9 of 300 acknowledged commits were lost, up to 7 commits, 640 ms, 1.2 MB of WAL in one cut"
    )


def server(**settings: str) -> ServerFacts:
    return ServerFacts.model_construct(
        settings=tuple(
            Setting(name=name, asked=value, value=value, unit=None, source="configuration file")
            for name, value in settings.items()
        )
    )


@pytest.mark.parametrize(
    ("settings", "bound_s", "said"),
    [
        ({"synchronous_commit": "off"}, 0.6, "more than the bound of synchronous_commit = off, 3 x wal_writer_delay = 600 ms"),
        ({"synchronous_commit": "off", "wal_writer_delay": "300"}, 0.9, "within the bound of synchronous_commit = off"),
        ({"synchronous_commit": "on", "wal_writer_delay": "300"}, None, "in one cut"),
        ({}, None, "in one cut"),
    ],
)  # fmt: skip
def test_the_lost_time_is_shown_next_to_the_bound_of_asynchronous_commits(
    settings: dict[str, str], bound_s: float | None, said: str
):
    cuts = [cut(1, lost(7)).model_copy(update={"lost_time_s": 0.64})]
    test = durability_of("v", cuts, planned=1, server=server(**settings))
    assert test is not None
    assert test.lost_time_bound_s == (None if bound_s is None else pytest.approx(bound_s))
    assert said in test.sentence and ("bound" in test.sentence) == (bound_s is not None)


def test_the_bound_counts_recordings_not_their_images():
    images = [cut(n, recording=1 + n % 2, acknowledged=n) for n in range(2, 42)]
    test = durability_of("v", [cut(1), *images], planned=41)
    assert test is not None
    assert (test.made, test.images, test.independent, test.acknowledged) == (41, 40, 3, 100 + 40 + 41)
    assert test.damaged_share_at_most == pytest.approx(1 - 0.05 ** (1 / 3))
    made = "41 power cuts (1 live, 40 images of 2 recordings)"
    assert f"all of 181 acknowledged commits were there after {made}" in test.sentence


def test_a_recording_is_damaged_when_one_of_its_images_is():
    images = [cut(n, *([lost(n)] if n in (3, 4) else []), recording=1 + n % 2) for n in range(1, 11)]
    test = durability_of("v", images, planned=10)
    assert test is not None
    assert (test.damaged, test.lost_commits, test.most_lost_commits, test.damaged_share_at_most) == (2, 7, 4, 1.0)
    assert test.outcome == "damage in 2 of 10 images of 2 recordings"


def test_damage_counts_also_when_a_later_check_failed():
    test = durability_of("v", [cut(1, lost(7), failure="the server did not stop")], planned=1)
    assert test is not None
    assert (test.made, test.failed, test.damaged, test.gaps) == (1, 0, 1, ())


def test_what_was_not_checked_is_a_gap():
    test = durability_of("v", [cut(1, not_run="no amcheck"), cut(2, not_run="no amcheck")], planned=2)
    assert test is not None
    assert [(gap.what, gap.reason) for gap in test.not_checked] == [("verify_heapam, in 2 cuts", "no amcheck")]


@pytest.mark.parametrize("damage", [(), (lost(3),)])
def test_the_outcome_names_every_check_that_it_does_not_rest_on(damage: tuple[Damage, ...]):
    names = {"verify_heapam": "no amcheck", "bt_index_parent_check": "no amcheck", "pg_checksums": "no checksums"}
    checks = tuple(IntegrityCheck(name=name, not_run=reason) for name, reason in names.items())
    test = durability_of("v", [cut(1, *damage).model_copy(update={"checks": checks})], planned=1)
    assert test is not None
    assert test.sentence.endswith(
        "; not checked by verify_heapam, bt_index_parent_check, in 1 cut: no amcheck"
        "; not checked by pg_checksums, in 1 cut: no checksums"
    )


def test_cuts_of_which_nothing_was_learned_are_listed_by_their_reason():
    failed = [cut(number, failure="no space left") for number in range(1, 14)]
    test = durability_of("v", [*failed, cut(20, failure="no load")], planned=14)
    assert test is not None
    assert [(gap.what, gap.reason) for gap in test.gaps] == [
        ("cuts 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more", "no space left"),
        ("cut 20", "no load"),
    ]
    assert test.sentence == "Not tested: nothing was learned from 14 power cuts: no space left"


def test_what_was_found_to_lose_is_never_safe_regardless_of_its_facts():
    safety = with_test(KEEPS, durability_of("v", [cut(1, lost(1)), cut(2)], planned=2))
    assert safety.grade == "does not keep"
    assert safety.tested == "damage in 1 of 2 power cuts"
    assert safety.reasons[0].startswith("Tested") and KEEPS.reasons[0] not in safety.reasons


def test_cuts_that_find_nothing_do_not_make_safe_what_facts_speak_against():
    safety = with_test(VOLATILE, durability_of("v", [cut(1)], planned=1))
    assert (safety.grade, safety.tested) == ("does not keep", "damage in 0 of 1 power cut")


def test_without_a_checked_cut_the_judgement_is_unchanged():
    assert with_test(KEEPS, durability_of("v", [cut(1, failure="x")], planned=1)) == KEEPS
    assert with_test(KEEPS, None) == KEEPS


def found_in(damaged: int, of: int):
    test = durability_of("v", [cut(n, *([lost(1)] if n <= damaged else [])) for n in range(1, of + 1)], max(of, 1))
    assert test is not None
    return test


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ([(0, 8)], "None of 8 power cuts did damage."),
        ([(0, 8), (0, 1200)], "None of 1,208 power cuts did damage."),
        ([(3, 8)], "3 of 8 power cuts did damage to v0."),
        ([(3, 8), (0, 4)], "3 of 8 power cuts did damage to v0, none of 4 to v1."),
        ([(0, 4), (3, 8), (0, 4), (1, 2)], "3 of 8 power cuts did damage to v1, 1 of 2 to v3, none of 8 to the other 2 variants."),
        ([(1, 1)] * 5, "1 of 1 power cuts did damage to v0, 1 of 1 to v1, 1 of 1 to v2, others to 2 more variants."),
        ([(0, 0)], None),
        ([], None),
    ],
)  # fmt: skip
def test_the_sentence_names_what_was_damaged_and_counts_the_rest(counts, sentence):
    assert power_cut_sentence([(f"v{at}", found_in(*count)) for at, count in enumerate(counts)]) == sentence
