"""A file system that refuses to sync a directory, on which PostgreSQL does not run: who looks at it says so before."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from plinth.cli import main
from plinth.system.directory import sync_refusal
from refusing_filesystem import refusing

EXPERIMENT = """\
spec = 1
name = "refusing"
question = "Does PostgreSQL run there?"
[storage.disk]
kind = "directory"
path = "PLACE"
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
"""


@pytest.fixture
def place(scratch: Path) -> Iterator[Path]:
    path = scratch / "refusing"
    path.mkdir()
    with refusing(path):
        yield path


def test_a_file_system_that_syncs_directories_refuses_nothing(scratch: Path) -> None:
    assert sync_refusal(scratch) is None
    assert sync_refusal(Path("/proc")) is None, "EINVAL, which PostgreSQL takes for no failure"


def test_the_plan_names_it(place: Path, scratch: Path, state_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (scratch / "x.toml").write_text(EXPERIMENT.replace("PLACE", str(place)))
    assert main(["plan", str(scratch / "x.toml")]) == 5
    said = " ".join(capsys.readouterr().err.split())
    assert "PostgreSQL does not run there: the file system refuses to sync a directory (Input/output error)" in said


def test_the_doctor_names_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", str(place)])
    said = " ".join(capsys.readouterr().out.split())
    assert "its file system refuses to sync a directory (Input/output error): PostgreSQL does not run there" in said
