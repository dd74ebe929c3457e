"""A key that is given twice, or once as a value and once as a table: named with both of its lines, and a hint that works."""

import tomllib

import pytest

from plinth.experiment import read_experiment_text
from plinth.experiment.clashes import clash_at
from plinth.model.errors import ExperimentError
from ramdisk_experiment import ramdisk_text
from typed import present

CASES = [
    # text, the line of the second, the key, the line of the first
    ("a = 1\na = 2\n", 2, "'a'", 1),
    ("\n[m]\n# a comment\nrepeats = 1\nx = 3\nrepeats = 4\n", 6, "'m.repeats'", 4),
    ("a = [\n1,\n2]\na = [\n1]\n", 4, "'a'", 1),
    ("[a]\nx = 1\n[a]\ny = 2\n", 3, "[a]", 1),
    ("[[o]]\nx = 1\n[[o]]\ny = 1\nx = 1\nx = 2\n", 6, "'o.1.x'", 5),
    ("[server]\nsettings.x = 1\n[server.settings]\ny = 1\n", 3, "[server.settings]", 2),
    ("[a]\nb = 1\n[a.b]\nc = 1\n", 3, "'a.b' is a table here", 2),
    ("a.b = 1\na = 2\n", 2, "'a' is a value here", 1),
    ("[matrix]\nstorage = ['a']\nstorage.slow.p = [1]\n", 3, "'matrix.storage' is a table here", 2),
    ("[matrix]\nstorage.slow.p = [1]\nstorage = ['a']\n", 3, "'matrix.storage' is a value here", 2),
]


@pytest.mark.parametrize(("text", "second", "key", "first"), CASES, ids=[row[0] for row in CASES])
def test_both_lines_are_named(text, second, key, first):
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(text)
    clash = clash_at(text, second)
    assert clash is not None
    assert key in clash.message
    assert f"line {first}" in clash.message


def test_only_of_the_matrix_the_hint_is_to_quote():
    hints = {key: present(clash_at(text, second)).hint for text, second, key, _ in CASES}
    assert [key for key, hint in hints.items() if "quote" in hint] == [
        "'matrix.storage' is a table here",
        "'matrix.storage' is a value here",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("scale = 3", "scale = 3\nscale = 4"), "the key 'dataset.scale' is given twice, first in line 13"),
        (("scale = 3", "load_settings = {fsync = true, fsync = false}"), "the key 'fsync' is twice in one table"),
        (("scale = 3", "load_settings = {fsync = true}\nload_settings.jit = true"), "not valid TOML"),
    ],
)
def test_a_file_with_a_key_twice(change, said):
    with pytest.raises(ExperimentError) as caught:
        read_experiment_text(ramdisk_text().replace(*change), "x.toml", None)  # type: ignore[arg-type]  # it is not looked into
    (problem,) = caught.value.problems
    assert said in problem.message
    assert problem.where in ("x.toml:13", "x.toml:14")
    assert "needs quotes" not in present(problem.hint)
