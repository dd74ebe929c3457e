"""The main job: one file, one command, a report."""

import csv
import io
import json
import os
import shutil
from pathlib import Path

import pytest

from browser import check_report
from command_line import loaded_by
from plinth.analyse import analyse
from plinth.bundle import read_bundle
from plinth.model.loaded import LoadedDataset
from plinth.model.probe import FsyncProbe


@pytest.fixture(scope="module")
def finished(module_project):
    """A run with everything in it, small. Its tests only read it."""
    done = module_project.run("--set", "measure.repeats=3", "--set", "measure.aa=true", "--set", "measure.duration=3s")
    assert done.returncode in (0, 3), done.stderr
    module_project.output = done.stdout
    return module_project


@pytest.mark.long
def test_a_run_leaves_nothing_but_its_bundle(finished):
    assert finished.left_behind() == []
    assert finished.status() == "complete"


def test_every_trial_counts_what_the_database_counted(finished):
    trials = finished.trials()
    assert [t["number"] for t in trials] == list(range(1, 10))
    assert {t["variant"] for t in trials} == {"disk", "memory", "disk-aa"}
    for trial in trials:
        assert trial["status"] == "complete", trial["failure"]
        totals = trial["totals"]
        assert totals["scheduled"] == totals["done"] + totals["failed"] + totals["skipped"] + totals["open"]
        assert trial["tps"] > 0
        # The engine's total against the database's own: rows of history, three sums of balances, xact_commit.
        assert len(trial["checks"]) == 5
        assert all(check["ok"] for check in trial["checks"]), trial["checks"]


def test_stdout_has_the_answer_and_where_the_report_is(finished):
    assert "memory" in finished.output
    assert "acknowledged commits can be lost in a power failure" in finished.output
    assert str(finished.bundle / "derived" / "report.html") in finished.output


def test_the_machine_is_examined_before_the_first_trial(finished):
    (examination,) = json.loads((finished.bundle / "env" / "doctor.json").read_text())["examinations"]
    assert {finding["about"] for finding in examination["findings"]} == {"machine", "disk", "memory"}
    assert examination["taken_unix_ns"] < finished.trials()[0]["started_unix_ns"]


def test_commit_ceilings_come_from_the_probes_of_the_storages(finished):
    for storage in ("disk", "memory"):
        probe = FsyncProbe.model_validate_json((finished.bundle / "env" / f"probe-{storage}.json").read_text())
        assert {result.case.writers for result in probe.of("group_commit")} == {1, 4}
        assert not [result for result in probe.results if result.figure is None and result.failed]
    ceilings = {variant.id: variant.ceiling for variant in analyse(read_bundle(finished.bundle)).variants}
    assert all(ceiling and ceiling.reached and ceiling.clients == 4 for ceiling in ceilings.values())


@pytest.mark.parametrize("cluster", ["1-disk", "2-memory"])
def test_what_was_loaded_is_in_the_bundle(finished, cluster):
    loaded = LoadedDataset.model_validate_json((finished.bundle / "env" / f"dataset-{cluster}.json").read_text())
    assert loaded.tables[0].rows == 100_000
    assert 0 < sum(task.duration_s for task in loaded.tasks) <= loaded.load_s
    assert loaded.gaps == ()


def test_results_as_json(finished):
    as_json = finished.plinth("report", finished.bundle, "--json")
    assert as_json.returncode == 0, as_json.stderr
    assert json.loads(as_json.stdout)


def test_results_as_markdown(finished):
    markdown = finished.plinth("report", finished.bundle, "--markdown").stdout
    assert "| " in markdown
    assert "does not keep" in markdown


def test_results_as_csv(finished):
    rows = list(csv.reader(io.StringIO(finished.plinth("report", finished.bundle, "--csv").stdout)))
    assert len(rows) >= 9
    section = finished.plinth("report", finished.bundle, "--csv", "--section", "bottlenecks")
    heads, *variants = csv.reader(io.StringIO(section.stdout))
    assert heads[0] == "Variant" and len(variants) == 3
    other = finished.plinth("report", finished.bundle, "--csv", "--section", "nowhere")
    assert other.returncode == 2 and "bottlenecks" in other.stderr


def test_results_as_a_table_of_a_bundle_that_verifies(finished):
    table = finished.plinth("report", finished.bundle)
    assert table.returncode == 0
    assert "memory" in table.stdout
    assert finished.plinth("verify", finished.bundle).returncode == 0


