"""`plinth replay prepare`: what of a log goes into a replay file."""

import json
from pathlib import Path
from typing import Any

import pytest

from plinth.cli import main
from plinth.model.errors import UsageError
from plinth.workload.server_log import read_replay

LOG = """\
2026-11-27 10:00:00.000 UTC [7] app@shop LOG:  connection received: host=[local]
2026-11-27 10:00:00.010 UTC [7] app@shop LOG:  connection authorized: user=app database=shop
2026-11-27 10:00:01.000 UTC [7] app@shop LOG:  duration: 2.000 ms  statement: SELECT 'secret', 1
2026-11-27 10:00:02.000 UTC [8] web@other LOG:  duration: 3.000 ms  statement: SELECT 2
2026-11-27 10:00:03.000 UTC [7] app@shop LOG:  duration: 2.000 ms  execute x: SELECT $1
2026-11-27 10:00:03.000 UTC [7] app@shop DETAIL:  parameters: $1 = 'it''s'
2026-11-27 10:00:04.000 UTC [7] app@shop LOG:  duration: 9.000 ms  execute x: UPDATE t SET a = $1
2026-11-27 10:00:05.000 UTC [1] LOG:  database system is shut down
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "postgresql.log"
    path.write_text(LOG)
    return path


def prepared(log: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    output = log.parent / "a.replay"
    code = main(
        ["replay", "prepare", str(log), "-o", str(output), "--log-line-prefix", "%m [%p] %q%u@%d ", "--json", *words]
    )
    out, err = capsys.readouterr()
    assert code in (0, 1), err
    return code, json.loads(out)


def test_what_can_be_replayed_is_written_for_its_owner_alone(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = prepared(log, capsys)
    assert code == 0
    assert found["written"] | {"size_bytes": 0} == {
        "statements": 3,
        "sessions": 2,
        "sessions_at_once": 2,
        "texts": 3,
        "classes": 2,
        "size_bytes": 0,
        "span_us": 3_000_000,
    }
    assert [(one["reason"], one["count"]) for one in found["check"]["not_replayable"]] == [("parameters_absent", 1)]
    output = log.parent / "a.replay"
    assert output.stat().st_mode & 0o777 == 0o600
    facts = read_replay(output, 1)
    assert [(one.name, one.weight) for one in facts.classes] == [("select $1", 2), ("(other statements)", 1)]
    assert (facts.databases, facts.users) == (("other", "shop"), ("app", "web"))
    assert sorted(path.name for path in log.parent.iterdir()) == ["a.replay", "postgresql.log"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "statements", "left_out"),
    [
        (("--user", "web"), 1, 3),
        (("--database", "shop", "--database", "other"), 3, 0),
        (("--begin", "2026-11-27 11:00:01.500 CET"), 2, 1),
        (("--end", "2026-11-27 10:00:01.500 UTC"), 1, 3),
    ],
)
def test_sessions_and_times_are_chosen(
    log: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], statements: int, left_out: int
) -> None:
    _, found = prepared(log, capsys, *words)
    assert (found["written"]["statements"], found["left_out"]) == (statements, left_out)


def test_nothing_to_replay_leaves_no_file(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = prepared(log, capsys, "--user", "nobody")
    assert (code, found["left_out"]) == (1, 4)
    assert not (log.parent / "a.replay").exists()


def test_a_file_is_overwritten_only_if_asked(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepared(log, capsys)
    words = ["replay", "prepare", str(log), "-o", str(log.parent / "a.replay"), "--log-line-prefix", "%m [%p] %q%u@%d "]
    assert main(words) == 2
    assert "is there already" in capsys.readouterr().err
    assert main([*words, "--overwrite"]) == 0
    out, _ = capsys.readouterr()
    assert "a.replay: 3 statements of 2 sessions, at most 2 at once, in 3 s" in " ".join(out.split())
    assert "secret" not in out


def test_what_may_be_cut_is_named_and_not_replayed(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A collector has made blanks of the tab, with which the further lines of a statement begin."""
    statement = "2026-11-27 10:00:06.000 UTC [7] app@shop LOG:  duration: 1.000 ms  statement: DELETE FROM orders\n"
    end = "2026-11-27 10:00:09.000 UTC [1] LOG:  database system is shut down\n"
    log.write_text(f"{LOG}{statement}    WHERE id = 7\n{end}")
    _, found = prepared(log, capsys)
    uncertain = [one for one in found["check"]["not_replayable"] if one["reason"] == "end_uncertain"]
    assert [(one["count"], one["line"], one["text"]) for one in uncertain] == [(1, 9, "DELETE FROM orders")]
    assert found["written"]["statements"] == 3
    words = ["--log-line-prefix", "%m [%p] %q%u@%d "]
    for command in (["check", *words], ["prepare", "-o", str(log.parent / "a.replay"), "--overwrite", *words]):
        assert main(["replay", command[0], str(log), *command[1:]]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert "1: its end is not certain" in out and f"first in {log}:9" in out
        assert "Not read 1 record: no line of this log_line_prefix" in out and f"first in {log}:10" in out
        assert "can be replayed: all" not in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--begin", "yesterday"), "cannot read the time 'yesterday'"),
        (("-o", "/nowhere/a.replay"), "/nowhere/a.replay"),
    ],
)
def test_what_cannot_be_prepared_has_its_reason(
    log: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    output = () if "-o" in words else ("-o", str(log.parent / "a.replay"))
    assert main(["replay", "prepare", str(log), "--log-line-prefix", "%m [%p] %q%u@%d ", *output, *words]) > 0
    assert said in " ".join(capsys.readouterr().err.split())
    assert sorted(path.name for path in log.parent.iterdir()) == ["postgresql.log"]


def test_another_file_is_no_replay_file(log: Path) -> None:
    with pytest.raises(UsageError, match="it is no replay file"):
        read_replay(log, 10)
    cut = log.parent / "cut.replay"
    cut.write_bytes(b"PLINTHRP\x01\0\0\0" + bytes(100))
    with pytest.raises(UsageError, match="it is cut off"):
        read_replay(cut, 10)
