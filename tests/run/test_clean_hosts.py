"""What `plinth clean` does about other hosts: one that does not answer holds up nothing else, and one that is gone can be given up."""

import json
import shlex
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import plinth
from hosts_here import HostHere, host_here
from own_sshd import own_sshd
from plinth.model.host import HostSpec
from plinth.model.step import Step, Undo
from plinth.run.hosts.undo import host_step
from plinth.run.undo import UNDO_HANDLERS
from plinth.system.clean import clean
from plinth.system.directory import make_directory
from plinth.system.journal import Journal, journal_path
from plinth.system.owner import current_user
from plinth.system.paths import ensure, work_dir

pytestmark = pytest.mark.usefixtures("state_dir")
CONNECT_TIMEOUT_S = 15
NOBODY = "192.0.2.1"
"""Of TEST-NET-1 (RFC 5737)."""


@pytest.fixture(scope="module")
def silent() -> Iterator[str]:
    """The address of a host that takes connections, and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"ssh://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(scope="module")
def answering(module_scratch: Path) -> Iterator[HostHere]:
    with own_sshd(module_scratch / "sshd", ["db1"]) as sshd:
        yield host_here("db1", sshd, module_scratch)


def left_by(run_id: str, **hosts: str) -> Path:
    """The directory of a run that has ended, which had parts on `hosts`, by their names and addresses."""
    journal = Journal.create(run_id, UNDO_HANDLERS)
    for name, address in hosts.items():
        journal.record(host_step(name, HostSpec(address=address), run_id, None))
    place = ensure(work_dir()) / f"plinth-{run_id}"
    undo = Undo(kind="remove_directory", path=str(place), label=journal.label)
    journal.record(Step(id="storage.s.directory", title="make the directory", undo=undo))
    make_directory(place, journal.label, current_user())
    journal.close()
    return place


def steps_of(run_id: str) -> list[dict]:
    return [json.loads(line) for line in journal_path(run_id).read_text().splitlines()[1:]]


def test_a_host_that_does_not_answer_holds_up_no_other_run_and_is_waited_for_once(silent: str) -> None:
    places = [left_by("r1", db2=silent), left_by("r2", db2=silent), left_by("r3")]
    begun = time.monotonic()
    done = plinth("clean")
    took_s = time.monotonic() - begun
    assert done.returncode == 1
    assert not any(place.exists() for place in places), "all that is here is undone"
    assert [f"run {run_id}: 1 steps undone" in done.stdout for run_id in ("r1", "r2", "r3")] == [True] * 3
    assert not journal_path("r3").exists()
    assert "2 things could not be cleaned up" in done.stderr
    assert done.stderr.count("the host does not answer") == 2
    assert "(for another run, a moment ago)" in done.stderr
    for run_id in ("r1", "r2"):
        assert f"if it never will: plinth clean {run_id} --forget-host db2" in done.stderr
        assert [line["step"]["id"] for line in steps_of(run_id) if "step" in line][:1] == ["host.db2.agent"]
    # A bound that a busy machine keeps, and two waits would not.
    assert CONNECT_TIMEOUT_S - 1 < took_s < 2 * CONNECT_TIMEOUT_S


def test_a_host_that_answers_is_cleaned_next_to_one_that_does_not(
    answering: HostHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in answering.environment.items():
        monkeypatch.setenv(name, value)
    with monkeypatch.context() as there:
        there.setenv("PLINTH_STATE_DIR", str(answering.state))
        place = left_by("r1")
    journal = Journal.create("r1", UNDO_HANDLERS)
    journal.record(host_step("db1", HostSpec.model_validate(_ssh_keys(answering)), "r1", None))
    journal.record(host_step("db2", HostSpec(address="ssh://127.0.0.1:1"), "r1", None))
    journal.close()
    (run,) = clean(UNDO_HANDLERS).runs
    assert not place.exists()
    assert [step.id for step in run.undone] == ["host.db1.agent"]
    (kept,) = run.kept
    assert kept.step.id == "host.db2.agent" and "Connection refused" in kept.error.message
    assert kept.error.exit_code == 1


def _ssh_keys(host: HostHere) -> dict[str, str]:
    return {key: host.keys[key] for key in ("address", "command")}


def test_a_host_that_is_gone_is_given_up_and_all_else_undone() -> None:
    place = left_by("r1", db2=f"ssh://bench@{NOBODY}")
    shown = plinth("clean", "--forget-host", "db2", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    given_up = f"what run r1 has made on host db2 (bench@{NOBODY}); `plinth clean r1` there would undo it"
    assert f"# to give up: {given_up}" in shown.stdout
    assert "by `plinth clean` there" not in shown.stdout.replace(given_up, "")
    assert place.exists() and len(steps_of("r1")) == 2, "nothing is changed"
    begun = time.monotonic()
    done = plinth("clean", "--forget-host", "db2")
    assert time.monotonic() - begun < CONNECT_TIMEOUT_S, "it is not asked"
    assert done.returncode == 0, done.stderr
    assert f"  given up: {given_up}" in done.stdout
    assert not place.exists() and not journal_path("r1").exists()
    again = plinth("clean", "--forget-host", "db2")
    assert again.returncode == 2
    assert "no run that has ended has left anything on a host 'db2'" in again.stderr


def test_the_journal_says_what_was_given_up_while_it_has_something_else(silent: str) -> None:
    left_by("r1", db2=silent, db3="ssh://127.0.0.1:1")
    done = plinth("clean", "r1", "--forget-host", "db2")
    assert done.returncode == 1
    assert {"given_up": 1, "step": "host.db2.agent"} in steps_of("r1")
    dry = plinth("clean", "--dry-run")
    assert "127.0.0.1" in dry.stdout and "db2" not in dry.stdout, "what was given up is not undone any more"
    assert plinth("clean", "r1", "--forget-host", "db2").returncode == 2
    assert plinth("clean", "--forget-host", "db3").returncode == 0


def test_a_name_that_several_runs_have_needs_the_run() -> None:
    places = [left_by(run_id, db2=f"ssh://{NOBODY}") for run_id in ("r1", "r2")]
    ambiguous = plinth("clean", "--forget-host", "db2")
    assert ambiguous.returncode == 2
    assert "2 runs have left something on a host 'db2': r1, r2" in ambiguous.stderr
    assert "plinth clean r1 --forget-host db2" in ambiguous.stderr
    assert all(place.exists() for place in places), "nothing is done"
    for run_id in ("r1", "r2"):
        assert plinth("clean", run_id, "--forget-host", "db2").returncode == 0
    assert not any(place.exists() for place in places)


def test_several_hosts_can_be_given_up_and_a_wrong_name_lists_them() -> None:
    left_by("r1", db2=f"ssh://{NOBODY}", db3=f"ssh://{NOBODY}")
    wrong = plinth("clean", "r1", "--forget-host", "db4\x1b[31m")
    assert wrong.returncode == 2
    assert "there are db2, db3" in wrong.stderr and "\x1b" not in wrong.stderr
    done = plinth("clean", "r1", "--forget-host", "db2", "--forget-host", "db3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("given up") == 2


def test_a_node_of_a_ray_cluster_can_be_given_up() -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    journal.record(host_step("db2", HostSpec(address=f"ray://{NOBODY}:10001", node="192.0.2.12"), "r1", None))
    journal.close()
    done = plinth("clean", "--forget-host", "db2")
    assert done.returncode == 0, done.stderr
    assert "what run r1 has made on host db2 (192.0.2.12)" in done.stdout


@pytest.mark.parametrize("path", ["", "one", "'open", shlex.join("abcdefg")])
def test_a_place_that_no_plinth_has_written_is_refused(path: str) -> None:
    journal = Journal.create("r1", UNDO_HANDLERS)
    undo = Undo(kind="clean_host", path=path, label=journal.label)
    journal.record(Step(id="host.db2.agent", title="start an agent", undo=undo))
    journal.close()
    done = plinth("clean")
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stderr
    assert plinth("clean", "--dry-run").returncode == 0, "which only reads, and shows it as it is"


def test_a_destination_that_looks_like_an_option_is_none(scratch: Path) -> None:
    """A journal that a former Plinth wrote, or a hand has changed: ssh would run this command here."""
    journal = Journal.create("r1", UNDO_HANDLERS)
    trap = scratch / "sprung"
    path = shlex.join((f"-oProxyCommand=touch {trap}", "plinth"))
    journal.record(Step(id="host.db2.agent", title="t", undo=Undo(kind="clean_host", path=path, label=journal.label)))
    journal.close()
    assert plinth("clean").returncode == 1
    assert not trap.exists()