def test_a_report_loads_nothing_that_runs(finished):
    loaded = loaded_by("report", finished.bundle, environment=finished.environment())
    assert "plinth.analyse" in loaded
    assert not loaded & {"plinth.run", "plinth.storage", "plinth.server", "plinth.observe", "psycopg", "asyncio"}


@pytest.mark.long
def test_results_as_html(finished):
    html = finished.plinth("report", finished.bundle, "--html")
    report = Path(html.stdout.strip())
    assert report.is_file()
    code, findings = check_report(report, "light")
    assert code == 0, findings["failures"]


def test_of_a_damaged_table_nothing_is_said_but_the_error(finished, scratch):
    """DuckDB, which has read others by then, writes of what is left in memory where the process ends without freeing it."""
    damaged = scratch / "damaged"
    shutil.copytree(finished.bundle, damaged)
    table = max(damaged.glob("trials/*/series.parquet"))
    os.truncate(table, 500)
    done = finished.plinth("report", damaged)
    assert done.returncode == 1
    error, where = done.stderr.splitlines()
    assert error.startswith("error: cannot read a table of the bundle: ")
    assert where == f"  where: {table}"


def test_analysis_needs_nothing_but_the_bundle(finished, scratch):
    moved = scratch / "moved"
    shutil.copytree(finished.bundle, moved)
    done = finished.plinth("report", moved, "--json", PLINTH_STATE_DIR="/nonexistent")
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_json_on_stdout_progress_on_stderr(project):
    done = project.run("--json", "--set", "storage=disk", "--set", "measure.aa=true")
    assert done.returncode in (0, 3), done.stderr
    assert json.loads(done.stdout)["analysis"]["experiment"] == "quick"
    assert "trial 1 of 2" in done.stderr
    for ending in ("undo what this run made", "analyse the bundle", "write the report"):
        assert ending in done.stderr
    assert project.plinth("report", project.bundle, "--json").stdout == done.stdout


@pytest.mark.long
def test_another_postgresql_over_tcp_with_scram_and_a_script(project, nothing_left):
    (project.folder / "lookup.sql").write_text(
        "\\set aid random_gaussian(1, 100000 * :scale, 5)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
    )
    text = (project.folder / "x.toml").read_text()
    project.write(
        text.replace('builtin = "tpcb-like"', 'script = "lookup.sql"').replace(
            "[dataset]", '[server]\nversion = 15\nlisten = "tcp"\n\n[dataset]'
        )
    )
    done = project.run("--set", "storage=disk", "--set", "measure.aa=true")
    assert done.returncode in (0, 3), done.stderr
    assert all(t["status"] == "complete" and t["engine"]["server_version"].startswith("15") for t in project.trials())
    nothing_left()


@pytest.mark.long
def test_settings_as_factors_are_read_back(project):
    done = project.run(
        *("--set", "storage=disk", "--set", "measure.aa=true"),
        *("--set", 'matrix."server.settings.fsync"=[true, false]'),
        *("--set", "server.settings.shared_buffers=64MB"),
    )
    assert done.returncode in (0, 3), done.stderr
    for variant, fsync in (("disk-fsync-on", "on"), ("disk-fsync-off", "off")):
        facts = json.loads((project.bundle / "env" / f"server-{variant}.json").read_text())
        values = {setting["name"]: setting["value"] for setting in facts["settings"]}
        assert values["fsync"] == fsync
        assert values["shared_buffers"] == "8192"
    assert "fsync" in done.stdout


@pytest.mark.long
def test_without_root(project):
    """As a user with no rights: in a user namespace, where we are nobody special and may not mount."""
    prefix = ("unshare", "--user", "--map-user=1000", "--map-group=1000") if os.geteuid() == 0 else ()
    done = project.run("--set", "measure.repeats=1", prefix=prefix, HOME=str(project.folder))
    assert done.returncode in (0, 3), done.stderr
    assert "/dev/shm is used instead" in done.stderr
    facts = json.loads((project.bundle / "env" / "storage-memory.json").read_text())
    assert facts["volatile"]
    assert facts["path"].startswith("/dev/shm/")
    assert not list(Path("/dev/shm").glob(f"plinth-{_run_id(project)}*"))
    assert project.left_behind() == []


def _run_id(project):
    return json.loads((project.bundle / "manifest.json").read_text())["run_id"]
