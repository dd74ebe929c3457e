"""Scripts whose transactions are none of the server's, or rolled back ones: a trial of them is whole."""

import pytest

EXPERIMENT = """\
spec = 1
name = "few-commits"
question = "Is each of them a trial?"
dataset = { kind = "sql", schema = "schema.sql", load = "load.sql", size = "1MB" }
workload = { script = "rolled-back.sql", clients = 2 }
measure = { warmup = "0s", duration = "1s", repeats = 1, aa = false, probe = "0s" }
[storage.disk]
kind = "directory"
[server]
storage = "disk"
[matrix]
workload.script = ["rolled-back.sql", "sleeps.sql", "not-taken.sql", "several.sql"]
"""
SCRIPTS = {
    "rolled-back": "BEGIN;\nINSERT INTO mine VALUES (1);\nROLLBACK;\n",
    "sleeps": "\\sleep 1 ms\n",
    "not-taken": "\\if false\nSELECT 1;\n\\endif\n\\sleep 1 ms\n",
    "several": "SELECT 1;\nSELECT 2;\nBEGIN;\nSELECT 3;\nCOMMIT;\n",
}


@pytest.mark.long
def test_a_trial_is_checked_by_the_transactions_that_its_script_has_of_the_server(project, nothing_left):
    (project.folder / "schema.sql").write_text("CREATE TABLE mine (n int);\n")
    (project.folder / "load.sql").write_text("INSERT INTO mine VALUES (0);\n")
    for name, text in SCRIPTS.items():
        (project.folder / f"{name}.sql").write_text(text)
    project.write(EXPERIMENT)
    done = project.run()
    trials = project.trials()
    assert [trial["status"] for trial in trials] == ["complete"] * 4, done.stderr
    counted = {}
    for trial in trials:
        (check,) = (check for check in trial["checks"] if "xact_commit" in check["name"])
        assert check["ok"] and trial["measured"]["done"] > 0
        counted[trial["variant"]] = (int(check["expected"].removeprefix("at least ")), trial["totals"]["done"])
    assert sorted(least / done for least, done in counted.values()) == [0, 0, 1, 3]
    nothing_left()
