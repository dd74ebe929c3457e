"""Process groups: titles, sums that survive processes, and real work that shows where it was done."""

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plinth.observe.host import HostStat
from plinth.observe.proc import KeptFiles
from plinth.observe.process_sources import _CPU, Counters, GroupSums, ProcessCpu, ProcessIo, _Groups
from plinth.observe.processes import (
    POSTGRES_GROUPS,
    Member,
    Processes,
    RunProcesses,
    children_by_search,
    group_of_title,
)
from plinth.server.server import LocalServer
from typed import present
from waiting import wait_until
from watching import ask, client, watching

BURNED_S = 0.5


@pytest.mark.parametrize(
    ("title", "group"),
    [
        ("postgres: checkpointer ", "checkpointer"),
        ("postgres: my: cluster: checkpointer ", "checkpointer"),
        ("postgres: background writer ", "background writer"),
        ("postgres: walwriter ", "walwriter"),
        ("postgres: autovacuum launcher ", "autovacuum"),
        ("postgres: autovacuum worker bench", "autovacuum"),
        ("postgres: autovacuum worker ", "autovacuum"),
        ("postgres: walsender repl [local] streaming 0/3000148", "walsender"),
        ("postgres: walsender ", "walsender"),
        ("postgres: walreceiver streaming 0/3000148", "walreceiver"),
        ("postgres: io worker 12", "io workers"),
        ("postgres: io worker ", "io workers"),
        ("postgres: logger ", "logger"),
        ("postgres: archiver last was 000000010000000000000001", "other postgres"),
        ("postgres: startup recovering 000000010000000000000001", "other postgres"),
        ("postgres: stats collector ", "other postgres"),
        ("postgres: logical replication launcher ", "other postgres"),
        ("postgres: logical replication apply worker for subscription 16384", "other postgres"),
        ("postgres: parallel worker for PID 4711 ", "backends"),
        ("postgres: bench bench [local] idle", "backends"),
        ("postgres: bench bench ::1(51234) UPDATE waiting", "backends"),
        ("postgres: checkpointer bench [local] idle", "backends"),
        ("/usr/lib/postgresql/15/bin/postgres -D data", None),
        ("", None),
    ],
)
def test_group_of_title(title: str, group: str | None) -> None:
    assert group_of_title(title.encode().replace(b" -D ", b"\0-D\0")) == group


@pytest.mark.long
def test_groups_are_those_that_the_server_itself_shows(every_server: LocalServer) -> None:
    """Against pg_stat_activity, which has every process but postmaster and logger."""
    groups = {"client backend": "backends", "io worker": "io workers", "autovacuum launcher": "autovacuum"}
    with client(every_server):
        processes = Processes(RunProcesses(every_server.postmaster_pid))
        others = "SELECT pid, backend_type FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        shown = dict(ask(every_server, others))
        processes.sample()
        found = {child.pid: child.group for child in processes.children()}
    assert "client backend" in shown.values()
    for pid, kind in shown.items():
        expected = groups.get(kind, kind if kind in POSTGRES_GROUPS else "other postgres")
        assert found[pid] == expected, kind


def test_children_are_found_by_search_where_the_kernel_does_not_list_them(server: LocalServer) -> None:
    pid = server.postmaster_pid
    assert pid is not None
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    wait_until(
        lambda: sorted(children_by_search(pid)) == sorted(map(int, listed.read_text().split())), "the same children"
    )
    assert len(children_by_search(pid)) > 3


Lives = Sequence[tuple[Sequence[int], int]]


@given(st.lists(st.tuples(st.lists(st.integers(0, 50), min_size=1, max_size=5), st.integers(0, 20)), max_size=8))
def test_no_time_is_lost_or_counted_twice_when_processes_end(lives: Lives) -> None:
    """Each process counts up, does some last work unseen, and is inherited by its parent."""
    sums = GroupSums(1, heir="parent")
    inherited = done = 0.0
    sums.advance("parent", 1, (0.0,))
    for pid, (steps, unseen) in enumerate(lives, start=2):
        counter = 0.0
        for step in steps:
            counter += step
            sums.advance("group", pid, (counter,))
        inherited += counter + unseen
        done += counter + unseen
        sums.advance("parent", 1, (inherited,))
        sums.end([pid])
        assert sums.total() == (done,)
    seen = float(sum(sum(steps) for steps, _ in lives))
    assert sums.shown("group") == (seen,)
    assert sums.shown("parent") == (done - seen,)


