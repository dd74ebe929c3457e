"""[full]: the published size of an experiment."""

from pathlib import Path

import pytest

from plinth.experiment import ParsedExperiment, read_experiment_text
from plinth.model.errors import ExperimentError

TEXT = """\
spec = 1
name = "x"
question = "?"

[storage.disk]
kind = "emulated"
profile = "sata-ssd"
size = "2GiB"

[dataset]
kind = "numbers"
rows = 1000

[workload]
builtin = "numbers-select"

[matrix]
workload.clients = [1, 4]

[measure]
duration = "2s"

[full]
dataset.rows = 10_000_000_000
workload.clients = [16, 980]
measure.duration = "5min"
storage.disk.size = "1TiB"
"""


def load(text: str, *overrides: str, full: bool) -> ParsedExperiment:
    return read_experiment_text(text, "x.toml", Path(), overrides, full)


def test_without_it_nothing_is_changed() -> None:
    loaded = load(TEXT, full=False)
    assert not loaded.full
    assert loaded.experiment.dataset.rows == 1000  # pyright: ignore[reportAttributeAccessIssue]
    assert loaded.experiment.matrix == {"workload.clients": [1, 4]}


def test_keys_and_levels_take_the_published_ones() -> None:
    loaded = load(TEXT, full=True)
    experiment = loaded.experiment
    assert loaded.full
    assert experiment.dataset.rows == 10**10  # pyright: ignore[reportAttributeAccessIssue]
    assert experiment.matrix == {"workload.clients": [16, 980]}
    assert experiment.measure.duration_s == 300
    assert experiment.storage["disk"].size_bytes == 2**40  # pyright: ignore[reportAttributeAccessIssue]


def test_set_is_the_last_word() -> None:
    assert load(TEXT, "measure.duration=1s", full=True).experiment.measure.duration_s == 1


def test_another_kind_resets_its_table() -> None:
    """In any order: another kind has other keys, which those of the old one would be errors among."""
    other = 'dataset.ids = 5_000_000\ndataset.kind = "upsert"\nworkload.builtin = "upsert"\nstorage.disk.kind = "directory"\n'
    text = TEXT.partition("dataset.rows = 10_")[0] + other
    dataset = load(text, full=True).experiment.dataset
    assert (dataset.kind, dataset.ids, dataset.rows) == ("upsert", 5_000_000, 1_000_000)  # pyright: ignore[reportAttributeAccessIssue]
    assert load(text, full=True).experiment.storage["disk"].model_dump(exclude_defaults=True) == {"kind": "directory"}
    assert load(text, full=False).experiment.dataset.kind == "numbers"


def test_a_key_below_a_value_is_an_error() -> None:
    with pytest.raises(ExperimentError) as caught:
        load(TEXT.replace("measure.duration = ", "question.why = "), full=True)
    assert "'question' is a value, not a table" in caught.value.problems[0].message


def test_what_the_published_size_makes_invalid_is_said_at_any_size() -> None:
    for full in (False, True):
        with pytest.raises(ExperimentError) as caught:
            load(TEXT.replace("980]", "0]"), full=full)
        assert any("level 0: got 0" in problem.message for problem in caught.value.problems)


def test_an_empty_table_is_an_error_and_not_overlooked() -> None:
    with pytest.raises(ExperimentError) as caught:
        load(TEXT.replace('storage.disk.size = "1TiB"', "storage.disk.physics = {}"), full=False)
    assert "got a table" in caught.value.problems[0].message


def test_an_unknown_key() -> None:
    with pytest.raises(ExperimentError) as caught:
        load(TEXT.replace("measure.duration = ", "measure.durration = "), full=False)
    (problem,) = caught.value.problems
    assert "measure.durration: unknown key 'durration'" in problem.message
    assert problem.key == "full"


def test_an_experiment_without_one_says_so() -> None:
    with pytest.raises(ExperimentError) as caught:
        load(TEXT.partition("[full]")[0], full=True)
    assert "no published size" in caught.value.problems[0].message


def test_a_storage_that_set_replaces_is_what_it_says_at_either_size() -> None:
    """What [full] says of the storage's size is of the one that it replaces."""
    for full in (False, True):
        loaded = load(TEXT, 'storage.disk={kind = "directory"}', full=full)
        assert loaded.experiment.storage["disk"].model_dump(exclude_defaults=True) == {"kind": "directory"}
        assert loaded.removed_factors == ()


def test_a_dataset_that_set_replaces_is_what_it_says_at_either_size() -> None:
    for full in (False, True):
        other = ('dataset={kind = "upsert", ids = 7, rows = 0}', "workload.builtin=upsert")
        dataset = load(TEXT, *other, full=full).experiment.dataset
        assert dataset.model_dump(exclude_defaults=True) == {"kind": "upsert", "ids": 7, "rows": 0}


@pytest.mark.parametrize(
    ("levels", "published"),
    [
        ([1, 4], [16, 980]),
        ([4], [980]),
        ([4, 1], [980, 16]),
        ([1, 2], [16, 2]),
        ([2, 8], [2, 8]),
        ([1, 2, 4], [16, 2, 980]),
    ],
)
def test_levels_that_set_leaves_keep_their_published_ones(levels: list[int], published: list[int]) -> None:
    """One that the file does not have represents itself only, however many there are."""
    loaded = load(TEXT, f"workload.clients={levels}", full=False).experiment
    assert (loaded.matrix["workload.clients"], loaded.full["workload.clients"]) == (levels, published)


def test_levels_left_at_the_published_size_are_published_ones() -> None:
    loaded = load(TEXT, "workload.clients=[980, 4]", full=True).experiment
    assert loaded.full["workload.clients"] == [980, 4]


def test_levels_that_do_not_correspond_in_the_file_do_not_for_being_as_many_by_set() -> None:
    text = TEXT.replace("clients = [1, 4]", "clients = [1, 4, 8]")
    assert load(text, "workload.clients=[1, 8]", full=False).experiment.full["workload.clients"] == [1, 8]
