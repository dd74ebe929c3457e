"""What a run made in another namespace is not taken for gone: it is kept, with the process that still sees it, or undone there."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from command_line import plinth
from disks import MIB, loop_device
from plinth.model.errors import Refused
from plinth.model.step import Step, Undo
from plinth.run.undo import UNDO_HANDLERS
from plinth.storage.filesystem import unmount_filesystem
from plinth.system.clean import CleanOptions, clean, left_behind
from plinth.system.journal import Journal, journal_path
from plinth.system.mounts import read_mounts
from plinth.system.namespaces import member_of, own_namespaces
from plinth.system.paths import ensure, work_dir
from plinth.system.process import ProcessMark
from plinth.system.runner import Runner
from plinth.system.undo import undo
from waiting import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make namespaces")

_RUN = """\
import subprocess, sys
from pathlib import Path
from plinth.model.step import Step, Undo
from plinth.run.undo import UNDO_HANDLERS
from plinth.system.directory import make_directory
from plinth.system.journal import Journal
from plinth.system.owner import current_user
from plinth.system.paths import ensure, work_dir

journal = Journal.create("elsewhere", UNDO_HANDLERS)
point = ensure(work_dir()) / "plinth-elsewhere-memory"
for kind in ("remove_directory", "unmount"):
    undo = Undo(kind=kind, path=str(point), label=journal.label)
    journal.record(Step(id=f"storage.memory.{kind}", title=kind, undo=undo))
    if kind == "remove_directory":
        make_directory(point, journal.label, current_user())
    else:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", journal.label, str(point)], check=True)
