"""The processes of `plinth serve` that work out answers and reports."""

import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from plinth.bundle import BundleFolder
from plinth.model.errors import PlinthError, RunError
from plinth.serve.analyst import Analyst
from plinth.tasks.analysis import analyse_bundle
from plinth.tasks.history import answer_or_reason
from serving import Served, catalogue
from small_bundles import written
from waiting import wait_until


@pytest.fixture
def analyst(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PLINTH_STATE_DIR", str(tmp_path_factory.mktemp("state")))
    analyst = Analyst()
    yield analyst
    analyst.close()


def children(pid):
    return [
        int(child)
        for thread in Path(f"/proc/{pid}/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]


@pytest.mark.long
def test_answers_are_those_of_the_analysis_and_a_killed_process_is_said_and_replaced(tmp_path, analyst):
    bundle = written(tmp_path / "b")
    (written(tmp_path / "spoilt") / "plan.json").unlink()
    root = BundleFolder(tmp_path)
    others = set(children(os.getpid()))
    expected, _ = answer_or_reason(BundleFolder(bundle))
    assert expected is not None
    assert analyst.do("answer", root, ["b"]) == [expected.model_dump(), None]
    answer, missing = analyst.do("answer", root, ["spoilt"])
    assert answer is None and "plan.json" in missing
    (process,) = set(children(os.getpid())) - others
    os.kill(process, signal.SIGKILL)
    with pytest.raises(RunError, match="its analysis ended with signal SIGKILL"):
        analyst.do("answer", root, ["b"])
    assert analyst.do("answer", root, ["b"]) == [expected.model_dump(), None]


def test_errors_of_the_process_say_what_those_of_the_analysis_say(tmp_path, analyst):
    (written(tmp_path / "b") / "plan.json").write_text("{")
    with pytest.raises(PlinthError) as direct:
        analyse_bundle(tmp_path / "b")
    with pytest.raises(RunError) as passed_on:
        analyst.do("report", BundleFolder(tmp_path), ["b"])
    for part in ("message", "where", "hint", "details"):
        assert getattr(passed_on.value, part) == getattr(direct.value, part)


def test_after_the_end_nothing_is_analysed(tmp_path, analyst):
    analyst.close()
    with pytest.raises(RunError):
        analyst.do("answer", BundleFolder(tmp_path), [""])


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_ctrl_c_ends_a_report_that_is_being_made_and_those_that_wait_for_it(tmp_path, monkeypatch, number):
    """A process that is stopped never ends its work: so does no report, however large."""
    monkeypatch.setenv("PLINTH_STATE_DIR", str(tmp_path / "state"))
    for name in ("b", "c"):
        written(tmp_path / "in" / name)
    served = Served(tmp_path / "in")
    page = catalogue(served)
    of_answers = set(children(served.pid))
    keys = re.findall(r"/bundles/([0-9a-f]{20})", page)
    ticked = "&".join(f"bundle={key}" for key in keys)
    before = threads(served)
    assert served.ask(f"/bundles/{keys[0]}")[0] == 200
    (process,) = set(children(served.pid)) - of_answers
    os.kill(process, signal.SIGSTOP)
    paths = (f"/bundles/{keys[1]}", f"/compare?{ticked}") * 2
    asking = [ThreadPoolExecutor(1).submit(ask, served, path) for path in paths]
    wait_until(lambda: threads(served) > before)
    code, errors = served.interrupt(number)
    assert (code, len(errors.splitlines())) == (130, 1), errors
    wait_until(lambda: not Path(f"/proc/{process}").exists())
    for one in asking:
        one.result(60)


def ask(served, path):
    with suppress(OSError, HTTPException):  # the server ends first, or says that it does
        served.ask(path)


def threads(served):
    return sum(1 for _ in Path(f"/proc/{served.pid}/task").iterdir())


def test_the_process_ends_with_a_server_that_is_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("PLINTH_STATE_DIR", str(tmp_path / "state"))
    written(tmp_path / "in" / "b")
    with Served(tmp_path / "in") as served:
        wait_until(lambda: children(served.pid), timeout_s=60)
        (process,) = children(served.pid)
        served.interrupt(signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{process}").exists(), timeout_s=60)
