"""A disk whose daemon hangs keeps nobody waiting: not who makes a storage, looks at it, or undoes it."""

import fcntl
import json
import os
import signal
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulated_disks import daemon_pid
from making import from_toml
from plinth.experiment import read_experiment_text
from plinth.model.disk import Physics
from plinth.model.errors import ExperimentError, MissingCapability, RunError
from plinth.model.storage import DirectoryStorage
from plinth.run.hosts.agreement import Asked
from plinth.run.hosts.methods import METHODS
from plinth.run.local_host import HOST
from plinth.run.planning.make_plan import make_plan
from plinth.storage import Storage, hanging_places
from plinth.storage.inspect.describe import describe
from plinth.storage.kinds.emulated import Emulated
from plinth.storage.kinds.loop import Loop
from plinth.system.directory import LABEL_FILE
from storage_tables import emulated
from typed import of
from waiting import runs, wait_until

WITH_A_HANGING_PLACE = """\
spec = 1
name = "hangs"
question = "Does it answer?"
[storage.there]
kind = "directory"
path = "PLACE"
[server]
storage = "there"
settings = { shared_bufers = "1GB" }
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
[measure]
duration = "30s"
restore = "RESTORE"
repeats = 1
aa = false
[[measure.action]]
at = "10s"
do = "disk"
physics = { flush_latency = "50ms" }
"""
LOOP_ON_IT = '[storage.upper]\nkind = "loop"\nsize = "16MiB"\non = "s"\n'
_SHUT_DOWN = (0x8004587D, struct.pack("I", 2))
"""EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH: as when the journal can no longer be written."""
SLOW = {"write_latency": "300ms", "flush_latency": "1s", "channels": 1, "cache_size": "0B"}


@pytest.fixture(autouse=True)
def _short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plinth.system.daemon.ANSWER_TIMEOUT_S", 0.5)
    monkeypatch.setattr("plinth.system.undo._INTERVAL_S", 0.1)


@contextmanager
def stopped_once(happens: Callable[[], object], storage: Storage) -> Iterator[None]:
    """Stop the daemon of `storage` as soon as something `happens`, which it must."""

    def stop() -> None:
        wait_until(happens)
        os.kill(daemon_pid(of(Emulated, storage)), signal.SIGSTOP)

    with ThreadPoolExecutor() as pool:
        stopped = pool.submit(stop)
        yield
        stopped.result()


def slow_from_now_on(storage: Emulated) -> None:
    (control,) = storage.disks()
    control.set_physics(Physics.model_validate(SLOW))


def test_one_that_hangs_while_its_file_system_is_made_is_reported_with_the_step_and_undone(made) -> None:
    toml = emulated(further="".join(f"physics.{key} = {json.dumps(value)}\n" for key, value in SLOW.items()))
    storage = of(Emulated, from_toml(toml)["s"])
    with stopped_once(runs("mkfs.ext4", str(storage.folder)), storage), pytest.raises(RunError) as error:
        made.prepare(toml)
    assert error.value.message.startswith("storage s: make the file system ext4 on ")
    assert error.value.exit_code == 5
    assert "did not answer within 0.5 s and was ended" in error.value.details[-1]
    assert [entry.step.id for entry in made.journal.entries if ".s." in entry.step.id] == []


@pytest.mark.long
def test_one_that_hangs_beneath_a_storage_that_is_made_is_reported_by_that_one(made) -> None:
    made.prepare(emulated())
    upper = of(Loop, from_toml(LOOP_ON_IT + emulated())["upper"])
    slow_from_now_on(made.storages["s"])
    with (
        stopped_once(runs("mkfs.ext4", str(upper.folder)), made.storages["s"]),
        pytest.raises(RunError, match="storage upper: make the file system") as error,
    ):
        upper.prepare(made.runner, made.journal)
    assert f"the daemon of the emulated disk on {made.storages['s'].folder}/disk" in error.value.details[-1]
    assert [entry.step.id for entry in made.journal.entries if ".upper." in entry.step.id] == []


def test_looking_at_one_that_hangs_ends_in_time(made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plinth.system.timeout.ANSWER_TIMEOUT_S", 0.5)
    made.prepare(emulated())
    storage = made.storages["s"]
    os.kill(daemon_pid(of(Emulated, storage)), signal.SIGSTOP)
    with pytest.raises(MissingCapability, match="cannot look at the storage: no answer in time") as error:
        storage.facts(made.runner)
    assert error.value.exit_code == 5
    with pytest.raises(MissingCapability, match="no answer in time"):
        describe(storage.folder / "disk")
    on_it = DirectoryStorage(kind="directory", path=str(storage.folder / "disk"))
    (hanging,) = hanging_places({"d": on_it, "twice": on_it, "tree": DirectoryStorage(kind="directory", path="/")})
    assert hanging.message == "cannot make storage d in the directory: no answer in time"
    by_agent = METHODS["host"]["hanging_texts"]
    arguments = by_agent.arguments({"specs": {"d": on_it}})
    (there,) = by_agent.result(Asked(("host",), arguments), by_agent.call(HOST, arguments, lambda name: None))
    said = there.error("db1")
    assert said.where == f"host db1: {hanging.where}" and said.exit_code == 5
    made.undo()


@pytest.mark.long
@pytest.mark.parametrize("restore", ["auto", "snapshot"])
def test_a_directory_that_hangs_is_reported_with_all_else_that_is_wrong(
    restore: str, made, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plinth.system.timeout.ANSWER_TIMEOUT_S", 0.5)
    made.prepare(emulated())
    disk = made.storages["s"].folder / "disk"
    text = WITH_A_HANGING_PLACE.replace("PLACE", str(disk)).replace("RESTORE", restore)
    os.kill(daemon_pid(made.storages["s"]), signal.SIGSTOP)
    with pytest.raises(ExperimentError) as error:
        make_plan(read_experiment_text(text, "x.toml", scratch), run_id="x", bundle=scratch / "bundle")
    (hanging,) = error.value.others
    assert isinstance(hanging, MissingCapability) and "no answer in time" in hanging.message
    said = " ".join(map(str, error.value.problems))
    assert "shared_bufers" in said and "flush_latency" in said
    made.undo()


def test_one_that_hangs_while_it_is_unmounted_is_ended_and_everything_is_undone(made) -> None:
    made.prepare(emulated())
    storage = made.storages["s"]
    slow_from_now_on(storage)
    (storage.mount_point / "file").write_bytes(os.urandom(2**21))  # left to be written by umount
    with stopped_once(runs("umount", str(storage.mount_point)), storage):
        made.undo()


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_what_is_stored_on_a_failed_one_is_undone_with_it(made, how: signal.Signals) -> None:
    made.prepare(LOOP_ON_IT + emulated())
    os.kill(daemon_pid(made.storages["s"]), how)
    made.undo()


def test_what_is_stored_on_one_whose_labels_cannot_be_read_is_undone_with_it(made) -> None:
    made.prepare(LOOP_ON_IT + emulated())
    root = os.open(made.storages["s"].mount_point, os.O_RDONLY)
    fcntl.ioctl(root, *_SHUT_DOWN)
    os.close(root)
    with pytest.raises(OSError, match="Input/output error"):
        (made.storages["upper"].images.folder / LABEL_FILE).read_bytes()
    made.undo()