holder = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)
print("made", flush=True)
sys.stdin.read()
"""
NAMESPACES = {
    "mnt": ("--mount", "--propagation", "private"),
    "pid": ("--pid", "--fork"),
    "ipc": ("--ipc",),
    "cgroup": ("--cgroup",),
}


@contextmanager
def killed_run(*options: str) -> Iterator[None]:
    """A run in namespaces of its own that was killed; a process that it had started goes on there until the context ends."""
    script = [sys.executable, "-c", _RUN]
    with subprocess.Popen(
        ["unshare", *options, *script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as run:
        try:
            assert run.stdout is not None and run.stdout.readline() == b"made\n"
            owner = int(next(pid for pid in _session(run.pid) if _RUN in _words(pid)))
            os.kill(owner, signal.SIGKILL)
            if "--fork" not in options:  # else the whole PID namespace ends with its first process
                run.wait()
            yield
        finally:
            for pid in _session(run.pid):
                os.kill(int(pid), signal.SIGKILL)
            run.wait()
            wait_until(lambda: not _session(run.pid), "the namespace to end")


def _session(leader: int) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(process.name)) == leader:
                found.append(process.name)
        except ProcessLookupError:
            continue
    return found


def _words(pid: str) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def owner_in(namespaces: dict[str, str]) -> None:
    """Change the only journal: its run was in these namespaces."""
    path = journal_path("elsewhere")
    first, *rest = path.read_text().splitlines()
    changed = {**json.loads(first), "pid": 2**22 - 1, "namespaces": {**own_namespaces(), **namespaces}}
    path.write_text("\n".join((json.dumps(changed), *rest)) + "\n")


def mounts_seen_by(pid: int) -> list[str]:
    return [mount.source for mount in read_mounts(Path(f"/proc/{pid}/mountinfo"))]


def test_a_mount_of_another_namespace_is_kept_and_undone_where_the_hint_says(state_dir: Path) -> None:
    with killed_run(*NAMESPACES["mnt"]):
        before = journal_path("elsewhere").read_bytes()
        name = json.loads(before.splitlines()[0])["namespaces"]["mnt"]
        assert name != own_namespaces()["mnt"]
        holder = member_of("mnt", name)
        assert holder is not None and holder.name == "sleep"
        for dry_run in ((), ("--dry-run",)):
            refused = plinth("clean", *dry_run)
            assert refused.returncode == 4
            assert f"another mount namespace, {name}, where process {holder.pid} (sleep) is" in refused.stderr
            assert "undone" not in refused.stdout and "nothing to clean" not in refused.stdout
        assert journal_path("elsewhere").read_bytes() == before, "nothing is marked as undone"
        assert "plinth-elsewhere" in mounts_seen_by(holder.pid)
        named = plinth("clean", "elsewhere")
        hint = next(line for line in named.stderr.splitlines() if "hint:" in line).partition("clean there: ")[2]
        assert hint == f"nsenter --target {holder.pid} --mount plinth clean elsewhere"
        there = subprocess.run(
            shlex.split(hint),
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )
        assert there.returncode == 0, there.stderr
        assert "plinth-elsewhere" not in mounts_seen_by(holder.pid)
    assert not journal_path("elsewhere").exists()
    assert list(work_dir().iterdir()) == []


def test_a_namespace_that_has_ended_took_its_mounts_with_it(state_dir: Path) -> None:
    with killed_run(*NAMESPACES["mnt"]):
        pass
    (run,) = clean(UNDO_HANDLERS).runs
    assert (len(run.undone), run.kept) == (2, ())
    assert list(work_dir().iterdir()) == []


@pytest.mark.parametrize("kind", NAMESPACES)
def test_what_is_in_another_namespace_is_refused_while_a_process_is_in_it(state_dir: Path, kind: str) -> None:
    """Each kind, in a mount namespace that is this one: processes, System V segments and control groups are not seen either."""
    journal = Journal.create("elsewhere", UNDO_HANDLERS)
    journal.record(_directory_step(journal))
    journal.close()
    with subprocess.Popen(
        ["unshare", *NAMESPACES[kind], "sh", "-c", "echo ready; read end"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"ready\n"
        child = Path(f"/proc/{other.pid}/task/{other.pid}/children").read_text().split()
        inside = child[0] if kind == "pid" else str(other.pid)
        owner_in({kind: str(Path(f"/proc/{inside}/ns/{kind}").readlink())})
        (refused,) = clean(UNDO_HANDLERS).unreadable
        assert isinstance(refused, Refused)
        assert "(sh) is; what is in it is not seen from here" in refused.message
        assert f"nsenter --target {inside} {NAMESPACES[kind][0]} plinth clean elsewhere" in (refused.hint or "")
        other.communicate(b"end\n")
    assert len(clean(UNDO_HANDLERS).runs) == 1, (
        "nothing is in it any more, as is seen from the machine's first PID namespace"
    )


def test_a_namespace_that_a_file_keeps_is_named_by_that(state_dir: Path, scratch: Path) -> None:
    journal = Journal.create("elsewhere", UNDO_HANDLERS)
    journal.record(_directory_step(journal))
    journal.close()
    place = scratch / "namespaces"
    place.mkdir()
    kept = place / "kept"
    subprocess.run(["mount", "--bind", "--make-private", place, place], check=True)
    try:
        kept.touch()
        subprocess.run(["unshare", f"--mount={kept}", "true"], check=True)
        owner_in({"mnt": f"mnt:[{kept.stat().st_ino}]"})
        (refused,) = left_behind(UNDO_HANDLERS).unreadable
        assert f"{kept} leads" in refused.message
        assert f"nsenter --mount={kept} plinth clean elsewhere" in (refused.hint or "")
    finally:
        subprocess.run(["umount", kept], check=True)
        subprocess.run(["umount", place], check=True)
    assert len(clean(UNDO_HANDLERS).runs) == 1


def test_where_it_cannot_be_seen_whether_a_container_has_ended_the_user_says_so(state_dir: Path) -> None:
    journal = Journal.create("elsewhere", UNDO_HANDLERS)
    journal.record(_directory_step(journal))
    journal.close()
    owner_in({"pid": "pid:[1]"})
    in_container = ("unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-m", "plinth", "clean", "elsewhere")
    refused = subprocess.run(in_container, capture_output=True, text=True)
    assert refused.returncode == 4
    assert "another PID namespace, pid:[1], such as a container; whether that has ended is not seen" in refused.stderr
    assert "plinth clean elsewhere --container-ended" in refused.stderr
    assert journal_path("elsewhere").exists()
    said = subprocess.run([*in_container, "--container-ended"], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert not journal_path("elsewhere").exists()


def test_that_a_container_has_ended_is_not_believed_where_a_process_of_it_is_seen(state_dir: Path) -> None:
    with killed_run(*NAMESPACES["mnt"]):
        with pytest.raises(Refused, match="another mount namespace"):
            clean(UNDO_HANDLERS, "elsewhere", options=CleanOptions(container_ended=True))
    clean(UNDO_HANDLERS)


def test_the_namespaces_of_another_boot_have_ended(state_dir: Path) -> None:
    journal = Journal.create("elsewhere", UNDO_HANDLERS)
    journal.record(_directory_step(journal))
    journal.close()
    owner_in({"pid": own_namespaces()["pid"], "mnt": "mnt:[1]"})
    text = journal.path.read_text().replace(ProcessMark.of_this_process().boot_id, "another")
    journal.path.write_text(text)
    assert len(clean(UNDO_HANDLERS).runs) == 1


@pytest.mark.parametrize("namespaces", ["mnt", ["mnt"], {"mnt": 4026531840}])
def test_namespaces_of_a_wrong_type_are_a_damaged_line(state_dir: Path, namespaces: object) -> None:
    journal = Journal.create("elsewhere", UNDO_HANDLERS)
    journal.record(_directory_step(journal))
    journal.close()
    first, *rest = journal.path.read_text().splitlines()
    changed = json.dumps({**json.loads(first), "namespaces": namespaces})
    journal.path.write_text("\n".join((changed, *rest)) + "\n")
    (refused,) = clean(UNDO_HANDLERS).unreadable
    assert "the journal is damaged: its owner is none" in refused.message


def test_a_copy_that_is_left_in_another_namespace_only_is_unmounted_there(scratch: Path) -> None:
    """As after a clean that was killed between its own umount and that of the copies, or by the journal of an earlier Plinth."""
    point = scratch / "point"
    point.mkdir()
    make = f"mount -t tmpfs -o size=1m plinth-test1 {point} && echo ready; read end"
    with _elsewhere(make) as other:
        assert "plinth-test1" in mounts_seen_by(other)
        undo(Undo(kind="unmount", path=str(point), label="plinth-test1"), Runner(), UNDO_HANDLERS)
        assert "plinth-test1" not in mounts_seen_by(other)


def test_a_file_system_that_is_left_in_another_namespace_only_is_unmounted_there(scratch: Path) -> None:
    image, point = scratch / "image", scratch / "point"
    point.mkdir()
    with loop_device(image, 8 * MIB) as device:
        subprocess.run(["mkfs.ext4", "-q", "-L", "plinthtest1", device], check=True)
        with _elsewhere(f"mount {device} {point} && echo ready; read end") as other:
            unmount_filesystem(point, "another", Runner())
            assert str(device) in mounts_seen_by(other), "what does not have the label stays"
            unmount_filesystem(point, "plinthtest1", Runner())
            assert str(device) not in mounts_seen_by(other)


def test_a_mount_of_another_namespace_that_cannot_be_unmounted_is_kept_and_says_who_sees_it(state_dir: Path) -> None:
    """A busy one, whose own namespace the journal does not name, since it could not be read."""
    journal = Journal.create("elsewhere", UNDO_HANDLERS)
    point = ensure(work_dir()) / "point"
    point.mkdir()
    undo = Undo(kind="unmount", path=str(point), label=journal.label)
    journal.record(_directory_step(journal).model_copy(update={"id": "storage.m.mount", "undo": undo}))
    journal.close()
    first, *rest = journal.path.read_text().splitlines()
    journal.path.write_text("\n".join((json.dumps({**json.loads(first), "namespaces": {}}), *rest)) + "\n")
    make = f"mount -t tmpfs -o size=1m {journal.label} {point} && cd {point} && echo ready; read end"
    with _elsewhere(make) as other:
        (run,) = clean(UNDO_HANDLERS).runs
        (kept,) = run.kept
        assert run.undone == ()
        assert f"where process {other} (sh) is" in kept.error.message
        assert f"nsenter -t {other} -m umount {point}" in (kept.error.hint or "")
        assert journal_path("elsewhere").exists()
    assert len(clean(UNDO_HANDLERS).runs) == 1
    point.rmdir()


def _directory_step(journal: Journal) -> Step:
    undo = Undo(kind="remove_directory", path=str(work_dir() / "gone"), label=journal.label)
    return Step(id="storage.d.directory", title="make a directory", undo=undo)


@contextmanager
def _elsewhere(script: str) -> Iterator[int]:
    """A shell in a mount namespace of its own, once its script has written that it is ready; it ends with the context."""
    argv = ["unshare", *NAMESPACES["mnt"], "sh", "-c", script]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"ready\n"
        yield other.pid
        other.communicate(b"end\n")
