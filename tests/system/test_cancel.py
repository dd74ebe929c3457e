"""Cooperative cancellation: where it is raised, how often, and that waits end by it at once."""

import ast
import contextlib
import os
import select
import threading
from pathlib import Path

import pytest

import plinth
from plinth.model.errors import Interrupted, PlinthError, RunError, StorageBroken
from plinth.system import cancel
from plinth.system.process import ENDED, SESSION, STATE, stat_fields
from plinth.system.runner import CommandError, Runner
from plinth.system.timeout import call_with_timeout
from typed import present
from waiting import wait_until


def after(seconds, token, reason):
    timer = threading.Timer(seconds, token.cancel, [reason])
    timer.start()
    return timer


def test_without_a_token_nothing_is_raised():
    cancel.check()
    cancel.sleep(0.001)
    assert cancel.poll({}, 0) == {}


def test_only_the_first_reason_is_raised():
    with pytest.raises(Interrupted, match="first"), cancel.scope() as token:
        token.cancel(Interrupted("first"))
        token.cancel(Interrupted("second"))
        cancel.check()
    assert token.is_cancelled


def test_the_way_out_may_wait():
    waited = []
    with pytest.raises(Interrupted, match="enough"), cancel.scope() as token, contextlib.ExitStack() as left:
        left.callback(lambda: waited.append(cancel.sleep(0.001)))
        token.cancel(Interrupted("enough"))
        try:
            cancel.check()
        except Interrupted as error:
            cancel.sleep(0.001)
            with pytest.raises(RunError):
                raise RunError("of the way out") from error
            cancel.sleep(0.001)
            raise
        finally:
            cancel.sleep(0.001)
    assert waited == [None]


def test_work_that_took_the_reason_for_an_error_of_what_it_tried_is_ended_at_its_next_wait():
    with pytest.raises(StorageBroken), cancel.scope() as token:
        token.cancel(StorageBroken("slow", "its daemon died"))
        with contextlib.suppress(PlinthError):
            cancel.check()
        cancel.sleep(60)
        pytest.fail("the work went on")


def test_work_that_took_the_reason_for_an_error_and_waits_no_more_is_ended_where_its_scope_ends():
    with pytest.raises(StorageBroken), cancel.scope() as token:
        token.cancel(StorageBroken("slow", "its daemon died"))
        with contextlib.suppress(PlinthError):
            cancel.check()


def test_an_interrupt_is_no_error_of_what_is_tried():
    assert not issubclass(Interrupted, PlinthError)


def test_the_work_around_cancels_the_work_within():
    timer = None
    with pytest.raises(Interrupted), cancel.scope() as outer, cancel.scope():
        timer = after(0.01, outer, Interrupted("enough"))
        cancel.sleep(60)
    present(timer).join()


def test_the_work_within_does_not_cancel_the_work_around():
    with cancel.scope() as outer:
        with pytest.raises(StorageBroken), cancel.scope() as inner:
            inner.cancel(StorageBroken("slow", "its daemon died"))
            cancel.check()
        assert not outer.is_cancelled
        cancel.check()


def test_a_reason_that_comes_as_the_work_ends_is_raised():
    with pytest.raises(Interrupted), cancel.scope() as token:
        token.cancel(Interrupted("at the last moment"))


def test_an_error_of_the_work_is_not_hidden_by_a_reason():
    with pytest.raises(RunError, match="its own"), cancel.scope() as token:
        token.cancel(Interrupted("enough"))
        raise RunError("its own")


def test_masked_work_is_not_cancelled_but_what_follows_is():
    with pytest.raises(Interrupted), cancel.scope() as token:
        token.cancel(Interrupted("enough"))
        with cancel.masked():
            cancel.sleep(0.001)
        cancel.sleep(60)


def test_a_wait_for_a_descriptor_ends_by_either():
    ours, theirs = os.pipe()
    try:
        with pytest.raises(Interrupted), cancel.scope() as token:
            os.write(theirs, b"x")
            assert cancel.poll({ours: select.POLLIN}, 60) == {ours: select.POLLIN}
            os.read(ours, 1)
            timer = after(0.01, token, Interrupted("enough"))
            try:
                cancel.poll({ours: select.POLLIN}, None)
            finally:
                present(timer).join()
                assert cancel.poll({ours: select.POLLIN}, 0.001) == {}
    finally:
        os.close(ours)
        os.close(theirs)


def test_other_threads_have_no_token():
    raised = []

    def work():
        try:
            cancel.check()
        except Interrupted as error:
            raised.append(error)

    with pytest.raises(Interrupted), cancel.scope() as token:
        token.cancel(Interrupted("enough"))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert raised == []


def test_a_question_to_a_hanging_file_system_is_cancelled():
    answered = threading.Event()
    timer = None
    with pytest.raises(Interrupted), cancel.scope() as token:
        timer = after(0.01, token, Interrupted("enough"))
        call_with_timeout(answered.wait, Path("/somewhere"), 60)
    present(timer).join()
    answered.set()


def test_a_cancelled_command_is_ended_with_all_that_it_started(tmp_path):
    """Also one that closed its pipes, and one whose child holds them."""
    for script in ("exec sleep 60", "exec >&- 2>&-; sleep 60", "sleep 60 & sleep 60"):
        pid_file = tmp_path / "pid"
        timer = None
        with pytest.raises(Interrupted), cancel.scope() as token:
            timer = after(0.2, token, Interrupted("enough"))
            Runner().run(["sh", "-c", f"echo $$ > {pid_file}; {script}"])
        present(timer).join()
        session = int(pid_file.read_text())
        wait_until(lambda session=session: session not in _sessions())  # killed they are; the kernel takes its time


def _sessions():
    """Sessions of processes that have not ended."""
    sessions = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = stat_fields(process)
            if fields[STATE] not in ENDED:
                sessions.add(int(fields[SESSION]))
    return sessions


def test_a_command_gets_long_input_and_gives_long_output():
    data = os.urandom(3_000_000).hex().encode()
    completed = Runner().run(["sh", "-c", "tee /dev/stderr"], input_bytes=data, timeout_s=60)
    assert completed.stdout.encode() == data
    assert completed.stderr.encode() == data


def test_a_command_that_wants_no_input_is_given_what_it_takes():
    assert Runner().run(["true"], input_bytes=b"x" * 3_000_000, timeout_s=60).exit_code == 0


def test_what_a_command_said_before_its_timeout_is_kept():
    with pytest.raises(CommandError) as raised:
        Runner().run(["sh", "-c", "echo so far; exec sleep 60"], timeout_s=0.2)
    assert raised.value.timed_out
    assert raised.value.completed.stdout == "so far\n"


def test_nobody_sleeps_where_no_token_reaches():
    """`time.sleep` continues after a signal's handler has returned: `cancel.sleep` ends."""
    package = Path(plinth.__file__).parent
    found = set()
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            named = (
                isinstance(node, ast.ImportFrom)
                and node.module == "time"
                and any(a.name == "sleep" for a in node.names)
            )
            used = isinstance(node, ast.Attribute) and node.attr == "sleep" and ast.unparse(node.value) == "time"
            if named or used:
                found.add(str(file.relative_to(package)))
    assert found == set()


def test_the_descriptors_of_tokens_are_closed():
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(100):
        with cancel.scope():
            pass
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2
