"""Commits that scripts, functions and datasets give up by themselves are graded so, although no power cut finds a loss."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from plinth.system.owner import server_owner
from power_cut_experiment import experiment

SCHEMA = """\
CREATE TABLE kept (id bigserial PRIMARY KEY, text text);
CREATE UNLOGGED TABLE emptied (id bigserial PRIMARY KEY, text text);
CREATE TABLESPACE fast LOCATION '{fast}';
CREATE TABLE in_memory (id bigserial PRIMARY KEY, text text) TABLESPACE fast;
CREATE TABLE indexed_in_memory (id bigserial, text text);
CREATE INDEX of_memory ON indexed_in_memory (id) TABLESPACE fast;
CREATE FUNCTION hurry() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('synchronous_commit', 'off', true); END $$;
CREATE TABLE hurried (id bigserial PRIMARY KEY, text text);
CREATE FUNCTION on_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SET LOCAL synchronous_commit' || ' = off'; RETURN NEW; END $$;
CREATE TRIGGER hurry BEFORE INSERT ON hurried FOR EACH ROW EXECUTE FUNCTION on_write();
"""
BLOCK = "BEGIN;\n{first}INSERT INTO {table} (text) VALUES ('row');\nCOMMIT;\n"
SCRIPTS = {
    "kept": BLOCK.format(first="", table="kept"),
    "set-local": BLOCK.format(first="SET LOCAL synchronous_commit TO off;\n", table="kept"),
    "set-config": BLOCK.format(first="SELECT set_config('synchronous_commit', 'off', true);\n", table="kept"),
    "function": BLOCK.format(first="SELECT hurry();\n", table="kept"),
    "trigger": BLOCK.format(first="", table="hurried"),
    "unlogged": BLOCK.format(first="", table="emptied"),
    "in-memory": BLOCK.format(first="", table="in_memory"),
    "index-in-memory": BLOCK.format(first="", table="indexed_in_memory"),
}
EXPECTED = {
    "kept": ("keeps", "trusted"),
    "set-local": ("may lose recent commits", "set-local.sql: SET LOCAL synchronous_commit TO off"),
    "set-config": ("may lose recent commits", "set_config('synchronous_commit', 'off'"),
    "function": ("may lose recent commits", "function hurry()"),
    "trigger": ("may lose recent commits", "in transactions of the scripts, just before COMMIT"),
    "unlogged": ("does not keep", "public.emptied is unlogged"),
    "in-memory": ("does not keep", "tablespace fast"),
    "index-in-memory": ("does not keep", "index public.of_memory is in tablespace fast"),
}


@pytest.fixture(scope="module")
def graded(module_project):
    """A run whose scripts give their commits up in one way each, with a power cut of each."""
    fast = Path(tempfile.mkdtemp(prefix="plinth-test-", dir="/dev/shm"))
    try:
        owner = server_owner()
        os.chown(fast, owner.uid, owner.gid)
        folder = module_project.folder
        (folder / "schema.sql").write_text(SCHEMA.format(fast=fast))
        for name, text in SCRIPTS.items():
            (folder / f"{name}.sql").write_text(text)
        load = 'kind = "sql"\nschema = "schema.sql"', 'script = "kept.sql"\nledger = true'
        text = experiment(cuts=1, load=load, disk="").replace(
            "[matrix]", f"[matrix]\nworkload.script = {json.dumps([f'{name}.sql' for name in SCRIPTS])}"
        )
        module_project.write(text)
        done = module_project.run("--yes", timeout_s=280)
        assert done.returncode in (0, 3), done.stderr
        report = json.loads(module_project.plinth("report", module_project.bundle, "--json").stdout)
        return {variant["levels"]["workload.script"]: variant["safety"] for variant in report["analysis"]["variants"]}
    finally:
        shutil.rmtree(fast)


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_a_script_does_to_its_commits_is_its_grade(graded, script):
    grade, reason = EXPECTED[script]
    safety = graded[f"{script}.sql"]
    found = "damage in 1 of 1" in safety["tested"]  # what may lose commits may have lost some in its power cut
    assert safety["grade"] == grade or (found and grade != "keeps"), safety
    assert any(reason in one for one in safety["reasons"]), safety


@pytest.mark.parametrize(
    ("sql", "grade", "reason"),
    [
        ("ALTER SYSTEM SET fsync = off;\nSELECT pg_reload_conf();\n", "does not keep", "fsync = off"),
        pytest.param(
            "ALTER ROLE CURRENT_USER SET synchronous_commit = off;\n",
            "may lose recent commits",
            "synchronous_commit = off",
            marks=pytest.mark.long,
        ),
    ],
)
def test_what_the_dataset_sets_before_a_trial_is_read_back(project, sql, grade, reason):
    (project.folder / "before.sql").write_text(sql)
    (project.folder / "schema.sql").write_text("CREATE TABLE kept (id bigserial PRIMARY KEY, text text);\n")
    (project.folder / "kept.sql").write_text(SCRIPTS["kept"])
    load = 'kind = "sql"\nschema = "schema.sql"\nbefore_trial = "before.sql"', 'script = "kept.sql"'
    text = experiment(cuts=1, load=load, disk="")
    project.write(text.split("[durability]")[0])
    done = project.run("--yes", timeout_s=120)
    assert done.returncode in (0, 3), done.stderr
    report = json.loads(project.plinth("report", project.bundle, "--json").stdout)
    safety = report["analysis"]["variants"][0]["safety"]
    assert safety["grade"] == grade and any(reason in one for one in safety["reasons"]), safety
