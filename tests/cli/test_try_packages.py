"""What `make try` says where it may not install what its experiment measures with. That it installs it: scripts/test-try.sh."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH with what the script itself calls, and no package manager."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "env", "dirname", "id"):
        (folder / name).symlink_to(shutil.which(name) or "")
    return folder


def try_packages(path: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([SCRIPTS / "try-deps.sh"], env={"PATH": str(path)}, capture_output=True, text=True)


def test_without_it_the_run_goes_on_and_the_command_that_gets_it_is_named(programs: Path) -> None:
    done = try_packages(programs)
    assert done.returncode == 0
    assert "sudo apt-get install --no-install-recommends fio" in done.stderr


def test_where_it_is_there_nothing_is_said(programs: Path) -> None:
    (programs / "fio").symlink_to(shutil.which("fio") or "")
    done = try_packages(programs)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_program_of_the_experiment_is_among_them() -> None:
    """An experiment with another kind of storage, or another probe, would need more."""
    from plinth.experiment import read_experiment

    experiment = read_experiment(SCRIPTS.parent / "experiments" / "ramdisk.toml").experiment
    assert {storage.kind for storage in experiment.storage.values()} == {"directory", "tmpfs"}
    assert experiment.measure.probe_io, "else fio is not needed"
