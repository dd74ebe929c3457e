"""The whole way of a disk that a run may destroy: plan, word, run, and the disk given back as it was."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from disks import MIB, WORD, Disk, digest, disk, in_private_mounts
from public_folder import PUBLIC

DISK_BYTES = 512 * MIB


@pytest.fixture
def drawer() -> Iterator[Path]:
    """Where the disk's image lies: not in the project's folder, where no loop device may be left."""
    with tempfile.TemporaryDirectory(prefix="plinth-test-", dir=PUBLIC) as path:
        yield Path(path)


def write_experiment(project, target: Disk, **changes: str) -> None:
    """Compares the disk with a directory."""
    fields = {"id": target.id, "serial": target.serial, "size": f"{DISK_BYTES // MIB}MiB"} | changes
    table = "\n".join(f'{name} = "{value}"' for name, value in fields.items())
    text = project.experiment.replace(
        '[storage.memory]\nkind = "tmpfs"\nsize = "1GiB"', f'[storage.nvme]\nkind = "device"\n{table}'
    )
    project.write(text.replace('"memory"', '"nvme"').replace("repeats = 2", "repeats = 1\naa = false"))


def test_a_plan_names_what_would_be_destroyed(project, drawer):
    def attempt() -> tuple[str, dict]:
        with disk(drawer, size_bytes=DISK_BYTES) as target:
            write_experiment(project, target)
            shown = project.plinth("plan", "x.toml", COLUMNS="300")
            saved = json.loads(project.plinth("plan", "x.toml", "--json").stdout)
            return shown.stdout, saved

    shown, plan = in_private_mounts(attempt)
    assert "Destroyed (only with --destroy on the command line" in shown
    assert f"--destroy {WORD}" in shown
    assert "blank and free" in shown
    assert "DESTROYS what is on /dev/disk/by-id/ata-disk_" in shown
    (target,) = plan["destructive_targets"]
    assert (target["storage"], target["word"], target["against"]) == ("nvme", WORD, [])
    assert [step["id"] for step in plan["steps"] if step["destroys"]] == ["storage.nvme.mkfs"]


def test_a_run_takes_the_disk_only_with_the_word_and_gives_it_back(project, nothing_left, drawer):
    def attempt() -> None:
        with disk(drawer, size_bytes=DISK_BYTES) as target:
            write_experiment(project, target)
            blank = digest(target.node)
            for words, code, said in (
                ((), 4, f"if it may go: --destroy {WORD}"),
                (("--destroy", "000000"), 2, "--destroy 000000 names no disk of this experiment"),
                (("--destroy", WORD, "--destroy", "000000"), 2, "names no disk"),
                (("--yes",), 4, f"if it may go: --destroy {WORD}"),
            ):
                refused = project.run(*words, PLINTH_DESTROY=WORD)
                assert refused.returncode == code, refused.stderr
                assert said in refused.stderr
                assert not project.bundle.exists()
                assert digest(target.node) == blank
                nothing_left()
            done = project.run("--destroy", WORD)
            assert done.returncode in (0, 3), done.stderr
            facts = json.loads((project.bundle / "env/storage-nvme.json").read_text())
            assert (facts["kind"], facts["filesystem"]) == ("device", "ext4")
            assert {trial["status"] for trial in project.trials()} == {"complete"}
            assert WORD not in (project.bundle / "experiment.toml").read_text().replace(target.serial, "").replace(
                str(target.id), ""
            )
            content = target.node.read_bytes()
            assert not any(content[:MIB] + content[-MIB:])
            nothing_left()

    in_private_mounts(attempt)


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"serial": "S4EVNF0M512346"}, "its serial number is"),
        pytest.param({"size": "600MiB"}, "not 600.0 MiB", marks=pytest.mark.long),
    ],
)
def test_another_disk_is_refused_though_its_word_is_given(project, nothing_left, drawer, changes, said):
    def attempt() -> None:
        with disk(drawer, size_bytes=DISK_BYTES) as target:
            write_experiment(project, target, **changes)
            blank = digest(target.node)
            word = changes.get("serial", target.serial)[-6:]
            shown = project.plinth("plan", "x.toml", COLUMNS="300")
            assert "REFUSED: " in shown.stdout
            refused = project.run("--destroy", word)
            assert refused.returncode == 4, refused.stderr
            assert said in refused.stderr
            assert digest(target.node) == blank
            nothing_left()

    in_private_mounts(attempt)


@pytest.mark.long
def test_a_resumed_run_asks_for_the_word_again(project, nothing_left, drawer):
    def attempt() -> None:
        with disk(drawer, size_bytes=DISK_BYTES) as target:
            write_experiment(project, target)
            cut = project.run("--destroy", WORD, "--set", "measure.max_written=30MB")
            assert cut.returncode == 4, cut.stderr
            assert "write budget" in cut.stderr
            refused = project.plinth("resume", project.bundle)
            assert refused.returncode == 4, refused.stderr
            assert f"--destroy {WORD}" in refused.stderr
            nothing_left()

    in_private_mounts(attempt)
