"""A plan that cannot be carried out, or not all of it, says so: all of it at once, and with the exit code of the run."""

import json
import socket
from pathlib import Path

import psycopg
import pytest

from plinth.server.installations.find import find_installation
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from typed import present
from waiting import wait_until

ONE = ("--set", "storage=disk", "--set", "measure.repeats=1", "--set", "measure.aa=false")
WITHOUT_MOUNTING = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--")
DISKS = """\
[storage.slow]
kind = "emulated"
profile = "hdd-7200"
size = "400MiB"
[storage.zram]
kind = "zram"
size = "400MiB"
"""
EXTERNAL = """\
spec = 1
name = "external"
question = "Does it answer?"
[server]
connection = "CONNECTION"
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
[measure]
warmup = "0s"
duration = "200ms"
repeats = 1
aa = false
"""


def both_refuse(project, code, *said, words=(), prefix=(), **env):
    """Plan and run end with `code` and the same reasons; the run has made no bundle. Returns the plan."""
    planned = project.plinth("plan", "x.toml", *words, prefix=prefix, **env)
    ran = project.run(*words, prefix=prefix, **env)
    for done in (planned, ran):
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        for text in said:
            assert text in done.stderr
    assert not project.bundle.exists()
    assert project.left_behind() == []
    return planned


def described(project, text, levels):
    project.write(project.experiment.replace("[dataset]", f"{text}\n[dataset]").replace('["disk", "memory"]', levels))


def test_disks_that_need_root_are_all_named(project):
    described(project, DISKS, '["slow", "zram"]')
    planned = both_refuse(project, 5, "storage slow needs the right", "storage zram needs", prefix=WITHOUT_MOUNTING)
    assert "Trials in order" in planned.stdout, "the plan is shown all the same"


@pytest.mark.long
def test_of_a_part_that_is_lost_the_plan_has_the_exit_code_of_the_run(project):
    described(project, DISKS, '["disk", "slow"]')
    planned = project.plinth("plan", "x.toml", "--json", prefix=WITHOUT_MOUNTING)
    assert planned.returncode == 5, planned.stderr
    assert "storage slow needs the right" in planned.stderr
    assert json.loads(planned.stdout)["variants"]
    ran = project.run("--set", "measure.aa=false", "--set", "measure.repeats=1", prefix=WITHOUT_MOUNTING)
    assert ran.returncode == 5, ran.stderr
    assert [trial["status"] for trial in project.trials()].count("complete") == 1


def test_physics_and_profile_are_found_with_their_lines(project):
    disks = DISKS.replace('"hdd-7200"', '"hdd-7200"\nphysics = { channels = 4 }')
    disks += '[storage.typo]\nkind = "emulated"\nprofile = "nvm"\nsize = "400MiB"\n'
    described(project, disks, '["slow", "typo"]')
    lines = (project.folder / "x.toml").read_text().splitlines()
    physics, typo = (lines.index(line) + 1 for line in ("physics = { channels = 4 }", 'profile = "nvm"'))
    both_refuse(
        project,
        2,
        f"x.toml:{physics}: storage.slow.physics.channels: ",
        f"x.toml:{typo}: storage.typo.profile: there is no profile 'nvm'",
        "did you mean 'nvme'?",
        "2 errors in x.toml",
    )


@pytest.mark.parametrize("physics", ["rpm = 1000000000", "rpm = 3", 'average_seek = "1ns"', 'flush_latency = "2min"'])
def test_physics_that_no_disk_has(project, physics):
    described(project, DISKS.replace('"hdd-7200"', f'"hdd-7200"\nphysics = {{ {physics} }}'), '["slow"]')
    both_refuse(project, 2, f"storage.slow.physics.{physics.partition(' ')[0]}: ")


def test_a_lie_about_a_cache_that_there_is_not(project):
    described(project, DISKS.replace('"hdd-7200"', '"hdd-10k-sas"\nlie = "ignore-flush"'), '["slow"]')
    both_refuse(project, 2, "storage.slow.lie: ", "no volatile cache")


def test_a_profile_that_is_a_level_is_reported_at_its_factor(project):
    described(project, DISKS, '["slow"]\n"storage.slow.profile" = ["nvme", "nvm"]')
    both_refuse(project, 2, "matrix.storage.slow.profile: there is no profile 'nvm'")


def test_what_is_too_large(project):
    both_refuse(
        project,
        5,
        "capacity of storage memory",
        words=(*ONE[2:], "--set", "storage.memory.size=64MiB", "--set", "storage=memory"),
    )


@pytest.mark.parametrize(
    ("settings", "key", "said"),
    [
        ("wal_level=minimal", "wal_level", "max_wal_senders"),
        ("superuser_reserved_connections=100", "superuser_reserved_connections", "max_connections"),
    ],
)
def test_settings_that_exclude_each_other(project, settings, key, said):
    both_refuse(project, 2, f"server.settings.{key}: ", said, words=(*ONE, "--set", f"server.settings.{settings}"))


def test_settings_of_the_load_that_exclude_those_of_the_server(project):
    both_refuse(
        project,
        2,
        "dataset.load_settings: ",
        "max_wal_senders",
        words=(*ONE, "--set", 'dataset.load_settings.wal_level="minimal"'),
    )


