"""`plinth fleet check`: what it says of each machine, and its exit codes."""

import json
import os
import sys
from pathlib import Path

import pytest

from own_sshd import Sshd
from plinth.cli import main
from plinth.model.connection import Connection

EXPERIMENT = """\
spec = 1
name = "fleet"
question = "Can these machines drive a load?"
[storage.disk]
kind = "directory"
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
clients = 6
[matrix]
storage = ["disk"]
[measure]
duration = "1s"
"""


@pytest.fixture
def experiment(tmp_path: Path, sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment with two hosts, one of which is there: the user's own configuration of ssh leads to it."""
    file = tmp_path / "fleet.toml"
    command = Path(sys.executable).with_name("plinth")
    file.write_text(
        f'{EXPERIMENT}[fleet]\nexecutor = "ssh"\nhosts = ["client1", "nosuch.invalid"]\ncommand = "{command}"\n'
    )
    monkeypatch.setenv("PATH", f"{sshd.programs}:{os.environ['PATH']}")
    return file


def test_a_host_that_is_not_there_is_named_next_to_what_was_found_of_the_others(
    experiment: Path, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    server = f"host={connection.host} port={connection.port} user={connection.user} dbname={connection.database}"
    assert main(["fleet", "check", str(experiment), "--server", server]) == 1
    said = capsys.readouterr().out
    assert "nosuch.invalid: no agent could be started on nosuch.invalid: " in said
    assert "1 of 2 machines can drive a load together" in said
    assert next(line for line in said.splitlines() if line.startswith("client1 ")).rstrip().endswith(" us")
    assert main(["fleet", "check", str(experiment), "--server", server, "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)
    assert first["name"] == "client1" and first["problems"] == [] and first["reached"]["error"] is None
    assert second["name"] == "nosuch.invalid" and second["agent"] is None and len(second["problems"]) == 1


def test_a_command_that_is_not_there_is_shown_with_what_its_shell_says(
    experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = experiment.read_text().replace(str(Path(sys.executable).with_name("plinth")), "/nowhere/plinth")
    experiment.write_text(text.replace('"client1", "nosuch.invalid"', '"client1", "client2"'))
    assert main(["fleet", "check", str(experiment)]) == 1
    said = capsys.readouterr().err
    assert "the agent on machine client1 is lost" in said and "the agent on machine client2 is lost" in said
    assert "/nowhere/plinth: No such file or directory" in said and "ssh client1 /nowhere/plinth --version" in said


def test_all_that_is_well_and_all_that_is_not(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment.write_text(experiment.read_text().replace("nosuch.invalid", "client2"))
    assert main(["fleet", "check", str(experiment)]) == 0
    assert "2 of 2 machines can drive a load together" in capsys.readouterr().out
    assert main(["fleet", "check", str(experiment), "--server", "host=127.0.0.1 port=1"]) == 5
    said = " ".join(capsys.readouterr().out.split())
    assert "client2: it does not reach the server (cannot connect to 127.0.0.1:1: " in said
    assert "0 of 2 machines can drive a load together" in said


def test_a_configuration_of_ssh_is_named_on_the_command_line(
    experiment: Path, sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.undo()
    experiment.write_text(experiment.read_text().replace(', "nosuch.invalid"', ""))
    assert main(["fleet", "check", str(experiment)]) == 1
    assert "no agent could be started on client1" in capsys.readouterr().err
    assert main(["fleet", "check", str(experiment), "--ssh-config", str(sshd.config)]) == 0
    assert "1 of 1 machines can drive a load together" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fleet", "config", "words"),
    [
        ('executor = "local"\nmachines = 1', "x.toml", "no hosts that are reached by ssh"),
        ('executor = "ssh"\nhosts = ["client1"]', "nowhere", "there is no such file"),
        ('executor = "ssh"\nhosts = ["client1"]', ".", "there is no such file"),
    ],
)
def test_a_configuration_of_ssh_that_nothing_would_read_is_an_error(
    tmp_path: Path, fleet: str, config: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.toml"
    file.write_text(f"{EXPERIMENT}[fleet]\n{fleet}\n")
    assert main(["fleet", "check", str(file), "--ssh-config", str(tmp_path / config)]) == 2
    assert words in capsys.readouterr().err


def test_no_experiment_names_a_configuration_of_ssh_which_would_start_its_commands(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = tmp_path / "ran"
    config = tmp_path / "config"
    config.write_text(f'Match exec "touch {ran}"\n  User nobody\nHost *\n  ProxyCommand touch {ran}\n')
    experiment.write_text(f'{experiment.read_text()}ssh_config = "{config}"\n')
    assert main(["fleet", "check", str(experiment)]) == 2
    said = capsys.readouterr().err
    assert "fleet.ssh_config: unknown key 'ssh_config'" in said and "--ssh-config FILE" in said
    assert f"{experiment}:{len(experiment.read_text().splitlines())}" in said
    assert not ran.exists()
