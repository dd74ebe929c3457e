"""Trials that are added to a plan: they follow those that are there, and each block of them is balanced."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plan_inputs import experiment, inputs, plan_of, scripts
from plinth.model.errors import UsageError
from plinth.plan import expand, extended, plan_more
from plinth.plan.order import more_trials, order_trials


@given(
    st.integers(1, 5),
    st.integers(1, 6),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.sampled_from(["random-blocks", "sequential"]),
    st.integers(0, 2**63 - 1),
)
def test_what_was_planned_stays_and_every_block_that_is_added_holds_every_variant_once(
    variant_count, repeats, additions, order, seed
):
    matrix = {"workload.clients": list(range(1, variant_count + 1))}
    e = experiment(matrix=matrix, measure={"repeats": repeats, "seed": seed, "order": order})
    variants, *_ = expand(e, scripts)
    planned = order_trials(variants, e.measure)
    trials = list(planned)
    for addition in additions:
        trials += more_trials(variants, e.measure, trials, addition)
    total = repeats + sum(additions)
    assert trials[: len(planned)] == planned
    assert [trial.number for trial in trials] == list(range(1, total * len(variants) + 1))
    for block in range(1, total + 1):
        inside = [trial for trial in trials if trial.block == block]
        assert Counter(trial.variant for trial in inside) == Counter(variant.id for variant in variants)
        assert len({trial.seed for trial in inside}) == 1
    assert len({trial.seed for trial in trials}) == total
    if order == "random-blocks":
        at_once = e.measure.model_copy(update={"repeats": total})
        assert trials == order_trials(variants, at_once)
    else:
        last = trials[-additions[-1] * len(variants) :]
        assert [trial.variant for trial in last] == [v.id for v in variants for _ in range(additions[-1])]


def more_of(plan, repeats):
    return extended(plan, plan_more(plan, repeats, inputs()), now_unix_ns=7)


def test_the_plan_is_of_all_trials_and_its_estimates_are_of_both_parts():
    plan = plan_of(experiment(measure={"repeats": 2}))
    longer = more_of(more_of(plan, 3), 1)
    assert longer.trials[: len(plan.trials)] == plan.trials
    assert longer.experiment.measure.repeats == 6
    assert [(one.repeats, one.first_trial, one.added_unix_ns) for one in longer.extensions] == [(3, 7, 7), (1, 16, 7)]
    at_once = plan_of(experiment(measure={"repeats": 6}))
    assert longer.trials == at_once.trials
    # Storages are made and data is loaded three times.
    assert longer.estimated_s > at_once.estimated_s > plan.estimated_s
    assert longer.estimated_written_bytes > at_once.estimated_written_bytes > plan.estimated_written_bytes
    assert (longer.variants, longer.clusters, longer.host) == (plan.variants, plan.clusters, plan.host)


def test_warnings_are_those_of_all_trials():
    plan = plan_of(experiment(measure={"repeats": 2, "aa": False, "max_written": "100GiB"}))
    assert [warning.split(":")[0] for warning in plan.warnings] == ["measure.repeats = 2", "measure.aa = false"]
    other = "matrix.x is left out"
    longer = more_of(plan.model_copy(update={"warnings": (*plan.warnings, other)}), 200)
    assert [warning.split(":")[0] for warning in longer.warnings] == [
        other,
        "measure.max_written = 100.0 GiB",
        "measure.aa = false",
    ]


@pytest.mark.parametrize("repeats", [0, -1, 999, 10**9])
def test_a_number_that_cannot_be_added_is_refused_with_those_that_can(repeats):
    plan = plan_of(experiment(measure={"repeats": 2}))
    with pytest.raises(UsageError, match="allowed: 1 to 998") as error:
        plan_more(plan, repeats, inputs())
    assert error.value.where == "--more"


def test_a_plan_of_as_many_trials_as_there_may_be_takes_no_more():
    plan = more_of(plan_of(experiment()), 995)
    with pytest.raises(UsageError, match="allowed: none"):
        plan_more(plan, 1, inputs())
