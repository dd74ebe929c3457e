"""Commands: how they are started, what is kept of them, and how they end with us."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from plinth.model.errors import Interrupted, MissingCapability, RunError
from plinth.run.interrupt import InterruptGuard
from plinth.system.log_file import LogFile
from plinth.system.owner import server_owner
from plinth.system.process import all_exit, arguments
from plinth.system.runner import CommandError, CommandRecord, Gate, Runner, gated, waits_to_become
from waiting import wait_until


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


def test_output_exit_code_and_record_are_kept() -> None:
    records: list[CommandRecord] = []
    completed = Runner(records.append).run(sh("echo out; echo err >&2"))
    assert (completed.stdout, completed.stderr, completed.exit_code) == ("out\n", "err\n", 0)
    assert completed.duration_s > 0
    assert records == [CommandRecord(tuple(sh("echo out; echo err >&2")), None, 0, completed.duration_s, "out", "err")]


def test_input_is_passed_and_without_it_there_is_none() -> None:
    assert Runner().run(["cat"], input_bytes=b"abc\xff").stdout == "abc�"
    assert Runner().run(["cat"]).stdout == ""


def test_a_failure_names_command_exit_code_and_last_lines() -> None:
    records: list[CommandRecord] = []
    with pytest.raises(CommandError) as error:
        Runner(records.append).run(sh("seq 100 >&2; exit 3"))
    assert error.value.message == "sh failed with exit code 3"
    assert error.value.where == "sh -c seq 100 >&2; exit 3"
    assert error.value.details == tuple(str(n) for n in range(81, 101))
    assert error.value.completed.stderr.startswith("1\n2\n")
    assert error.value.exit_code == 1
    assert records[0].exit_code == 3
    assert records[0].stderr_tail.splitlines() == list(error.value.details)


def test_standard_output_is_shown_where_a_command_complains_there() -> None:
    with pytest.raises(CommandError) as error:
        Runner().run(sh("echo no good; exit 1"))
    assert error.value.details == ("no good",)


def test_exit_codes_that_mean_something_are_allowed() -> None:
    assert Runner().run(sh("exit 2"), allowed_exit_codes=(0, 2)).exit_code == 2


def test_death_by_a_signal_is_named() -> None:
    with pytest.raises(CommandError, match="sh was ended by SIGSEGV"):
        Runner().run(sh("kill -SEGV $$"))


def test_no_shell_is_between() -> None:
    assert Runner().run(["printf", "%s", "$HOME; `id` *"]).stdout == "$HOME; `id` *"


def test_pg_variables_are_stripped_and_the_language_is_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "elsewhere")
    monkeypatch.setenv("PGSERVICE", "x")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    found = dict(line.split("=", 1) for line in Runner().run(["env"], env={"MINE": "1"}).stdout.splitlines())
    assert [name for name in found if name.startswith("PG")] == []
    assert (found["LC_ALL"], found["MINE"]) == ("C", "1")
    assert found["PATH"].endswith(":/usr/sbin:/sbin")


def test_a_missing_program_names_the_package_that_has_it(scratch: Path) -> None:
    with pytest.raises(MissingCapability, match="no-such-program: there is no such program") as error:
        Runner().run(["no-such-program", "-x"])
    assert (error.value.exit_code, error.value.where, error.value.hint) == (5, "no-such-program -x", None)
    with pytest.raises(MissingCapability) as error:
        Runner().run(["mount", "-V"], env={"PATH": str(scratch)})
    assert error.value.hint == "Debian and Ubuntu have it in package mount"
    not_a_program = scratch / "umount"
    not_a_program.write_text("")
    with pytest.raises(MissingCapability, match="cannot be executed: Permission denied"):
        Runner().run([str(not_a_program)])


def test_what_cannot_be_left_running_is_reported_as_what_cannot_be_run(scratch: Path) -> None:
    log = scratch / "log"
    with pytest.raises(MissingCapability, match="no-such-program: there is no such program"):
        Runner().spawn(["no-such-program"], log=LogFile(log))
    (scratch / "plain").write_text("")
    with pytest.raises(MissingCapability, match="cannot be executed: Permission denied"):
        Runner().spawn([str(scratch / "plain")], log=LogFile(log))
    with pytest.raises(MissingCapability, match=r"cannot enter the working directory .*/nowhere"):
        Runner().spawn(["true"], log=LogFile(log), cwd=scratch / "nowhere")
    closed = scratch / "closed"
    closed.mkdir(mode=0o700)
    shutil.copy("/bin/true", closed / "program")
    process = Runner().spawn([str(closed / "program")], log=LogFile(log), owner=server_owner())
    assert process.wait() in (126, 127)
    assert "Permission denied" in log.read_text()


def test_a_missing_working_directory_is_not_a_missing_program(scratch: Path) -> None:
    with pytest.raises(MissingCapability, match=r"cannot enter the working directory .*/nowhere"):
        Runner().run(["true"], cwd=scratch / "nowhere")


def test_a_command_runs_as_its_owner_with_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/root")
    owner = server_owner()
    records: list[CommandRecord] = []
    out = Runner(records.append).run(sh("id -u; id -g; pwd; echo $USER $HOME; id -G"), owner=owner).stdout.splitlines()
    assert out[:3] == [str(owner.uid), str(owner.gid), "/"]
    assert out[3].split()[0] == owner.name
    assert "/root" not in out[3]
    assert "0" not in out[4].split()
    assert records[0].user == owner.name


def test_too_long_a_command_is_ended_with_its_children(scratch: Path) -> None:
    with pytest.raises(CommandError, match=r"took longer than 0.2 s and was ended"):
        Runner().run(sh(f"echo begun; sleep 60 & echo $! > {scratch}/pid; wait"), timeout_s=0.2)
    check_gone(int((scratch / "pid").read_text()))


def check_gone(pid: int) -> None:
    """Fails unless the process ends within seconds."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert all_exit([pidfd], 5), f"process {pid} lives on"
    os.close(pidfd)


