"""`plinth probe backup`: real servers, backed up again and again, of which nothing is left."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from plinth.model.probe_backup import BackupOptions, BackupProbe
from plinth.system.database import connect_unpinned
from plinth.tasks.probe_backup import WalsenderCpu
from probing import Command
from servers import new_servers, temporary_folder
from typed import present
from waiting import wait_until

MIB = 2**20


@pytest.fixture
def place(monkeypatch):
    """A directory that the server's user can enter, and a state directory of our own."""
    with temporary_folder(Path("/dev/shm")) as folder:
        monkeypatch.setenv("PLINTH_STATE_DIR", str(folder / "state"))
        (folder / "place").mkdir()
        yield folder / "place"


def left(place: Path) -> list[Path]:
    """What is left of a probe, and the processes that work there."""
    journals = list((place.parent / "state").glob("journal/*.jsonl"))
    working = [process for process in Path("/proc").glob("[0-9]*") if _leads_to(process / "cwd", place)]
    return [*place.iterdir(), *journals, *working]


def _leads_to(entry: Path, place: Path) -> bool:
    try:
        return entry.readlink().is_relative_to(place)
    except OSError:
        return False  # it has ended


@pytest.mark.long
def test_each_kind_of_backup_is_taken_and_measured(probe: Command, place: Path) -> None:
    code, out, err = probe("backup", place, "--size", "16MiB", "--repeats", "2", "--compress", "none,gzip:1", "--json")
    assert code == 0, err
    found = BackupProbe.model_validate(json.loads(out))
    plain, packed = found.results
    assert [plain.compression, packed.compression] == ["none", "gzip:1"]
    assert plain.source_bytes > 32 * MIB, "the table, and what initdb makes"
    for result in found.results:
        assert len(result.runs) == 2
        assert result.bytes_per_s == pytest.approx(sum(result.rates) / 2)
        assert result.bytes_per_s == pytest.approx(result.source_bytes / present(result.duration_s), rel=0.5)
    assert plain.stored_bytes is not None and packed.stored_bytes is not None
    assert plain.stored_bytes > plain.source_bytes, "with WAL"
    assert packed.stored_bytes < 0.7 * plain.stored_bytes
    for run in (*plain.runs, *packed.runs):
        assert 0 < run.walsender_cpu_s < 4 * run.duration_s
        assert 0 < run.client_cpu_s < 4 * run.duration_s
    assert min(run.client_cpu_s for run in packed.runs) > max(run.client_cpu_s for run in plain.runs), (
        "gzip is the client's work"
    )
    assert left(place) == []


def test_what_a_session_used_is_counted_once_its_postmaster_has_waited_for_it() -> None:
    with new_servers({}) as start:
        cluster = start()
        postmaster = cluster.postmaster_pid
        assert postmaster is not None
        used = WalsenderCpu(cluster)
        with connect_unpinned(cluster.connection) as control:
            pid = control.info.backend_pid
            control.execute("select count(*) from generate_series(1, 1000000)")
            os.kill(postmaster, signal.SIGSTOP)
        waits = threading.Timer(0.5, os.kill, (postmaster, signal.SIGCONT))
        try:
            wait_until(lambda: Path(f"/proc/{pid}/cmdline").read_bytes() == b"", "the session has ended")
            waits.start()
            assert used.spent_s() > 0
        finally:
            os.kill(postmaster, signal.SIGCONT)
            waits.join()


@pytest.mark.long
def test_a_rate_is_kept_and_what_this_pg_basebackup_cannot_do_is_said(probe: Command, place: Path) -> None:
    """At 16 MiB/s, 32 MiB and more take two seconds."""
    code, out, err = probe(
        "backup", place, "--size", "16MiB", "--repeats", "1", "--rate", "16MiB/s", "--compress", "none,brotli"
    )
    assert code == 1, err
    assert "at most 16384kB/s were asked for" in out
    lines = {words[0]: words[1:] for line in out.splitlines() if (words := line.split())}
    assert float(lines["none"][0]) < 17
    assert lines["brotli"][0] == "n/a:" and "compression" in " ".join(lines["brotli"])
    assert "One backup each: no spread is known." in out
    assert lines["none"][-3] == lines["none"][-1] == "%", "both shares of a core"
    assert left(place) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--size", "1MiB"), "--size"),
        (("--repeats", "0"), "--repeats"),
        (("--rate", "1kB/s"), "--rate: got '1kB/s': got 1000 bytes/s; pg_basebackup takes 32 KiB/s to 1 GiB/s"),
        (("--size", "900TiB"), "are needed for a server with 900.0 TiB of data and its backup"),
        (("--compress", ""), "--compress"),
    ],
)
def test_what_cannot_be_measured_is_refused(probe: Command, place: Path, words, said) -> None:
    code, _, err = probe("backup", place, *words)
    assert code in (2, 5)
    assert said in err
    assert left(place) == []


def test_a_kill_leaves_nothing_that_clean_does_not_undo(place: Path) -> None:
    command = [sys.executable, "-m", "plinth", "probe", "backup", str(place), "--size", "16MiB", "--rate", "1MiB/s"]
    process = subprocess.Popen(command, start_new_session=True)
    wait_until(lambda: list(place.glob("*/backup/base")), timeout_s=60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert left(place) != []
    subprocess.run([sys.executable, "-m", "plinth", "clean"], check=True, stdout=subprocess.DEVNULL)
    assert left(place) == []


def test_ctrl_c_ends_it_and_nothing_is_left(place: Path) -> None:
    command = [sys.executable, "-m", "plinth", "probe", "backup", str(place), "--size", "16MiB", "--rate", "1MiB/s"]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE)
    wait_until(lambda: list(place.glob("*/backup/base")), timeout_s=60)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert left(place) == []


def test_a_rate_is_given_in_units_of_pg_basebackup() -> None:
    assert BackupOptions().max_rate is None
    assert BackupOptions.model_validate({"rate_bytes_per_s": "100MiB/s"}).max_rate == "102400k"