def test_a_number_given_again_is_another_process() -> None:
    sums = GroupSums(1, heir=None)
    for now in (5.0, 7.0, 2.0, 3.0):
        sums.advance("group", 9, (now,))
    assert sums.shown("group") == (10.0,)


def test_what_is_shown_never_falls() -> None:
    sums = GroupSums(1, heir="parent")
    sums.advance("parent", 1, (4.0,))
    sums.advance("child", 2, (3.0,))
    assert sums.shown("parent") == (4.0,)
    sums.end([2])  # before the parent was read with what it inherits
    assert sums.shown("parent") == (4.0,)
    sums.advance("parent", 1, (7.5,))
    assert sums.shown("parent") == (4.5,)


def test_what_ended_before_its_parent_was_read_is_no_less_in_the_total() -> None:
    sums = GroupSums(1, heir="parent")
    sums.advance("parent", 1, (0.0,))
    sums.advance("child", 2, (3.0,))
    sums.end([2])
    assert sums.total() == (3.0,)
    sums.advance("parent", 1, (3.5,))
    assert sums.total() == (3.5,)


ANSWERS = """import sys, time
end = time.process_time() + 0.3
while time.process_time() < end: pass
for line in sys.stdin: print(flush=True)"""


@pytest.mark.parametrize("has_run", [True, False])
@pytest.mark.parametrize("at", ["after the parent was read", "before the parent was read"])
def test_a_child_that_ends_while_its_siblings_are_read_is_counted_once(at: str, has_run: bool) -> None:
    argv = [sys.executable, "-c", ANSWERS]
    child = subprocess.Popen(argv, text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    moments: list[str] = []

    def answer() -> None:
        print(file=child.stdin)
        present(child.stdout).readline()

    def of_ended(parent: Member, processes: Processes) -> Counters:
        if "before the parent was read" in moments:
            child.communicate()
        counters = _CPU.of_ended(parent, processes) if _CPU.of_ended else ()
        if "after the parent was read" in moments:
            child.communicate()
        return counters

    processes = Processes(RunProcesses(os.getpid()))
    groups = _Groups(_CPU._replace(of_ended=of_ended), processes)
    totals: list[float] = []
    answer()
    for ends in (False, False, True, False, False):
        moments = [at] if ends else []
        if has_run and child.poll() is None:
            answer()
        own_s = sum(_CPU.of_process(Member("", os.getpid(), "/proc/self"), processes))
        processes.sample()
        groups.read_server()
        totals.append(sum(groups.sums.total()) - own_s)
    assert child.returncode == 0
    assert totals == pytest.approx([totals[0]] * len(totals), abs=0.1)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_an_observer_that_has_ended_keeps_no_file_open(server: LocalServer) -> None:
    """An experiment has one for each trial."""
    gc.collect()
    before = open_files()
    for _ in range(3):
        with watching(server) as watched:
            watched.wait_for_readings("process_cpu", 2)
    assert open_files() <= before


def test_files_are_kept_open_until_their_process_has_ended_and_no_more_than_allowed() -> None:
    files = KeptFiles(2)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        mine, its = f"/proc/{os.getpid()}", f"/proc/{child.pid}"
        before = open_files()
        for _ in range(2):
            assert files.read(f"{its}/stat").startswith(str(child.pid).encode())
            assert files.read(f"{mine}/stat").startswith(str(os.getpid()).encode())
            assert files.read(f"{mine}/io").startswith(b"rchar")
        assert open_files() == before + 2
        child.communicate()
    with pytest.raises(OSError, match=f"{its}/stat"):
        files.read(f"{its}/stat")
    files.keep({its})
    assert open_files() == before - 1, "the child's pipe, too, is closed"


def busy_sql(seconds: float) -> str:
    return f"""DO $$ BEGIN
        WHILE clock_timestamp() < now() + interval '{seconds} s' LOOP PERFORM sqrt(generate_series(1, 1000)); END LOOP;
        END $$"""


def cpu_of(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def test_work_in_a_backend_is_its_groups(every_server: LocalServer) -> None:
    with client(every_server) as load:
        before = cpu_of(load.info.backend_pid)
        with watching(every_server) as watched:
            load.execute(busy_sql(BURNED_S))  # type: ignore[arg-type]
        burned = cpu_of(load.info.backend_pid) - before
    grown = {group: watched.grown("process_cpu", group, "user_s") for group in (*POSTGRES_GROUPS, "rest of host")}
    grown["backends"] += watched.grown("process_cpu", "backends", "system_s")
    assert grown.pop("backends") == pytest.approx(burned, abs=0.03), (
        "two clock ticks, and what came after the last look"
    )
    assert grown.pop("rest of host") >= 0
    assert all(seconds < 0.1 for seconds in grown.values()), grown
    assert watched.values("process_cpu", "backends", "processes")[-1] == 1, "the observer's own is not among them"
    assert watched.grown("process_io", "observer", "rchar") > 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of processes that were read, in their order."""
    reported: list[str] = []
    real = KeptFiles.read

    def read(files: KeptFiles, path: str) -> bytes:
        reported.append(path)
        return real(files, path)

    monkeypatch.setattr(KeptFiles, "read", read)
    return reported


@pytest.mark.parametrize("has_schedstat", [True, False])
def test_a_process_is_read_when_it_has_run_or_where_that_is_unknown(
    server: LocalServer, reads: list[str], has_schedstat: bool
) -> None:
    processes = Processes(RunProcesses(server.postmaster_pid))
    processes._has_schedstat = has_schedstat
    cpu, io = ProcessCpu(processes, HostStat()), ProcessIo(processes)

    def tick() -> set[str]:
        reads.clear()
        reported = [*cpu.read().readings, *io.read().readings]
        assert {reading.object for reading in reported} >= {*POSTGRES_GROUPS, "load engine"}
        return {path for path in reads if path in files}

    with client(server) as idle:
        files = {f"/proc/{idle.info.backend_pid}/{file}" for file in ("stat", "io")}
        assert tick() == files
        if has_schedstat:
            # A busy machine lets a backend end its last work after it has answered.
            wait_until(lambda: tick() == set(), "a backend that is not read")
        else:
            assert tick() == files
        idle.execute("SELECT 1")
        assert tick() == files


def test_backends_that_came_and_went_between_readings_are_counted(server: LocalServer) -> None:
    burned = 0.0
    with watching(server, interval_s=30) as watched:
        for _ in range(3):
            with client(server) as load:
                pid = load.info.backend_pid
                load.execute(busy_sql(0.1))  # type: ignore[arg-type]
                burned += cpu_of(pid)
            wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), "the backend's end")
    unseen = sum(watched.grown("process_cpu", "short-lived backends", metric) for metric in ("user_s", "system_s"))
    assert burned - 0.05 <= unseen <= burned + 0.1
    assert watched.grown("process_cpu", "backends", "user_s") == 0
    assert watched.grown("process_io", "other postgres", "rchar") > 0


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))


def test_work_in_this_process_is_the_load_engines(server: LocalServer) -> None:
    with watching(server) as watched:
        worker = threading.Thread(target=burn, args=(BURNED_S,))
        worker.start()
        worker.join()
    engine = sum(watched.grown("process_cpu", "load engine", metric) for metric in ("user_s", "system_s"))
    assert BURNED_S - 0.05 <= engine <= BURNED_S + 0.3
    assert watched.grown("process_cpu", "backends", "user_s") == 0
    assert watched.grown("process_cpu", "observer", "user_s") < 0.2


def test_an_engine_in_another_process_and_its_end(server: LocalServer) -> None:
    script = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\ninput()"
    engine = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE)
    try:
        with watching(server, processes=RunProcesses(server.postmaster_pid, engine.pid)) as watched:
            wait_until(lambda: cpu_of(engine.pid) > 0.3, "the engine's work")
            watched.wait_for_readings("process_cpu", 2)
            engine.communicate(b"\n")
            watched.wait_for_readings("process_cpu", 2)
    finally:
        engine.kill()
        engine.wait()
    assert sum(watched.values("process_cpu", "load engine", metric)[-1] for metric in ("user_s", "system_s")) >= 0.25
    assert "No such" in watched.reason("process_cpu: load engine"), "file, or process where the file was kept open"


def test_a_process_of_the_run_is_no_neighbour(server: LocalServer) -> None:
    """A daemon that serves an emulated disk works for the run, and so do its children."""
    busy = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint(flush=True)\ninput()"
    script = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', sys.argv[1]])"
    daemon = subprocess.Popen([sys.executable, "-c", script, busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert daemon.stdin is not None and daemon.stdout is not None
    try:
        wait_until(lambda: bool(children_by_search(daemon.pid)), "the daemon's child")
        [child] = children_by_search(daemon.pid)
        with watching(server) as watched:
            daemon.stdout.readline()
            before = cpu_of(child)
            watched.wait_for_readings("process_cpu", 2)
    finally:
        daemon.communicate(b"\n")
    counted = sum(watched.values("process_cpu", "rest of run", metric)[-1] for metric in ("user_s", "system_s"))
    assert counted >= before - 0.02 >= 0.27


def test_bytes_written_by_a_backend_are_its_groups(server: LocalServer) -> None:
    with client(server) as load:
        load.execute("CREATE TABLE copied (payload text)")
        with watching(server) as watched:
            load.execute("INSERT INTO copied SELECT repeat('x', 1000) FROM generate_series(1, 8000)")
            load.execute("CHECKPOINT")
        load.execute("DROP TABLE copied")
    written = sum(
        watched.grown("process_io", group, "wchar")
        for group in ("backends", "checkpointer", "walwriter", "background writer")
    )
    assert written >= 2 * 8_000_000, "once as WAL, once as data"
    assert watched.grown("process_io", "observer", "write_bytes") == 0


def test_what_may_not_be_read_is_a_gap(in_child: Callable[..., object]) -> None:
    """Another user's process, here the first one of all: its CPU time may be read, its I/O may not."""

    def look() -> tuple[set[str], dict[str, str], set[str]]:
        processes = Processes(RunProcesses(1))
        cpu, io = ProcessCpu(processes, HostStat()).read(), ProcessIo(processes).read()
        return {r.object for r in cpu.readings}, dict(io.missing), {r.object for r in io.readings}

    result = in_child(look, "nobody" if os.geteuid() == 0 else None)
    cpu_groups, io_missing, io_groups = result.value  # type: ignore[attr-defined]
    assert "other postgres" in cpu_groups
    assert io_missing["the server's processes"] == "/proc/1/io: Permission denied"
    assert not io_groups.intersection(POSTGRES_GROUPS)


def test_one_process_that_may_not_be_read_takes_its_group_along(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sum that lacks one process would be a wrong sum."""
    (checkpointer,) = ask(server, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")[0]
    real = KeptFiles.read

    def refuse(files: KeptFiles, path: str) -> bytes:
        if path == f"/proc/{checkpointer}/io":
            raise PermissionError(13, "Permission denied", path)
        return real(files, path)

    monkeypatch.setattr(KeptFiles, "read", refuse)
    with watching(server) as watched:
        pass
    assert watched.reason("process_io: checkpointer") == f"/proc/{checkpointer}/io: Permission denied"
    assert not watched.values("process_io", "checkpointer", "rchar")
    assert watched.values("process_io", "walwriter", "rchar")
