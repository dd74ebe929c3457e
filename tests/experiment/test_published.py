"""Published results as files: those that Plinth brings along, and one's own."""

from pathlib import Path

import pytest

from plinth.experiment import packaged_references, read_experiment_text, read_reference
from plinth.model.choices import IO_SHAPES
from plinth.model.errors import ExperimentError, Problem
from plinth.model.published import PublishedIo
from plinth.probe.io_jobs import shapes

OWN = """\
spec = 1
title = "Mine"
source = "Myself"
date = "2024-05-01"
machine = "A machine"
conditions = "Some"

[[figure]]
levels = { storage = "disk", "server.settings.fsync" = false }
tps = 100
latency_mean = "2.5ms"

[[ratio]]
what = "fsync off"
levels = { "server.settings.fsync" = false }
to = { "server.settings.fsync" = true }
low = 2
high = 3
"""
EXPERIMENT = """\
spec = 1
name = "x"
question = "?"
reference = "{reference}"
storage.disk.kind = "directory"
dataset.kind = "none"
workload.builtin = "select-only"
"""


def test_all_five_studies_are_there() -> None:
    assert sorted({name[:2] for name in packaged_references()}) == ["s1", "s2", "s3", "s4", "s5"]


@pytest.mark.parametrize("name", packaged_references())
def test_what_plinth_brings_along_is_valid(name: str) -> None:
    reference = read_reference(name, Path())
    assert reference.date in reference.source
    assert reference.figure or reference.ratio


def test_a_published_figure_is_as_in_the_study() -> None:
    figures = {str(figure.levels["storage"]): figure for figure in read_reference("s3-zfs-slog", Path()).figure}
    assert (figures["zfs"].tps, figures["zfs"].latency_mean_ns) == (4062, 3_930_000)
    assert figures["loop-on-ssd"].tps / figures["ssd"].tps == pytest.approx(0.722, abs=0.001)


def test_a_file_next_to_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(OWN)
    loaded = read_experiment_text(EXPERIMENT.format(reference="mine.toml"), "x.toml", tmp_path)
    assert loaded.reference is not None
    (figure,) = loaded.reference.figure
    assert figure.levels == {"storage": "disk", "server.settings.fsync": False}
    assert figure.latency_mean_ns == 2_500_000


def test_an_unknown_name_is_placed_at_its_line_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError) as caught:
        read_experiment_text(EXPERIMENT.format(reference="s3-zfs-slg"), "x.toml", tmp_path)
    (problem,) = caught.value.problems
    assert (problem.where, problem.key) == ("x.toml:4", "reference")
    assert "'s3-zfs-slog'" in (problem.hint or "")


WRONG = [
    ('date = "2024-05-01"', 'date = "lately"', "date"),
    ("tps = 100", "tps = 0", "mine.toml:10: figure.0.tps: got 0; must be greater than or equal to 0.000001"),
    ("tps = 100", "tps = inf", "tps: got inf; must be less than or equal to 1000000000"),
    ("low = 2", "low = inf", "low: got inf; must be a finite number"),
    ("[[figure]]", "fact = 3\n[[figure]]", "fact: got 3; must be a list"),
    ("tps = 100", "tsp = 100", "unknown key 'tsp'; allowed: latency_mean"),
    ('"2.5ms"', '"2.5 eons"', "unknown unit 'eons'"),
    ("high = 3", "high = 1", "high: got 1, which is less than low, 2"),
    ("fsync = true", "fsync = false", "to: the same as levels"),
    ('storage = "disk"', 'storge = "disk"', "storge cannot be a factor"),
    ("spec = 1", "spec = 2", "spec: got 2; allowed: 1"),
    ("[[ratio]]", '[[figure]]\nlevels = { storage = "disk", "server.settings.fsync" = false }\ntps = 1\n[[ratio]]', "two have"),
    ("[[ratio]]", "[[ratio]", "not valid TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "message"), WRONG, ids=[row[1][:30] for row in WRONG])
def test_what_is_wrong_is_said(before: str, after: str, message: str, tmp_path: Path) -> None:
    text = OWN.replace(before, after, 1) if "fsync = " not in before else OWN.replace('"server.settings.fsync" = true', '"server.settings.fsync" = false')  # fmt: skip
    assert text != OWN
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(Problem, match=message.replace("(", r"\(")):
        read_reference("mine.toml", tmp_path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="cannot read the reference"):
        read_reference("mine.toml", tmp_path)


@pytest.mark.parametrize("name", packaged_references())
def test_what_the_io_probe_is_to_measure_of_a_study_is_a_job_of_its(name: str) -> None:
    jobs = {job.name: job.parameters["rw"] for job in shapes(1, IO_SHAPES)}
    for fact in read_reference(name, Path()).fact:
        if isinstance(by := fact.measured_by, PublishedIo):
            assert by.job in jobs, fact.what
            assert by.side in jobs[by.job] or jobs[by.job] in ("rw", "randrw"), fact.what
