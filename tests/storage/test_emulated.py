"""Emulated disks under a file system: made, read back, and what happens when their daemon dies, hangs, or gives EIO."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from emulated_disks import daemon_pid
from making import from_toml, node_facts, write_as_owner
from plinth.model.disk import EioFault
from plinth.model.errors import RunError, UsageError
from plinth.run.undo import UNDO_HANDLERS
from plinth.storage.devices.disk_daemon import serve_command
from plinth.storage.kinds.emulated import Emulated
from plinth.system.clean import clean
from plinth.system.journal import Journal
from plinth.system.mounts import mount_of
from plinth.system.process import started_ticks
from plinth.system.runner import CommandRecord, Runner
from storage_tables import MEMORY, emulated
from typed import of, present
from waiting import wait_until


def test_it_is_served_as_planned_and_the_stack_goes_through_it(made) -> None:
    commands: list[CommandRecord] = []
    made.runner = Runner(commands.append)
    facts = made.prepare(emulated("hdd-10k-sas", 'physics = { flush_latency = "1ms" }\nseed = 7'))["s"]
    storage = made.storages["s"]
    planned = [step.argv for each in made.storages.values() for step in each.steps() if step.argv]
    assert [command.argv for command in commands if command.argv in planned] == planned
    assert serve_command(storage.configs[0]) in planned

    kinds = [node.kind for node in facts.stack]
    assert kinds == [
        *("mount", "filesystem", "loop", "mount", "filesystem", "emulated disk"),
        *("mount", "filesystem", "memory"),
    ]
    found = node_facts(facts, "emulated disk")
    assert (found["seed"], found["flush_latency_ns"], found["rpm"], found["lie"]) == (7, 1_000_000, 10_000, None)
    assert found["backing_file"] == str(storage.images.paths[0])
    assert facts.volatile_reason == f"tmpfs on {made.storages['memory'].mount_point} keeps its files in memory"
    assert mount_of(storage.folder / "disk").source == "plinth-t1"
    write_as_owner(storage.mount_point)
    assert storage.failure() is None
    pid = daemon_pid(storage)
    made.undo()
    wait_until(lambda: started_ticks(pid) is None or Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z")


def test_a_disk_that_lies_is_volatile_wherever_it_is_stored(made, scratch: Path) -> None:
    place = scratch / "place"
    place.mkdir()
    text = emulated(further='lie = "ignore-flush"').replace('on = "memory"', f'path = "{place}"')
    facts = made.prepare(text)["s"]
    assert facts.volatile
    assert "the emulated disk ideal lies about flushes (ignore-flush)" in (facts.volatile_reason or "")
    honest = text.replace('lie = "ignore-flush"', "").replace("[storage.s]", "[storage.h]").replace(MEMORY, "")
    made.undo()
    assert made.prepare(honest)["h"].volatile_reason is None


def test_disks_that_are_alike_have_seeds_of_their_own_and_are_members(made) -> None:
    facts = made.prepare(
        '[storage.pair]\nkind = "btrfs"\nmembers = ["s"]\ndata_profile = "raid1"\n'
        + emulated(further="count = 2").replace("64MiB", "128MiB")
    )
    assert [control.status().seed for control in made.storages["s"].disks()] == [1, 2]
    kinds = [node.kind for node in facts["pair"].stack]
    assert kinds.count("emulated disk") == kinds.count("loop") == 2
    written = [control.status().counters["bytes_written"] for control in made.storages["s"].disks()]
    (made.storages["pair"].mount_point / "file").write_bytes(os.urandom(2**22))
    os.sync()
    now = [control.status().counters["bytes_written"] for control in made.storages["s"].disks()]
    assert all(after - before > 2**22 for before, after in zip(written, now, strict=True)), "both have a copy"


def test_a_daemon_that_died_is_reported_and_everything_is_undone(made) -> None:
    made.prepare(emulated())
    storage = made.storages["s"]
    os.kill(daemon_pid(storage), signal.SIGKILL)
    wait_until(lambda: storage.failure() is not None)
    assert "the daemon of the emulated disk of storage s has died" in storage.failure()
    made.undo()


def test_a_daemon_that_hangs_is_reported_and_everything_is_undone_in_time(made, monkeypatch) -> None:
    monkeypatch.setattr("plinth.storage.kinds.emulated.ANSWER_TIMEOUT_S", 0.2)
    monkeypatch.setattr("plinth.system.daemon.ANSWER_TIMEOUT_S", 0.2)
    made.prepare(emulated())
    storage = made.storages["s"]
    pid = daemon_pid(storage)
    os.kill(pid, signal.SIGSTOP)
    # Another process waits for the disk, for as long as it hangs.
    waiting = subprocess.Popen(["dd", "if=/dev/urandom", f"of={storage.mount_point}/file", "bs=1M", "count=4", "conv=fsync"],
                               stderr=subprocess.PIPE)  # fmt: skip
    assert f"(pid {pid}) does not answer" in storage.failure()
    storage.force_detach(made.runner)
    _, said = waiting.communicate(timeout=60)
    assert waiting.returncode != 0
    assert b"error" in said
    made.undo()


def test_a_hanging_daemon_keeps_nobody_from_cleaning_up(made, monkeypatch, in_child) -> None:
    monkeypatch.setattr("plinth.system.daemon.ANSWER_TIMEOUT_S", 0.2)

    def die() -> None:
        storages = from_toml(emulated())
        journal = Journal.create("dies", UNDO_HANDLERS)
        for storage in storages.values():
            storage.prepare(Runner(), journal)
        os.kill(daemon_pid(of(Emulated, storages["s"])), signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(die).signal == signal.SIGKILL
    started = time.monotonic()
    error = clean(UNDO_HANDLERS, "dies").error()
    assert error is None, error.details
    assert time.monotonic() - started < 20


def test_eio_in_the_middle_of_making_it_names_the_step_and_undoes_it(made) -> None:
    with pytest.raises(RunError, match=r"storage s: make the file system ext4 on .*: mkfs.ext4 failed") as error:
        made.prepare(emulated(further='faults = ["write,nth=1,count=all"]'))
    assert error.value.exit_code == 1
    assert present(error.value.where).startswith("mkfs.ext4 -q -L")
    assert any("I/O error" in line or "Input/output error" in line for line in error.value.details), error.value.details
    assert [entry.step.id for entry in made.journal.entries if ".s." in entry.step.id] == []


def test_eio_later_is_reported_by_the_file_system_and_everything_is_undone(made) -> None:
    made.prepare(emulated())
    storage = made.storages["s"]
    (control,) = storage.disks()
    control.arm(EioFault(operation="write", count=None))
    with pytest.raises(OSError, match="Input/output error"):
        with (storage.mount_point / "file").open("wb") as file:
            file.write(os.urandom(2**20))
            os.fsync(file.fileno())
    assert control.status().faults[0].fired > 0
    made.undo()


def test_how_fast_it_will_be_is_known_beforehand_also_of_what_is_stored_on_it(state_dir: Path) -> None:
    upper = '[storage.upper]\nkind = "loop"\nsize = "16MiB"\non = "s"\n'
    usual = present(from_toml(emulated("hdd-10k-sas"))["s"].pace())
    storages = from_toml(
        upper + emulated("hdd-10k-sas", 'physics = { flush_latency = "1.05ms", write_bandwidth = "5MB/s" }')
    )
    changed = present(storages["s"].pace())
    assert 0.005 < usual.flush_s < 0.007
    assert changed.flush_s == pytest.approx(usual.flush_s + 0.001)
    assert (usual.write_bytes_per_s, changed.write_bytes_per_s) == (113e6, 5e6)
    assert storages["upper"].pace() == changed
    assert storages["memory"].pace() is None


def test_a_profile_that_is_unknown_is_reported_before_anything_is_made(made) -> None:
    with pytest.raises(UsageError, match="hdd-9000") as error:
        made.prepare(emulated("hdd-9000"))
    assert error.value.exit_code == 2
    assert error.value.where == "storage.s.profile"
    assert "hdd-7200" in error.value.message
    assert [entry.step.id for entry in made.journal.entries if ".s." in entry.step.id] == []


def test_a_socket_path_that_is_too_long_is_reported_before_anything_is_made(made, scratch: Path, monkeypatch) -> None:
    monkeypatch.setenv("PLINTH_STATE_DIR", str(scratch / ("long" * 20)))
    with pytest.raises(UsageError, match=r"the path of the socket has \d+ bytes; a Unix socket's path has at most 107"):
        made.prepare('[storage.s]\nkind = "emulated"\nprofile = "ideal"\nsize = "64MiB"\n')


def test_a_file_system_that_cannot_be_made_next_to_a_disk_that_has_died_names_its_mount(made) -> None:
    """mkfs.btrfs asks for the images of all mounted loop devices, and fails at one that nobody serves."""
    made.prepare(emulated())
    died = made.storages["s"]
    os.kill(daemon_pid(died), signal.SIGKILL)
    wait_until(lambda: died.failure() is not None)
    with pytest.raises(RunError) as caught:
        made.prepare('[storage.b]\nkind = "loop"\nsize = "128MiB"\nfilesystem = "btrfs"\n')
    assert f"umount {died.mount_point}" in (caught.value.hint or "")
    assert "plinth clean" in (caught.value.hint or "")
    assert caught.value.exit_code == 1, "no program is missing"
    made.undo()
