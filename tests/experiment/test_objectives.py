"""[[objective]] in an experiment file: bounds with their units, and errors that teach."""

from pathlib import Path

import pytest

from plinth.experiment import read_experiment_text
from plinth.model.errors import ExperimentError
from ramdisk_experiment import ramdisk_text

HEAD = ramdisk_text(matrix='"workload.clients" = [1, 16]\n', rest="[[objective]]\n")
FIRST_LINE = HEAD.count("\n")
"""That of [[objective]]; its keys follow."""


def objective(keys: str):
    return read_experiment_text(HEAD + keys, "x.toml", Path()).experiment.objectives[0]


@pytest.mark.parametrize(
    ("keys", "bound", "requirement"),
    [
        ('metric = "latency_p99"\nmax = "20 ms"', 20_000_000, "p99 latency at most 20 ms"),
        ('metric = "tps"\nmin = 1000', 1000, "transactions per second at least 1,000"),
        ('metric = "written_per_transaction"\nmax = "8kB"', 8000, "bytes written per transaction at most 8kB"),
        ('metric = "wal_per_transaction"\nmax = 512', 512, "WAL per transaction at most 512"),
        ('metric = "commits"\nmin = "keeps"', "keeps", "acknowledged commits: keeps"),
    ],
)
def test_bounds_have_the_units_of_their_metric(keys: str, bound: object, requirement: str) -> None:
    found = objective(keys)
    assert (found.bound, found.requirement) == (bound, requirement)


def test_a_saved_objective_is_read_again() -> None:
    found = objective('metric = "tps"\nmin = 10\nwhere = { storage = ["disk"], "workload.clients" = 16 }')
    assert type(found).model_validate_json(found.model_dump_json()) == found
    assert found.applies_to({"storage": "disk", "workload.clients": 16})
    assert not found.applies_to({"storage": "disk", "workload.clients": 1})


@pytest.mark.parametrize(
    ("keys", "line", "said"),
    [
        ('metric = "p99"\nmax = "20ms"', 1, "latency_p99, written_per_transaction"),
        ('metric = "latency_p99"\nmax = "20 parsecs"', 2, "unknown unit 'parsecs'; allowed: ns, us, ms, s"),
        ('metric = "latency_p99"\nmax = 20', 2, 'a latency with its unit, such as "20ms"'),
        ('metric = "tps"\nmin = "many"', 2, "a number that is not negative"),
        ('metric = "tps"\nmin = true', 2, "a number that is not negative"),
        ('metric = "tps"\nmin = nan', 2, "a number that is not negative"),
        ('metric = "tps"', 0, "exactly one of max and min"),
        ('metric = "tps"\nmax = 1\nmin = 1', 0, "exactly one of max and min"),
        ('metric = "commits"\nmin = "unknown"', 2, "allowed: keeps, may lose recent commits, does not keep"),
        ('metric = "commits"\nmax = "keeps"', 0, 'min = "keeps"'),
        ('metric = "cost_per_million_transactions"\nmax = 1', 0, "price_per_hour is missing"),
        ('metric = "tps"\nmin = 1\nprice_per_hour = 1', 0, "of cost_per_million_transactions only"),
        ('metric = "tps"\nmin = 1\nwhere = { storage = "dsk" }', 3, "got 'dsk'; allowed: 'disk', 'memory'"),
        (
            'metric = "tps"\nmin = 1\nwhere = { clients = 1 }',
            3,
            "'clients' is not a factor; allowed: storage, workload.clients",
        ),
        (
            'metric = "cost_per_million_transactions"\nmax = 1\nprice_per_hour = { dsk = 1 }',
            3,
            "storage 'dsk' is not one of: disk, memory",
        ),
    ],
)
def test_errors_name_the_line_and_what_is_allowed(keys: str, line: int, said: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        objective(keys)
    (problem,) = caught.value.problems
    assert said in problem.message
    assert problem.where == f"x.toml:{FIRST_LINE + line}"
