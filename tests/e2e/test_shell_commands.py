"""Commands of the system in scripts of an experiment: named by the plan, and never run as root."""

import json
import os

import pytest

from plinth.system.owner import server_owner
from shell_experiment import SHELL


@pytest.fixture
def scripted(project):
    """An experiment whose script starts commands; `told` is a folder that they can write to."""
    reported = project.folder / "told"
    reported.mkdir()
    reported.chmod(0o777)
    (project.folder / "who.sql").write_text(
        "\\setshell me id -u\n"
        "SELECT :me;\n"
        f"\\shell id > {reported}/id; env > {reported}/env; tty > {reported}/tty; ps -o sid= -p $$ > {reported}/session; echo from-the-shell\n"
    )
    project.write(SHELL)
    return project


def test_the_plan_names_every_command_and_who_runs_it(scripted):
    plan = json.loads(scripted.plinth("plan", "x.toml", "--json").stdout)
    commands = plan["shell_commands"]
    assert [(one["script"], one["line"], one["user"]) for one in commands] == [
        ("who.sql", 1, server_owner().name),
        ("who.sql", 3, server_owner().name),
    ]
    assert "id -u" in commands[0]["command"]
    shown = scripted.plinth("plan", "x.toml").stdout
    assert f"who.sql:1 (as user {server_owner().name}): \\setshell me id -u" in shown
    assert f"who.sql:3 (as user {server_owner().name}): \\shell id > " in shown


def test_root_has_them_run_as_the_user_of_the_server(scripted, nothing_left):
    assert os.geteuid() == 0, "what is tested is what root must not do"
    owner = server_owner()
    done = scripted.run("--json", PLINTH_TEST_SECRET="hidden")
    assert done.returncode in (0, 3), done.stderr
    reported = scripted.folder / "told"
    assert f"uid={owner.uid}(" in (reported / "id").read_text()
    assert "groups=0" not in (reported / "id").read_text()
    assert (reported / "id").stat().st_uid == owner.uid
    assert "PLINTH_TEST_SECRET" not in (reported / "env").read_text()
    assert f"USER={owner.name}" in (reported / "env").read_text()
    assert int((reported / "session").read_text()) != os.getsid(0)
    assert "from-the-shell" not in done.stdout
    json.loads(done.stdout)
    nothing_left()
