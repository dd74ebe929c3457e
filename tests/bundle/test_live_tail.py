"""Following a live log: it grows, is replaced, ends in the middle of a line, and may be nothing that Plinth has written."""

import json
import os
import signal

import pytest

from plinth.bundle import LIVE, BundleFolder, LivePlace, LiveTail
from plinth.bundle.live import MAX_LINE_BYTES, MAX_LIVE_BYTES
from typed import present


@pytest.fixture(autouse=True)
def _ends():
    """What waits for a FIFO would wait forever."""
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.fixture
def log(tmp_path):
    (tmp_path / "logs").mkdir()
    return tmp_path / LIVE


def tail(log, after=None):
    return LiveTail(BundleFolder(log.parents[1]), after)


def note(text):
    return json.dumps({"kind": "note", "unix_ns": 1, "text": text}).encode() + b"\n"


def began(unix_ns=5):
    return json.dumps({"kind": "began", "unix_ns": unix_ns, "trials": 1, "cores": 2}).encode() + b"\n"


def append(log, data):
    with log.open("ab") as file:
        file.write(data)


def whole(reader):
    """Texts and problems of all that there is, as one list."""
    read = []
    while (chunk := reader.read()) is not None:
        read += [getattr(event, "text", event.kind) for event in chunk.events]
        read += chunk.problems
    return read


def test_it_reads_on_where_it_was(log):
    log.write_bytes(began() + note("a"))
    reader = tail(log)
    assert whole(reader) == ["began", "a"]
    assert reader.read() is None
    append(log, note("b") + note("c"))
    assert whole(reader) == ["b", "c"]


def test_what_was_written_before_the_log_was_removed_is_read(log):
    """As at the end of a run, whose last lines are the end of its last trial."""
    log.write_bytes(began() + note("a"))
    reader = tail(log)
    assert whole(reader) == ["began", "a"]
    append(log, note("the last"))
    log.unlink()
    assert whole(reader) == ["the last"]
    reader.close()
    assert whole(reader) == []


def test_a_reader_that_reconnects_continues_at_its_place(log):
    log.write_bytes(began() + b"".join(note(str(number)) for number in range(10)))
    chunk = tail(log).read()
    place = LivePlace.parse(str(present(chunk).place))
    append(log, note("later"))
    assert whole(tail(log, place)) == ["later"]


def test_a_log_that_was_replaced_is_read_from_its_beginning_even_by_who_comes_back(log):
    log.write_bytes(began(1) + note("a"))
    reader = tail(log)
    place = present(reader.read()).place
    other = log.with_name("other")
    other.write_bytes(began(2) + note("b") + note("c"))
    other.replace(log)
    assert whole(reader) == ["began", "b", "c"]
    assert whole(tail(log, place)) == ["began", "b", "c"]


def test_a_log_that_became_shorter_is_read_from_its_beginning(log):
    log.write_bytes(began() + note("a" * 500) + note("b"))
    reader = tail(log)
    whole(reader)
    os.truncate(log, len(began() + note("a" * 500)))
    assert whole(reader) == ["began", "a" * 500]


def test_a_line_without_its_end_waits_for_it(log):
    line = note("whole")
    log.write_bytes(began() + line[:10])
    reader = tail(log)
    assert whole(reader) == ["began"]
    append(log, line[10:])
    assert whole(reader) == ["whole"]


def test_no_log_and_an_empty_one_are_nothing(log):
    reader = tail(log)
    assert reader.read() is None
    log.write_bytes(b"")
    assert reader.read() is None
    log.write_bytes(note("a"))
    assert whole(reader) == ["a"]


BAD = {
    "no JSON": b"{",
    "not UTF-8": b'{"kind": "note", "unix_ns": 1, "text": "\xff"}',
    "no object": b"[1]",
    "an unknown kind": b'{"kind": "shell", "unix_ns": 1}',
    "an unknown key": b'{"kind": "note", "unix_ns": 1, "text": "x", "html": "<b>"}',
    "a number for text": b'{"kind": "note", "unix_ns": 1, "text": 1}',
    "too long a text": b'{"kind": "note", "unix_ns": 1, "text": "' + b"x" * 2001 + b'"}',
    "an endless number": b'{"kind": "note", "unix_ns": ' + b"9" * 5000 + b', "text": "x"}',
    "infinite progress": b'{"kind": "progress", "unix_ns": 1, "task": "x", "done": 1e999, "total": 1, "unit": "", "detail": "", "left_s": null}',
    "nothing but brackets": b"[" * 60_000,
    "a newer version": b'{"kind": "began", "schema_version": 2, "unix_ns": 1, "trials": 1, "cores": 1}',
    "zero bytes": bytes(1000),
}


@pytest.mark.parametrize("line", BAD.values(), ids=BAD)
def test_a_line_that_is_none_is_a_problem_and_the_others_are_read(log, line):
    log.write_bytes(began() + note("a") + line + b"\n" + note("b"))
    *events, problem = whole(tail(log))
    assert events == ["began", "a", "b"]
    assert "a line that cannot be read" in problem
    assert len(problem) < 600


def test_many_bad_lines_are_one_problem(log):
    log.write_bytes(b"x\n" * 10_000 + note("a"))
    first, problem = whole(tail(log))
    assert first == "a"
    assert "10,000 lines" in problem


def test_a_line_longer_than_any_of_ours_is_passed_over_and_not_kept(log):
    log.write_bytes(note("a") + b"y" * (5 * MAX_LINE_BYTES) + b"y" * 2**20 + b"\n" + note("b"))
    read = whole(tail(log))
    assert [read[0], read[-1]] == ["a", "b"]
    assert len(read) == 3
    assert f"{MAX_LINE_BYTES:,}" in read[1]


def test_a_log_larger_than_any_of_ours_is_read_up_to_a_bound_which_is_said(log):
    log.write_bytes(note("a"))
    os.truncate(log, 4 * MAX_LIVE_BYTES)  # a hole: a line of zeros
    append(log, b"\n" + note("never"))
    read = whole(tail(log))
    assert read[0] == "a"
    assert "never" not in read
    assert "the rest is not read" in read[-1]


def a_fifo(log):
    os.mkfifo(log)


def a_link(log):
    log.symlink_to("/etc/passwd")


def a_folder(log):
    log.mkdir()


def a_linked_folder(log):
    log.parent.rmdir()
    log.parent.symlink_to("/etc")


@pytest.mark.parametrize(
    ("make", "reason"),
    [(a_fifo, "a FIFO"), (a_link, "a symbolic link"), (a_folder, "a folder"), (a_linked_folder, "cannot read")],
)
def test_what_is_no_file_is_a_problem_reported_once(log, make, reason):
    make(log)
    reader = tail(log)
    (problem,) = present(reader.read()).problems
    assert reason in problem
    assert reader.read() is None


@pytest.mark.parametrize(
    "text", ["", "x", "1-2", "../../etc-1", "0123456789abcdef-", "0123456789abcdef-99999999999", "0123456789ABCDEF-1"]
)
def test_a_place_that_is_none_is_the_beginning(log, text):
    log.write_bytes(note("a"))
    assert LivePlace.parse(text) is None
    assert whole(tail(log, LivePlace.parse(text))) == ["a"]


def test_a_place_of_another_log_or_beyond_its_end_is_the_beginning(log):
    log.write_bytes(note("a"))
    mine = present(tail(log).read()).place
    for place in (LivePlace("0" * 16, 1), mine._replace(offset=10**9)):
        assert whole(tail(log, place)) == ["a"]