def read_pid(file: Path) -> int:
    """The pid that a child writes as soon as it is up."""
    wait_until(lambda: file.exists() and file.read_text().endswith("\n"), "the child has come up")
    return int(file.read_text())


def test_a_command_dies_with_us_even_by_kill_9(scratch: Path) -> None:
    pid_file = scratch / "pid"
    plinth = os.fork()
    if plinth == 0:
        Runner().run(sh(f"echo $$ > {pid_file}; exec sleep 60"))
        os._exit(1)
    command = read_pid(pid_file)
    os.kill(plinth, signal.SIGKILL)
    os.waitpid(plinth, 0)
    check_gone(command)


def test_what_waits_for_a_word_that_does_not_come_ends_without_having_done_anything(scratch: Path) -> None:
    with Gate() as gate:
        command = gated(["touch", str(scratch / "done")])
        process = subprocess.Popen(command, stdin=gate.theirs)
        assert waits_to_become(arguments(Path(f"/proc/{process.pid}"))) == ["touch", str(scratch / "done")]
    assert process.wait(10) == 1
    assert not (scratch / "done").exists()


def test_a_command_whose_parent_is_gone_before_it_can_ask_for_its_signal_does_nothing(scratch: Path) -> None:
    code = "from plinth.system.runner import die_with_parent; die_with_parent(1 << 22); print('lives')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_an_interrupt_reaches_us_and_not_the_command_which_we_end(scratch: Path) -> None:
    pid_file = scratch / "pid"
    threading.Thread(target=lambda: (read_pid(pid_file), os.kill(os.getpid(), signal.SIGINT))).start()
    # A KeyboardInterrupt could come before the command is in our hands; a run's guard raises only where we wait for it.
    with pytest.raises(Interrupted), InterruptGuard(held_back=pytest.fail):
        Runner().run(sh(f"echo $$ > {pid_file}; exec sleep 60"))
    check_gone(read_pid(pid_file))


def test_what_is_started_has_its_own_session_and_its_log(scratch: Path) -> None:
    log = scratch / "log"
    log.write_text("before\n")
    records: list[CommandRecord] = []
    process = Runner(records.append).spawn(sh("echo out; echo err >&2; ps -o sid= -p $$"), log=LogFile(log))
    assert process.wait() == 0
    *lines, session = log.read_text().splitlines()
    assert lines == ["before", "out", "err"]
    assert int(session) == process.pid != os.getsid(0)
    assert (records[0].exit_code, records[0].duration_s) == (None, None)


def test_what_is_done_at_its_gate_is_done_before_it_starts_and_keeps_it_from_starting_when_it_fails(
    scratch: Path,
) -> None:
    log, seen = LogFile(scratch / "log"), []

    def look(pid: int) -> None:
        seen.append((pid, (scratch / "started").exists()))

    process = Runner().spawn(sh(f"touch {scratch}/started"), log=log, at_gate=look)
    assert process.wait() == 0
    assert seen == [(process.pid, False)] and (scratch / "started").exists()

    def refuse(pid: int) -> None:
        seen.append((pid, False))
        raise RunError("no")

    with pytest.raises(RunError, match="no"):
        Runner().spawn(sh(f"touch {scratch}/never"), log=log, at_gate=refuse)
    assert not Path(f"/proc/{seen[-1][0]}").exists(), "it was waited for"
    assert not (scratch / "never").exists()


def test_what_is_started_outlives_us(scratch: Path) -> None:
    plinth = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; from plinth.system.log_file import LogFile; from plinth.system.runner import Runner;"
            f"print(Runner().spawn(['sleep', '60'], log=LogFile(Path('{scratch}/log'))).pid)",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    pid = int(plinth.stdout)
    wait_until(
        lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n"
    )  # what it is started through has been replaced
    os.kill(pid, signal.SIGKILL)
