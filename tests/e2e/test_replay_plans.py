"""What a plan refuses of an experiment that replays a recording."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from plinth.workload.server_log import prepare_replay

END = "2026-11-27 10:00:09.000 UTC [1] LOG:  database system is shut down\n"
LOG = f"""\
2026-11-27 10:00:00.000 UTC [7] app@shop LOG:  duration: 2.000 ms  statement: SELECT 1
2026-11-27 10:00:09.000 UTC [7] app@shop LOG:  duration: 2.000 ms  statement: SELECT 2
{END}"""
OTHER = f"2026-11-27 10:00:02.000 UTC [8] app@other LOG:  duration: 2.000 ms  statement: SELECT 3\n{END}"
PREFIX = "%m [%p] %q%u@%d "
EXPERIMENT = f"""\
spec = 1
name = "replayed"
question = "Which is refused?"
[storage.disk]
kind = "directory"
[dataset]
kind = "tpcb"
scale = 1
[workload]
replay = "shop.log"
log_line_prefix = "{PREFIX}"
[measure]
warmup = "0s"
restore = "auto"
"""


@pytest.fixture
def written(project):
    (project.folder / "shop.log").write_text(LOG)
    return project


def said(project, *changes: tuple[str, str]) -> tuple[int, str]:
    text = EXPERIMENT
    for change in changes:
        assert change[0] in text
        text = text.replace(*change)
    project.write(text)
    done = project.plinth("plan", "x.toml")
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.long
def test_a_trial_is_as_long_as_the_recording(written) -> None:
    code, text = said(written)
    assert code == 0, text
    assert "2 recorded statements of 1 session, at 1x speed" in text
    assert "0 us warm-up and 10 s measured" in text
    _, text = said(written, ("[measure]", '[measure]\nduration = "3s"'))
    assert "3 s measured" in text
    _, text = said(written, ('replay = "shop.log"', 'replay = "shop.log"\nspeed = 3'))
    assert "at 3x speed" in text and "4 s measured" in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([('restore = "auto"', "")], "each trial but the first would find what those before it have written"),
        ([('warmup = "0s"', 'warmup = "20s"')], "nothing would be measured"),
        ([("shop.log", "absent-*.log")], "there is no file 'absent-*.log'"),
        ([("shop.log", "a**.log")], "is no path and no pattern"),
        ([('"shop.log"', '"x.toml"')], "none of its first 1000 lines"),
        (
            [("[measure]", '[fleet]\nexecutor = "local"\nmachines = 2\n[measure]')],
            "1 session at one time for 2 machines: each machine needs one at least",
        ),
        ([("[workload]", "[workload]\nclients = 4\nrate = 5")], "clients, rate: not with replay"),
        ([('replay = "shop.log"', 'builtin = "tpcb-like"\nspeed = 2.0')], "speed, log_line_prefix: of replay only"),
        ([('replay = "shop.log"', 'replay = "shop.log"\nspeed = 0')], "workload.speed"),
        (
            [('replay = "shop.log"', 'replay = "shop.log"\nsessions = { user = "nobody" }')],
            "nothing of the log can be replayed: 0 statements were read, and 2 left out",
        ),
        (
            [('replay = "shop.log"', 'replay = "shop.log"\nsessions = { begin = "soon" }')],
            "cannot read the time 'soon'",
        ),
    ],
)
def test_what_cannot_be_replayed_has_its_reason(written, changes: list[tuple[str, str]], words: str) -> None:
    code, text = said(written, *changes)
    assert code == 2, text
    assert words in text


@pytest.mark.long
def test_restoring_is_left_out_if_that_is_asked_for(written) -> None:
    code, text = said(written, ('restore = "auto"', 'restore = "none"'))
    assert code == 0, text
    code, text = said(written, ('restore = "auto"', ""), ("[workload]", "[workload]\nwrites = false"))
    assert code == 0, text
    assert "read-only" in text


@pytest.mark.long
def test_a_replay_file_of_another_version_is_made_again(written) -> None:
    assert said(written)[0] == 0
    (cached,) = Path(written.state).glob("cache/replays/*.replay")
    cached.write_bytes(b"PLINTHRP\x63" + cached.read_bytes()[9:])
    code, text = said(written)
    assert code == 0 and "2 recorded statements" in text, text


@pytest.mark.long
def test_a_replay_file_that_nobody_plans_with_is_removed(written) -> None:
    assert said(written)[0] == 0
    (cached,) = Path(written.state).glob("cache/replays/*.replay")
    old, in_use = cached.with_name("old.replay"), cached.stat().st_mtime - 29 * 86_400
    old.write_bytes(cached.read_bytes())
    os.utime(old, times=(0, in_use - 2 * 86_400))
    os.utime(cached, times=(0, in_use))
    assert said(written)[0] == 0
    assert not old.exists()
    assert cached.stat().st_mtime > in_use + 86_400, "it counts from when it was last used"


@pytest.mark.long
def test_a_recording_of_several_databases_has_to_be_divided(written) -> None:
    (written.folder / "shop.log").write_text(LOG + OTHER)
    code, text = said(written)
    assert code == 2 and "the recording is of 2 databases: other, shop; a replay has one" in text
    chosen = 'replay = "shop.log"\nsessions = { database = "shop" }'
    code, text = said(written, ('replay = "shop.log"', chosen))
    assert code == 0, text


def test_a_replay_file_is_chosen_from_when_it_is_made(written) -> None:
    folder = Path(written.folder)
    prepare_replay([folder / "shop.log"], folder / "shop.replay", log_line_prefix=PREFIX)
    code, text = said(written, ('"shop.log"', '"shop.replay"'))
    assert code == 2 and "are for logs, and workload.replay is a replay file" in text
    code, text = said(written, ('"shop.log"', '"shop.replay"'), (f'log_line_prefix = "{PREFIX}"\n', ""))
    assert code == 0, text


@pytest.mark.long
def test_the_plan_lists_what_the_replay_leaves_out_as_the_commands_for_logs_do(written) -> None:
    bound = "2026-11-27 10:00:03.000 UTC [7] app@shop LOG:  duration: 1.000 ms  execute <unnamed>: SELECT $1\n"
    (written.folder / "shop.log").write_text(LOG.replace(END, bound + END) + OTHER)
    chosen = ('replay = "shop.log"', 'replay = "shop.log"\nsessions = { database = "shop" }')
    path = str(written.folder / "shop.log")
    reason = f"1: its parameters are not in the log first in {path}:3"
    for _ in ("read", "kept in the cache"):
        code, text = said(written, chosen)
        assert code == 0, text
        assert "1 statement left out, of other sessions or times" in text
        assert f"Not replayable {reason}" in text
    (recording,) = {json.dumps(one["recording"]["left_out"]) for one in planned(written)["variants"]}
    assert json.loads(recording) == {
        "not_chosen": 1,
        "not_replayable": [{"path": path, "line": 3, "reason": "parameters_absent", "count": 1}],
    }
    done = written.plinth(
        "replay", "prepare", path, "-o", "a.replay", "--database", "shop", "--log-line-prefix", PREFIX
    )
    assert reason in " ".join(done.stdout.split()) and "1 statement left out, of other sessions or times" in done.stdout
    code, text = said(written, ('"shop.log"', '"a.replay"'), (f'log_line_prefix = "{PREFIX}"\n', ""))
    assert code == 0 and "Not replayable" not in text


def planned(project) -> dict[str, Any]:
    return json.loads(project.plinth("plan", "x.toml", "--json").stdout)
