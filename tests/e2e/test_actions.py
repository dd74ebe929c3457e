"""Actions at set times during the load: done, shown as events, and a failed one fails its trial."""

import json

import pytest

MEASURE = """\
[measure]
warmup = "200ms"
duration = "2s"
repeats = 1
aa = false
probe = "0s"
"""


def with_actions(project, actions):
    before, _, _ = project.experiment.partition("[measure]")
    project.write(before.replace('storage = ["disk", "memory"]', 'storage = ["memory"]') + MEASURE + actions)


def events(project):
    lines = next(project.bundle.glob("trials/0001-*/events.jsonl")).read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["kind"].startswith("action")]


@pytest.mark.long
def test_actions_are_done_in_time_and_are_events(project, nothing_left):
    with_actions(
        project,
        """
[[measure.action]]
at = "1s"
do = "reload"
[[measure.action]]
at = "500ms"
do = "sql"
sql = "ALTER SYSTEM SET log_min_duration_statement = 4321"
[[measure.action]]
at = "100ms"
do = "checkpoint"
[[measure.action]]
at = "1500ms"
do = "sql"
sql = "DO $$ BEGIN ASSERT current_setting('log_min_duration_statement') = '4321ms'; END $$"
""",
    )
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 0, planned.stderr
    assert "in each trial: checkpoint at 100 ms" in planned.stdout
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    assert project.trials()[0]["status"] == "complete", project.trials()[0]["failure"]
    found = events(project)
    starts = [event for event in found if event["kind"] == "action_start"]
    assert [event["text"].partition(" ")[0] for event in starts] == ["checkpoint", "sql:", "reload", "sql:"]
    for event, due_s in zip(starts, (0.3, 0.7, 1.2, 1.7), strict=True):
        assert due_s - 0.05 <= event["t_ns"] / 1e9 < 2.2
    assert all(": took " in event["text"] for event in found if event["kind"] == "action_end")
    nothing_left()


@pytest.mark.long
def test_an_action_that_fails_fails_its_trial(project, nothing_left):
    with_actions(project, '[[measure.action]]\nat = "100ms"\ndo = "sql"\nsql = "SELECT 1/0"\n')
    done = project.run()
    assert done.returncode == 1, done.stderr
    (trial,) = project.trials()
    assert trial["failure"].startswith("the action sql: SELECT 1/0 at 100 ms failed: division by zero")
    assert "failed after" in events(project)[-1]["text"]
    nothing_left()


@pytest.mark.long
def test_an_action_that_outlasts_the_load_is_cancelled(project, nothing_left):
    """And the one that it kept from beginning is no secret."""
    sleep = '[[measure.action]]\nat = "100ms"\ndo = "sql"\nsql = "SELECT pg_sleep(600)"\n'
    with_actions(project, sleep + '[[measure.action]]\nat = "1s"\ndo = "checkpoint"\n')
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    *_, cancelled, missed = events(project)
    assert cancelled["kind"] == "action_end"
    assert "as the load had ended" in cancelled["text"]
    assert (missed["kind"], missed["text"]) == ("action_missed", "checkpoint at 1 s: not done, as the load had ended")
    nothing_left()


def test_actions_that_make_no_sense_are_refused_in_the_plan(project):
    for action, words in [
        ('at = "2s"\ndo = "checkpoint"', "checkpoint at 2 s: the measured time is 2 s and over by then"),
        ('at = "1s"\ndo = "vacuum"', "measure.action.0.do: do 'vacuum' is unknown; allowed: checkpoint, reload, sql"),
        ('at = "1s"\ndo = "sql"', "the key 'sql' is missing"),
        ('at = "1s"\ndo = "checkpoint"\nsql = "SELECT 1"', "unknown key 'sql'; allowed: at, do"),
        ('do = "checkpoint"', "the key 'at' is missing"),
        ('at = "1s"', "the key 'do' is missing; allowed: checkpoint, reload, sql"),
    ]:
        with_actions(project, f"[[measure.action]]\n{action}\n")
        refused = project.plinth("plan", "x.toml")
        assert refused.returncode == 2, (action, refused.stderr)
        assert words in refused.stderr, (action, refused.stderr)
        assert "x.toml:" in refused.stderr