@pytest.mark.long
def test_more_shared_memory_than_the_limit_of_this_process(project):
    """`ulimit -v`, of which the server gets nothing back but an error."""
    limit = 1 << 31
    prefix = ("prlimit", f"--as={limit}:{limit}", "--")
    words = (*ONE, "--set", "server.settings.shared_buffers=2GB")
    both_refuse(project, 5, "could not map anonymous shared memory", words=words, prefix=prefix)


def test_more_buffers_than_memory_lose_their_variant(project):
    buffers = '["disk"]\nserver.settings.shared_buffers = ["16MB", "7TB"]'
    described(project, "", buffers)
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 5, planned.stderr
    assert "cannot be measured: disk-7tb: " in planned.stdout.replace("shared-buffers-", "")


def test_an_initdb_that_does_nothing(project):
    real = Path(find_installation(18, None, server_owner(), Runner()).bindir)
    bindir = project.folder / "bin"
    bindir.mkdir()
    (bindir / "postgres").symlink_to(real / "postgres")
    (bindir / "initdb").write_text(
        '#!/bin/sh\n[ "$1" != --version ] || echo "initdb (PostgreSQL) $VERSION"\n'.replace(
            "$VERSION", find_installation(18, None, server_owner(), Runner()).version
        )
    )
    (bindir / "initdb").chmod(0o755)
    both_refuse(project, 5, "initdb", "makes no data directory", words=(*ONE, "--set", f'server.bindir="{bindir}"'))


def test_a_port_that_is_taken_and_a_path_that_is_too_long(project):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = (*ONE, "--set", 'server.listen="tcp"', "--set", f"server.port={port}")
        both_refuse(project, 5, f"port {port}", "leave server.port out", words=words)
    deep = project.folder / ("d" * 100)
    deep.mkdir()
    both_refuse(project, 2, "107", words=ONE, TMPDIR=str(deep))


def test_folders_that_cannot_be_used(project):
    closed = project.folder / "closed"
    closed.mkdir(mode=0o700)
    both_refuse(project, 5, f"may not enter {closed}", "set TMPDIR", words=ONE, TMPDIR=str(closed))
    (project.folder / "file").write_text("")
    both_refuse(project, 2, str(project.folder / "file"), words=ONE, PLINTH_STATE_DIR=str(project.folder / "file"))


def test_all_that_is_wrong_with_a_storage_is_said_of_it(project):
    described(project, DISKS.replace("400MiB", "900TB"), '["slow", "zram"]')
    both_refuse(project, 5, "space for", "storage zram needs the right to make", prefix=WITHOUT_MOUNTING)


def test_an_external_server_that_does_not_take_us(project, service):
    string, services = service
    project.write(EXTERNAL.replace("CONNECTION", "host=127.0.0.1 port=1 dbname=x password=s3cr3t"))
    planned = both_refuse(project, 1, "cannot connect to the external server")
    assert "s3cr3t" not in planned.stdout + planned.stderr
    with psycopg.connect(string, autocommit=True) as control:
        control.execute("ALTER ROLE bench PASSWORD 'right'; CREATE ROLE guest LOGIN PASSWORD 'right'")
        (hba,) = present(control.execute("SHOW hba_file").fetchone())
        Path(hba).write_text("local all all scram-sha-256\n")
        control.execute("SELECT pg_reload_conf()")
    project.write(EXTERNAL.replace("CONNECTION", "service=mine password=wrong"))
    wait_until(lambda: not _connects(string))
    both_refuse(project, 1, "password authentication failed", PGSERVICEFILE=str(services))
    project.write(EXTERNAL.replace("CONNECTION", "service=mine user=guest password=right"))
    both_refuse(project, 1, "user guest may not make a schema", "grant create", PGSERVICEFILE=str(services))


def _connects(string):
    try:
        psycopg.connect(string).close()
    except psycopg.OperationalError:
        return False
    return True


def test_physics_that_a_disk_cannot_change_to(project):
    described(project, DISKS, '["slow"]')
    project.write(
        (project.folder / "x.toml").read_text()
        + '[[measure.action]]\ndo = "disk"\nat = "100ms"\nphysics = { channels = 4 }\n'
    )
    both_refuse(project, 2, "measure.action.0.physics: ", "of storage slow: channels: got 4")


def test_what_is_wrong_in_several_categories_is_said_at_once(project):
    """A script, a setting, a fault, a storage that this user may not make, space, and the folder of the server's socket."""
    described(project, DISKS, '["disk", "memory", "zram"]')
    text = (project.folder / "x.toml").read_text()
    project.write(f'{text}\n[[measure.action]]\ndo = "kill"\nat = "100ms"\nnode = "nowhere"\n')
    (project.folder / "broken.sql").write_text("SELECT 1;\n\\set aid random(1,\n")
    closed = project.folder / "closed"
    closed.mkdir(mode=0o700)
    both_refuse(
        project,
        2,
        "broken.sql:2:",
        "server.settings.no_such",
        "'nowhere' is not one of",
        "commit ledger is needed",
        "storage zram needs",
        "space for",
        f"may not enter {closed}",
        words=(
            *("--set", "server.settings.no_such=1", "--set", "dataset.scale=1000000"),
            *("--set", 'workload={script=["broken.sql"]}'),
        ),
        prefix=WITHOUT_MOUNTING,
        TMPDIR=str(closed),
    )
