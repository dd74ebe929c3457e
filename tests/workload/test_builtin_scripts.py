"""What built-in scripts say: how they choose rows, and what they are made for."""

from typing import get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from plinth.model.builtin import BUILTINS, BuiltinName
from plinth.model.dataset import DatasetSpec
from plinth.model.errors import Problem, UsageError
from plinth.model.experiment import MeasureSpec
from plinth.model.load_config import AccountMix, CompiledTransaction, Keys
from plinth.model.plan import ScriptText
from plinth.model.workload import WorkloadSpec
from plinth.run.trial.load_config import check_load
from plinth.workload import check_scripts, check_working_set, dataset_of, scripts_of
from plinth.workload.builtins import builtin_of

DATASETS: TypeAdapter[DatasetSpec] = TypeAdapter(DatasetSpec)


def source(dataset="numbers", **workload):
    (script,) = scripts_of(WorkloadSpec.model_validate(workload), dataset, {})
    assert isinstance(script, ScriptText)
    return script.source


def test_numbers_are_selected_by_key():
    assert source(builtin="numbers-select") == (
        "\\set number random(1, :rows)\nSELECT operator, region FROM numbers WHERE number = :number;\n"
    )


def test_several_statements_are_one_transaction_each_with_a_row_of_its_own():
    lines = source(builtin="numbers-update", statements=3).splitlines()
    assert (lines[0], lines[-1]) == ("BEGIN;", "END;")
    assert lines.count("\\set number random(1, :rows)") == 3
    assert sum(line.startswith("UPDATE numbers") for line in lines) == 3


@pytest.mark.parametrize(
    ("keys", "draw"),
    [
        ({"keys": "gaussian"}, "random_gaussian(1, :rows, 10.0)"),
        ({"keys": "gaussian", "keys_parameter": 2.5}, "random_gaussian(1, :rows, 2.5)"),
        ({"keys": "zipfian"}, "random_zipfian(1, :rows, 1.1)"),
        ({"keys": "exponential", "active_rows": 5}, "random_exponential(1, 5, 10.0)"),
        ({"active_rows": 1000}, "random(1, 1000)"),
    ],
)
def test_keys_are_drawn_as_asked(keys, draw):
    assert source(builtin="numbers-select", **keys).splitlines()[0] == f"\\set number {draw}"


def test_pgbenchs_scripts_choose_their_account_and_are_else_as_they_were():
    as_ever = source("tpcb", builtin="tpcb-like").splitlines()
    active = source("tpcb", builtin="tpcb-like", keys="gaussian", active_rows=10**9).splitlines()
    assert as_ever[0] == "\\set aid random(1, 100000 * :scale)"
    assert active[0] == "\\set aid random_gaussian(1, 1000000000, 10.0)"
    assert active[1:] == as_ever[1:]


@pytest.mark.parametrize("builtin", BUILTINS)
def test_the_engine_takes_every_builtin_with_the_variables_of_its_dataset(builtin):
    dataset = DATASETS.validate_python({"kind": BUILTINS[builtin].dataset})
    spec = WorkloadSpec.model_validate({"builtin": builtin})
    scripts, variables = scripts_of(spec, dataset.kind, {}), dataset_of(dataset).variables()
    check_scripts(spec, scripts, variables)
    check_load(spec, scripts, MeasureSpec(), variables)


def test_a_builtin_may_be_several_transactions_that_are_compiled_in():
    spec = WorkloadSpec.model_validate({"builtin": "account-mix", "keys": "zipfian", "active_rows": 500})
    native = AccountMix(keys=Keys(distribution="zipfian", parameter=1.1, active_rows=500))
    assert scripts_of(spec, "tpcb", {}) == (
        CompiledTransaction(name="lookup", native=native, weight=9),
        CompiledTransaction(name="transfer", native=native, weight=1),
    )


def test_what_a_compiled_workload_cannot_do_is_reported_before_anything_is_made():
    for change, words in (
        ({"protocol": "simple"}, "protocol: got simple"),
        ({"active_rows": 1}, "at least 2 are needed"),
        ({"driver": "psycopg"}, "account-mix is compiled into the load engine"),
    ):
        spec = WorkloadSpec.model_validate({"builtin": "account-mix"} | change)
        with pytest.raises(UsageError, match=words):
            check_load(spec, scripts_of(spec, "tpcb", {}), MeasureSpec(), {"scale": "1"})


def test_a_ledger_needs_a_transaction_block_in_every_script():
    spec = WorkloadSpec.model_validate({"builtin": "numbers-update", "ledger": True})
    variables = {"rows": "9", "operators": "9", "regions": "9"}
    with pytest.raises(UsageError, match="no transaction block") as caught:
        check_load(spec, scripts_of(spec, "numbers", {}), MeasureSpec(), variables)
    assert caught.value.where == "numbers-update:1:1"
    several = spec.model_copy(update={"statements": 2})
    check_load(several, scripts_of(several, "numbers", {}), MeasureSpec(), variables)


def test_a_builtin_needs_its_dataset():
    with pytest.raises(Problem) as caught:
        source("tpcb", builtin="numbers-select")
    assert caught.value.key == "workload.builtin"
    assert "'numbers-select' works on dataset numbers, not on tpcb" in caught.value.message
    assert "tpcb-like" in (caught.value.hint or "")
    assert source("none", builtin="select-only")  # tables of pgbench that are there


def test_a_working_set_larger_than_the_dataset_is_an_error():
    spec = WorkloadSpec.model_validate({"builtin": "numbers-select", "active_rows": 101})
    check_working_set(spec, {"rows": "101"})
    with pytest.raises(Problem, match="got 101; the dataset has 100 rows"):
        check_working_set(spec, {"rows": "100"})


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ({"script": "x.sql", "keys": "zipfian"}, "keys: of built-in scripts only"),
        ({"script": "x.sql", "statements": 2}, "statements: of built-in scripts only"),
        ({"builtin": "tpcb-like", "statements": 2}, "only 1 is allowed"),
        ({"builtin": "select-only", "ledger": True}, "select-only writes nothing"),
        ({"builtin": "account-mix", "ledger": True}, "account-mix is compiled in"),
        ({"builtin": "ledger", "active_rows": 9}, "active_rows: the workload ledger inserts rows"),
        ({"builtin": "tpcb-like", "ledger": True, "driver": "psycopg"}, "ledger: of driver plinth only"),
        ({"builtin": "select-only", "keys_parameter": 2.0}, "not with uniform"),
        ({"builtin": "select-only", "keys": "gaussian", "keys_parameter": 1.5}, "gaussian takes 2 or more"),
        ({"builtin": "select-only", "keys": "zipfian", "keys_parameter": 1.0}, "zipfian takes 1.001 to 1000"),
        ({"builtin": "select-only", "keys": "exponential", "keys_parameter": 0.0}, "exponential takes above 0"),
    ],
)
def test_choices_that_make_no_sense(workload, words):
    with pytest.raises(ValidationError, match=words):
        WorkloadSpec.model_validate(workload)


def test_each_name_has_its_traits_and_its_transactions():
    assert list(BUILTINS) == list(get_args(BuiltinName))
    for name in BUILTINS:
        assert builtin_of(name)
