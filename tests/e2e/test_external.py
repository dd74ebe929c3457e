"""An external server: measured in a separate schema, and left as it was."""

import json
import signal

import psycopg
import pytest

from external_experiment import EXTERNAL


def test_an_external_server_is_left_as_it_was(project, service):
    string, services = service
    with psycopg.connect(string, autocommit=True) as control:
        control.execute("CREATE TABLE pgbench_accounts AS SELECT 'precious' AS aid")
        # An ordinary user, who may neither checkpoint nor see all statistics.
        control.execute("CREATE ROLE guest LOGIN")
        control.execute("GRANT CREATE ON DATABASE postgres TO guest")
    services.write_text(services.read_text().replace("user=bench", "user=guest"))
    project.write(EXTERNAL)
    planned = project.plinth("plan", "x.toml", PGSERVICEFILE=str(services))
    assert planned.returncode == 0, planned.stderr
    assert "make the schema plinth_RUN" in planned.stdout
    done = project.run(PGSERVICEFILE=str(services))
    assert done.returncode in (0, 3), done.stderr
    trials = project.trials()
    assert len(trials) == 3
    assert all(trial["status"] == "complete" for trial in trials), trials
    assert all(check["ok"] for trial in trials for check in trial["checks"])
    assert all(trial["gaps"][0]["what"] == "CHECKPOINT before the trial" for trial in trials)
    assert "is not known" in " ".join(done.stdout.split())
    kept = [path for path in project.bundle.rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if b"s3cr3t" in path.read_bytes()]
    assert 'connection = "service=mine"' in (project.bundle / "experiment.toml").read_text()
    with psycopg.connect(string) as control:
        schemas = control.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'plinth%'").fetchall()
        assert schemas == []
        assert control.execute("SELECT aid FROM pgbench_accounts").fetchall() == [("precious",)]
    assert project.left_behind() == []


def schemas_of_ours(string: str) -> list[tuple[str]]:
    with psycopg.connect(string) as control:
        return control.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'plinth%' ORDER BY 1").fetchall()


@pytest.mark.long
def test_datasets_that_differ_have_schemas_of_their_own_on_one_server(project, service):
    string, _ = service
    external = EXTERNAL.replace("workload.clients = [1, 4]", "dataset.scale = [1, 2]")
    project.write(external.replace("service=mine password='s3cr3t \\\"word'", string))
    running = project.start()
    running.wait_for("trial 1 of")
    running.signal(signal.SIGKILL)
    running.end()
    (first,), (second,) = schemas_of_ours(string)
    assert second == f"{first}-2"
    done = project.plinth("resume", project.bundle)
    assert done.returncode in (0, 3), done.stderr
    assert {trial["variant"]: trial["status"] for trial in project.trials()} == {
        "scale-1": "complete",
        "scale-1-aa": "complete",
        "scale-2": "complete",
    }
    assert schemas_of_ours(string) == []
    assert project.left_behind() == []


@pytest.mark.long
def test_a_password_among_the_levels_is_neither_shown_nor_kept(project, service):
    string, _ = service
    levels = [f"{string} application_name=by{number} password=s3cr3t{number}" for number in (1, 2)]
    head, _, tail = EXTERNAL.partition("[server]")
    external = head + tail.partition("\n\n")[2]  # only the matrix tells where they are
    project.write(external.replace("workload.clients = [1, 4]", f"server.connection = {json.dumps(levels)}"))
    other = ("--set", 'server.connection="host=/elsewhere password=s3cr3t3"')
    run = ("run", "x.toml", "--bundle", project.bundle)
    for words in (("plan", "x.toml"), ("plan", "x.toml", *other), ("plan", "x.toml", "--json", *other), run):
        done = project.plinth(*words)
        assert done.returncode in ((1,) if other[1] in words else (0, 3)), done.stderr  # nothing is at /elsewhere
        assert "s3cr3t" not in done.stdout + done.stderr
        assert "user=bench" in done.stdout or words[0] == "plan"
    kept = [path for path in project.bundle.rglob("*") if path.is_file()]
    assert not [path for path in kept if b"s3cr3t" in path.read_bytes() or "s3cr3t" in str(path)]


