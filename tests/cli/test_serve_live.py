"""`plinth serve` of a run that goes on: a stream of what its live log says, by a real server in a process of its own."""

import http.client
import json
import os
import re
from contextlib import contextmanager
from pathlib import Path

import pytest

from live_bundles import Going, going
from plinth.bundle import BundleFolder, BundleWriter, read_manifest
from plinth.model.live import LiveEnd
from plinth.run import live_log
from plinth.serve.live import MAX_STREAMS
from plinth.system.lock import DirectoryLock
from serving import Served
from small_bundles import CONTENTS, change, written
from typed import present
from waiting import wait_until

SERIES = CONTENTS.trials[0].series


@pytest.fixture(autouse=True)
def state(tmp_path_factory, monkeypatch):
    """Where answers are kept."""
    monkeypatch.setenv("PLINTH_STATE_DIR", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def served(tmp_path):
    with Served(tmp_path) as served:
        yield served


def key(served):
    """The key of the only bundle."""
    (found,) = re.findall(r'href="/[^/"]+/bundles/([0-9a-f]{20})"', served.ask("/")[2])
    return found


class Stream:
    """An open stream of events; each is its fields by name."""

    def __init__(self, served, path, **headers):
        self._connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        self._connection.request("GET", served.root + path, headers={"Cookie": served.cookie, **headers})
        self.answer = self._connection.getresponse()

    def next(self):
        """The next event that is no comment; None at the end of the stream."""
        fields = {}
        while line := self.answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if not name and fields:
                return fields
            if name and not name.startswith(":"):
                fields[name] = value
        return None

    def until(self, kind):
        """The events up to one of a kind, and the place after it."""
        found = []
        message = {"id": None}
        while not any(event["kind"] == kind for event in found):
            message = self.next()
            assert message is not None and "event" not in message, f"the stream ended before {kind}: {message}"
            found += json.loads(message["data"])["events"]
        return found, message["id"]

    def end(self):
        """How the run ended, as the last event says."""
        while (message := self.next()) is not None:
            if message.get("event") == "end":
                assert self.next() is None
                return LiveEnd.model_validate_json(message["data"])
        return None

    def close(self):
        self.answer.close()
        self._connection.close()


@contextmanager
def opened(served, path, **headers):
    stream = Stream(served, path, **headers)
    try:
        yield stream
    finally:
        stream.close()


def finish(path, status):
    folder = BundleFolder(path)
    BundleWriter(folder, read_manifest(folder)).finish(status, None if status == "complete" else "a reason")


def test_the_catalogue_links_only_running_runs_to_the_live_page(tmp_path, served):
    written(tmp_path / "whole", trials=False)
    written(tmp_path / "killed", trials=False, finished=False)
    with going(tmp_path / "b"):
        page = served.ask("/")[2]
        (live,) = re.findall(r'href="/[^/"]+(/live/[0-9a-f]{20})">running<', page)
        assert (
            live.replace("live", "bundles")
            in present(re.search(r"<tr [^>]*>.*?/b</td></tr>", page.replace("</tr>", "</tr>\n")))[0]
        )
    assert "/live/" not in served.ask("/")[2]


def test_a_stream_has_the_history_and_then_what_comes(tmp_path, served):
    with going(tmp_path / "b") as run:
        run.log.note("before")
        run.whole_trial(0)
        run.begin(1)
        run.second(SERIES[0])
        with opened(served, f"/live/{key(served)}/events") as stream:
            assert stream.answer.headers["Content-Type"].startswith("text/event-stream")
            assert stream.answer.headers["Cache-Control"] == "no-store"
            history, _ = stream.until("second")
            kinds = [event["kind"] for event in history if event["kind"] not in ("variant", "second")]
            assert kinds == ["began", "note", "trial_started", "trial_ended", "trial_started"]
            run.second(SERIES[1])
            (later,) = stream.until("second")[0]
            assert later["done"] == SERIES[1].done
            run.end(1)
            run.begin(2)
            assert [event["kind"] for event in stream.until("trial_started")[0]] == ["trial_ended", "trial_started"]


def test_a_log_that_was_rewritten_is_sent_from_its_beginning(tmp_path, served, monkeypatch):
    monkeypatch.setattr(live_log, "MAX_VOID_BYTES", 1000)
    with going(tmp_path / "b") as run:
        run.begin(0)
        with opened(served, f"/live/{key(served)}/events") as stream:
            stream.until("trial_started")
            for _ in range(10):
                run.second(SERIES[0])
            run.end(0)
            stream.until("trial_ended")
            run.begin(1)
            again = [event["kind"] for event in stream.until("trial_started")[0] if event["kind"] != "variant"]
            assert again == ["began", "trial_ended", "trial_started"]


def test_a_reader_that_reconnects_gets_what_it_lacks_and_another_all(tmp_path, served):
    with going(tmp_path / "b") as run:
        run.begin()
        run.second(SERIES[0])
        path = f"/live/{key(served)}/events"
        with opened(served, path) as stream:
            place = present(stream.until("second")[1])
        run.second(SERIES[1])
        with opened(served, path, **{"Last-Event-ID": place}) as stream:
            assert [event["done"] for event in stream.until("second")[0]] == [SERIES[1].done]
        with opened(served, f"{path}?after={place}") as stream:
            assert [event["done"] for event in stream.until("second")[0]] == [SERIES[1].done]
        for other in ("", "x", "0000000000000000-5", place + "9", "../../etc/passwd"):
            with opened(served, path, **{"Last-Event-ID": other}) as stream:
                assert stream.until("second")[0][0]["kind"] == "began"


@pytest.mark.parametrize("status", ["complete", "interrupted", "failed"])
def test_a_run_that_ends_is_said_to_have_ended(tmp_path, served, status):
    with going(tmp_path / "b") as run:
        run.whole_trial()
        stream = Stream(served, f"/live/{key(served)}/events")
        stream.until("trial_ended")
        run.log.close()
        finish(run.path, status)
    assert stream.end() == LiveEnd(state=status, reason=None if status == "complete" else "a reason")
    stream.close()
    with opened(served, f"/live/{key(served)}/events") as stream:  # of whoever comes later
        assert present(stream.end()).state == status


def test_a_run_that_was_killed_is_not_said_to_run_and_its_history_is_there(tmp_path, served):
    with going(tmp_path / "b") as run:
        run.begin()
        run.second(SERIES[0])
        stream = Stream(served, f"/live/{key(served)}/events")
        stream.until("second")
    end = stream.end()
    assert present(end).state == "killed"
    assert f"`plinth resume {tmp_path / 'b'}`" in present(present(end).reason)
    stream.close()
    with opened(served, f"/live/{key(served)}/events") as stream:
        stream.until("second")
        assert stream.end() == end
    assert served.ask(f"/live/{key(served)}")[0] == 200


def test_a_killed_run_that_is_resumed_continues_in_the_page(tmp_path, served):
    with going(tmp_path / "b") as run:
        run.whole_trial()
    with DirectoryLock(tmp_path / "b"):
        resumed = Going(tmp_path / "b", earlier=CONTENTS.trials[:1])
        with opened(served, f"/live/{key(served)}/events") as stream:
            assert [event["number"] for event in stream.until("trial_ended")[0] if event["kind"] == "trial_ended"] == [
                1
            ]
            resumed.begin(1)
            stream.until("trial_started")


def test_a_bundle_that_goes_away_ends_its_stream(tmp_path, served):
    with going(tmp_path / "b") as run:
        run.begin()
        stream = Stream(served, f"/live/{key(served)}/events")
        stream.until("trial_started")
        (run.path / "manifest.json").unlink()
    assert present(stream.end()).state == "unreadable"
    stream.close()


def test_hostile_names_and_texts_are_text(tmp_path, served):
    text = '</script><script>alert("q")</script><img src=x onerror=alert(2)>\u202e\x1b]0;x\x07\n\ndata: x\r\nevent: end'
    with going(tmp_path / "b") as run:
        change(run.path / "manifest.json", experiment=text)
        plan = json.loads((run.path / "plan.json").read_text())
        plan["experiment"]["question"] = text
        (run.path / "plan.json").write_text(json.dumps(plan))
        run.log.note(text)
        status, _, page = served.ask(f"/live/{key(served)}")
        assert status == 200
        assert page.count("<script") == 2
        assert "<img" not in page
        assert "\u202e" not in page
        assert "&lt;/script&gt;&lt;script&gt;" in page
        with opened(served, f"/live/{key(served)}/events") as stream:
            (note,) = (event for event in stream.until("note")[0] if event["kind"] == "note")
        assert note["text"].startswith("</script><script>alert")
        assert "\u202e" not in note["text"]
        assert "\\u202e\\x1b]0;x\\x07" in note["text"]


@pytest.mark.parametrize("what", ["a FIFO", "a symbolic link", "bad lines", "a huge line", "no end of its last line"])
def test_what_cannot_be_read_is_reported_and_the_run_continues(tmp_path, served, what):
    with going(tmp_path / "b") as run:
        run.log.close()
        if what == "bad lines":
            run.file.write_bytes(b"{\n" * 1000)
        elif what == "a huge line":
            run.file.write_bytes(b"x" * 2**20)
        elif what == "no end of its last line":
            run.file.write_bytes(run.file.read_bytes() + b'{"kind": "note", "unix_ns"')
        else:
            run.file.unlink()
            os.mkfifo(run.file) if what == "a FIFO" else run.file.symlink_to("/etc/passwd")
        with opened(served, f"/live/{key(served)}/events") as stream:
            message = json.loads(present(stream.next())["data"])
            expected = {"bad lines": "1,000 lines", "a huge line": "65,536 bytes"}.get(what, what)
            if what == "no end of its last line":
                assert message["problems"] == []
            else:
                assert message["events"] == []
                assert expected in message["problems"][0]
                assert "root:" not in message["problems"][0]
        assert '">running<' in served.ask("/")[2]


def test_streams_need_the_token_and_our_pages_as_origin(tmp_path, served):
    with going(tmp_path / "b"):
        live = f"/live/{key(served)}"
        for path in (live, f"{live}/events", "/live.js", "/live.css"):
            assert served.ask(path, cookie=False)[0] == 403
            for headers in (
                {"Origin": "https://evil.example"},
                {"Host": "evil.example"},
                {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-site"},
                {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "cross-site"},
            ):
                assert served.ask(path, headers=headers)[0] in (403, 421)
            assert served.ask(path, "POST")[0] == 405
    for path in ("/live/x", "/live/x/events", "/live/..%2f..", "/live//events"):
        assert served.ask(path)[0] == 404


def test_only_live_page_and_catalogue_may_run_scripts_and_ask_and_only_this_server(tmp_path, served):
    with going(tmp_path / "b"):
        policies = {
            path: served.ask(path)[1]["Content-Security-Policy"]
            for path in ("/", f"/live/{key(served)}", "/compare", "/catalogue.css")
        }
    live = policies.pop(f"/live/{key(served)}")
    directives = dict(directive.strip().split(" ", 1) for directive in live.split(";"))
    assert directives == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "font-src": "data:",
        "img-src": "data:",
        "form-action": "'none'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    of_catalogue = policies.pop("/")
    assert "script-src 'self'; connect-src 'self'" in of_catalogue
    assert "unsafe" not in of_catalogue
    for policy in policies.values():
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert "connect-src" not in policy


def descriptors(served):
    return sum(1 for _ in Path(f"/proc/{served.pid}/fd").iterdir())


def test_many_open_streams_leave_room_for_pages_and_readers_that_go_away_end_theirs(tmp_path, served):
    with going(tmp_path / "b") as run:
        run.begin()
        path = f"/live/{key(served)}/events"
        before = descriptors(served)
        streams = [Stream(served, path) for _ in range(MAX_STREAMS)]
        for stream in streams:
            stream.until("trial_started")
        assert descriptors(served) > before + MAX_STREAMS
        refused = Stream(served, path)
        assert refused.answer.status == 503
        refused.close()
        assert served.ask("/")[0] == 200
        run.second(SERIES[0])
        for stream in streams:
            stream.until("second")
            stream.close()
        wait_until(lambda: descriptors(served) <= before + 2)
        with opened(served, path) as stream:
            stream.until("second")


def test_ctrl_c_ends_it_at_once_with_any_streams_open(tmp_path):
    with going(tmp_path / "b") as run:
        run.begin()
        served = Served(tmp_path)
        path = f"/live/{key(served)}/events"
        streams = [Stream(served, path) for _ in range(5)]
        for stream in streams:
            stream.until("trial_started")
        code, errors = served.interrupt()
        assert code == 130, errors
        assert "Traceback" not in errors
        assert [stream.end() for stream in streams] == [None] * 5


def test_ctrl_c_ends_it_though_a_reader_takes_nothing(tmp_path):
    with going(tmp_path / "b") as run:
        run.begin()
        for _ in range(20_000):
            run.second(SERIES[0])
        served = Served(tmp_path)
        stream = Stream(served, f"/live/{key(served)}/events")  # which nobody reads
        code, errors = served.interrupt()
        assert code == 130, errors
        stream.close()
