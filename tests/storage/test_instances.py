"""Volumes that share the limits of an instance: the file that they share, and limits that do not agree."""

from pathlib import Path

import pytest

from plinth.experiment import read_experiment_text
from plinth.model.errors import ExperimentError
from ramdisk_experiment import ramdisk_text
from storage_tables import emulated

INSTANCE = 'instance = {{ name = "vm", iops = {iops} }}\n'


def test_what_volumes_share_is_made_with_the_first_and_goes_with_the_run(made) -> None:
    made.prepare(emulated(further=INSTANCE.format(iops=1000)))
    storage = made.storages["s"]
    (config,) = storage.configs
    shared = Path(config.instance.file)
    assert shared.parent == storage.work_root and shared.stat().st_mode & 0o777 == 0o600
    (storage.mount_point / "file").write_bytes(b"x" * 2**20)
    made.undo()
    assert not shared.exists()


@pytest.mark.parametrize(
    ("instance", "said"),
    [
        (INSTANCE.format(iops=2000), "has other limits here than of storage 'a'"),
        ('instance = { name = "vm" }\n', "limits nothing"),
        ('instance = { name = "vm", iops = 0 }\n', "greater than or equal to 1"),
        ('instance = { name = "vm", iops = 1, credits = 1 }\n', "credits"),
    ],
)
def test_limits_that_make_no_sense_are_refused(instance: str, said: str) -> None:
    volume = '[storage.{name}]\nkind = "emulated"\nprofile = "gp3"\nsize = "1GiB"\n'
    text = ramdisk_text(rest=volume.format(name="a") + INSTANCE.format(iops=1000) + volume.format(name="b") + instance)
    with pytest.raises(ExperimentError) as error:
        read_experiment_text(text, "x.toml", Path())
    assert any(said in problem.message for problem in error.value.problems), error.value.problems