@pytest.mark.long
def test_each_server_is_found_by_the_environment(project, service):
    """Connecting to the first took the variables away that the second rests on."""
    _, services = service
    levels = [f"service=mine application_name=by{number}" for number in (1, 2)]
    head, _, tail = EXTERNAL.partition("[server]")
    external = head + tail.partition("\n\n")[2]
    project.write(external.replace("workload.clients = [1, 4]", f"server.connection = {json.dumps(levels)}"))
    done = project.run(PGSERVICEFILE=str(services))
    assert done.returncode in (0, 3), done.stderr
    assert [trial["status"] for trial in project.trials()] == ["complete"] * 3, done.stderr


def test_a_server_that_cannot_be_reached_is_said_so(project):
    project.write(EXTERNAL.replace("service=mine", "host=127.0.0.1 port=1 dbname=x connect_timeout=2"))
    done = project.run()
    assert done.returncode == 1, done.stderr
    assert "connect to the external server" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == "" and not project.bundle.exists(), "nothing was measured"
    assert not list(project.state.glob("keys/*"))


@pytest.mark.long
def test_trials_are_added_on_a_server_that_can_be_reached_and_a_bundle_is_not_opened_for_one_that_cannot(
    project, service
):
    """The service is named by the bundle, and found again where libpq looks for it."""
    string, services = service
    project.write(EXTERNAL)
    done = project.run("--set", "workload.clients=1", PGSERVICEFILE=str(services))
    assert done.returncode in (0, 3), done.stderr
    files = {file: file.read_bytes() for file in project.bundle.rglob("*") if file.is_file()}

    unknown = project.plinth("resume", project.bundle, "--more", 1)
    assert unknown.returncode != 0
    assert "service" in unknown.stderr and "Traceback" not in unknown.stderr
    assert {file: file.read_bytes() for file in project.bundle.rglob("*") if file.is_file()} == files

    added = project.plinth("resume", project.bundle, "--more", 1, PGSERVICEFILE=str(services))
    assert added.returncode in (0, 3), added.stderr
    trials = project.trials()
    assert len(trials) == 2 * (len(trials) // 2) == 2 * len({trial["variant"] for trial in trials})
    assert all(trial["status"] == "complete" for trial in trials), trials
    assert schemas_of_ours(string) == []
    assert project.left_behind() == []


@pytest.mark.long
def test_names_that_are_not_utf_8_in_a_database_without_an_encoding(project, service):
    """The server is in SQL_ASCII: names there are any bytes."""
    string, services = service
    with psycopg.connect(string.replace("UTF8", "SQL_ASCII"), autocommit=True) as control:
        control.execute(b'CREATE SCHEMA "caf\xe9" CREATE TABLE "caf\xe9" ("caf\xe9" int PRIMARY KEY)')
        control.execute(b'CREATE ROLE "caf\xe9" SUPERUSER')
        control.execute(b"ALTER DATABASE postgres SET dynamic_library_path = '$libdir:/caf\xe9'")
        project.write(
            EXTERNAL.replace("workload.clients = [1, 4]", "workload.clients = [1]")
            .replace('kind = "tpcb"\nscale = 1', 'kind = "sql"\nschema = "made.sql"')
            .replace('builtin = "tpcb-like"', 'script = "read.sql"')
        )
        (project.folder / "made.sql").write_text(
            'CREATE TABLE "caf\u00e9" (i int PRIMARY KEY); INSERT INTO "caf\u00e9" VALUES (1);'
        )
        (project.folder / "read.sql").write_text('SELECT i FROM "caf\u00e9";\n')
        done = project.run(PGSERVICEFILE=str(services))
        assert done.returncode in (0, 3), done.stderr
        theirs = control.execute(b'SELECT count(*) FROM "caf\xe9"."caf\xe9"').fetchone()
    assert theirs == (0,)
    trials = project.trials()
    assert trials and all(trial["status"] == "complete" for trial in trials)
    assert "byte sequence" not in json.dumps([trial["gaps"] for trial in trials])
    bundle = b"".join(path.read_bytes() for path in project.bundle.rglob("*.json"))
    assert b"$libdir:/caf\\\\xe9" in bundle
    assert project.left_behind() == []
