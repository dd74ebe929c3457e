"""Settings of the load's sessions on an external server: levels of a factor, seen by the load itself, and by nobody else."""

import json

import psycopg
import pytest

EXPERIMENT = """\
spec = 1
name = "options"
question = "What does it cost to wait for each commit?"

[server]
connection = "service=mine"
connection_options."plinth.note" = "two words \\\\ and more"

[dataset]
kind = "tpcb"
scale = 1

[workload]
script = "note.sql"

[matrix]
server.connection_options.synchronous_commit = ["local", "no"]

[measure]
warmup = "0s"
duration = "300ms"
repeats = 1
aa = false
"""
SCRIPT = "INSERT INTO public.seen SELECT current_setting('synchronous_commit'), current_setting('plinth.note');\n"


@pytest.mark.long
def test_each_variant_has_its_own_in_the_sessions_of_its_load(project, service):
    string, services = service
    with psycopg.connect(string, autocommit=True) as control:
        control.execute("CREATE TABLE seen (level text, note text)")
    (project.folder / "note.sql").write_text(SCRIPT)
    project.write(EXPERIMENT)
    planned = project.plinth("plan", "x.toml", "--json", PGSERVICEFILE=str(services))
    assert planned.returncode == 0, planned.stderr
    plan = json.loads(planned.stdout)
    assert [one["id"] for one in plan["variants"]] == ["synchronous-commit-local", "synchronous-commit-no"]
    assert [one["label"] for one in plan["variants"]] == ["synchronous_commit=local", "synchronous_commit=no"]
    assert len(plan["clusters"]) == 1, "one schema with one dataset serves both"
    done = project.run(PGSERVICEFILE=str(services))
    assert done.returncode in (0, 3), done.stderr
    assert [trial["status"] for trial in project.trials()] == ["complete"] * 2
    with psycopg.connect(string) as control:
        seen = control.execute("SELECT DISTINCT level, note FROM seen ORDER BY 1").fetchall()
        assert seen == [("local", "two words \\ and more"), ("off", "two words \\ and more")]
        assert control.execute("SHOW synchronous_commit").fetchone() == ("on",)
    report = json.loads(project.plinth("report", project.bundle, "--json").stdout)
    rows = {row["name"]: row for row in report["settings"]}
    assert {cell["text"] for cell in rows["synchronous_commit"]["cells"]} == {"local", "off"}


@pytest.mark.long
def test_options_that_the_server_does_not_take_are_found_by_the_plan(project, service):
    _, services = service
    (project.folder / "note.sql").write_text("SELECT 1;\n")
    project.write(EXPERIMENT.replace('["local", "no"]', '["local", "sometimes"]'))
    planned = project.plinth("plan", "x.toml", PGSERVICEFILE=str(services))
    assert planned.returncode == 1, planned.stderr
    assert "server.connection_options" in planned.stderr and "sometimes" in planned.stderr
    done = project.run(PGSERVICEFILE=str(services))
    assert done.returncode == 1, done.stderr
    status = {trial["variant"]: trial["status"] for trial in project.trials()}
    assert status == {"synchronous-commit-local": "complete", "synchronous-commit-sometimes": "failed"}


def test_they_are_for_external_servers_and_not_for_the_search_path(project):
    words = ("--set", 'server.connection_options.synchronous_commit="off"')
    done = project.plinth("plan", "x.toml", *words)
    assert done.returncode == 2
    assert "only with connection" in done.stderr
    project.write(EXPERIMENT.replace("script = ", "builtin = 'tpcb-like' # ").replace('"plinth.note"', "search_path"))
    done = project.plinth("plan", "x.toml")
    assert done.returncode == 2
    assert "search_path: Plinth sets it" in done.stderr
