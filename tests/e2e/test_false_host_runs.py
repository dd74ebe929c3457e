"""Whole commands with a host that lies: each ends with an exit code of the table and a sentence, and what was made is undone."""

import json
import sys
from pathlib import Path

import pytest

from false_hosts import Lies, error, false_host, result
from lying_host import failed_with_nothing, false_end, log_without_end, many_commands
from plinth.run.hosts.limits import MAX_LOG_BYTES
from plinth.run.run_bundle import MAX_COMMANDS_BYTES

EXPERIMENT = """\
spec = 1
name = "hosts"
question = "Which machine is faster?"
[storage.far]
kind = "directory"
host = "db1"
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
clients = 2
[measure]
warmup = "200ms"
duration = "1s"
repeats = 1
aa = false
probe = "0s"
[host.db1]
address = "ssh://db1"
listen_address = "127.0.0.1"
lease = "5s"
"""


def with_host(project, monkeypatch, programs: Path, command: Path) -> None:
    monkeypatch.setenv("PATH", f"{programs}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
    project.write(f'{EXPERIMENT}command = "{command}"\n')


@pytest.fixture
def lying(project, monkeypatch):
    """Lets a real agent tell a lie."""

    def named(lie) -> None:
        host = false_host(project.folder, {})
        plinth = Path(sys.executable).with_name("plinth")
        script = Path(__file__).parents[1] / "support" / "lying_host.py"
        state = project.folder / "state-of-db1"
        host.command.write_text(
            f"#!/bin/sh\nPLINTH_STATE_DIR={state}\nexport PLINTH_STATE_DIR\n"
            f'exec {sys.executable} {script} {lie.__name__} {plinth} "$@"\n'
        )
        with_host(project, monkeypatch, host.programs, host.command)

    return named


@pytest.mark.parametrize(
    ("lies", "code", "said"),
    [
        ({"call.facts": result({"cores": "four"})}, 1, 'host db1 answered against the protocol: host.facts: cores: got "four"'),
        ({"call.facts": error(kind="RunError", message="m", exit_code=0)}, 1, "error.exit_code"),
        ({"call.facts": error(kind="Interrupted", message="it was ended")}, 1, "the work there was ended"),
        ({"call.facts": error(kind="Refused", message="not mine")}, 4, "not mine"),
        ({"call.facts": error(kind="MissingCapability", message="no disk")}, 5, "no disk"),
        ({"hello": [{"raw": b"Welcome to db1\n".hex()}]}, 1, 'text came before its first message: "Welcome to db1"'),
        ({"hello": [{"end": True}]}, 1, "no agent could be started on host db1"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["host check", "plan"])
def test_a_command_ends_with_a_sentence(project, monkeypatch, lies: Lies, code: int, said: str, command: str) -> None:
    host = false_host(project.folder, lies)
    with_host(project, monkeypatch, host.programs, host.command)
    done = project.plinth(*command.split(), "x.toml")
    text = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == code and said in text, text
    assert "Traceback" not in text


def test_a_failure_with_the_exit_code_0_fails_the_run(project, lying, nothing_left) -> None:
    lying(failed_with_nothing)
    done = project.run()
    assert done.returncode == 1 and "no data directory" in done.stderr, done.stderr
    nothing_left()


@pytest.mark.long
def test_the_log_of_a_server_there_is_cut(project, lying, nothing_left) -> None:
    lying(log_without_end)
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    (log,) = project.bundle.glob("logs/postgresql-*.log")
    assert MAX_LOG_BYTES <= log.stat().st_size < MAX_LOG_BYTES + 200
    assert "was cut: host db1 has more of it than the 64 MiB" in " ".join(done.stderr.split())
    nothing_left()


@pytest.mark.long
def test_the_commands_of_a_host_are_cut(project, lying, nothing_left) -> None:
    lying(many_commands)
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    assert (project.bundle / "logs" / "commands.jsonl").stat().st_size < MAX_COMMANDS_BYTES + 2**20
    assert "commands.jsonl was cut: host db1" in " ".join(done.stderr.split())
    nothing_left()


@pytest.mark.long
def test_a_host_that_lies_about_what_it_has_undone_fails_the_run(project, lying, nothing_left) -> None:
    lying(false_end)
    done = project.run()
    assert done.returncode == 1 and "host db1 answered against the protocol" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    manifest = json.loads((project.bundle / "manifest.json").read_text())
    assert any(one["what"] == "host db1" and one["exit_code"] == 1 for one in manifest["failures"])
    nothing_left()
