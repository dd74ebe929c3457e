"""What bad input gets: a clear error, the right exit code, and nothing left behind."""

import contextlib
import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from filling import leave_free
from waiting import wait_until

ONE = ("--set", "storage=disk", "--set", "measure.repeats=1", "--set", "measure.aa=false")


def fails(project, code, *said, words=ONE, **kwargs):
    done = project.run(*words, **kwargs)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    for text in said:
        assert text in done.stderr
    assert project.left_behind() == []
    return done


def with_storage(project, line):
    project.write((project.folder / "x.toml").read_text().replace('kind = "directory"', f'kind = "directory"\n{line}'))


def with_server(project, *lines):
    text = "\n".join(("[server]", *lines, "", "[dataset]"))
    project.write((project.folder / "x.toml").read_text().replace("[dataset]", text))


def test_a_storage_path_that_is_not_there(project):
    with_storage(project, f'path = "{project.folder}/nope"')
    said = f"x.toml:7: storage.disk.path: got '{project.folder}/nope', which is not there"
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 2
    assert said in planned.stderr
    fails(project, 2, said)
    assert not project.bundle.exists()


def test_a_storage_path_that_is_a_file(project):
    with_storage(project, f'path = "{project.folder}/x.toml"')
    fails(project, 2, "x.toml', which is not a directory")


def test_a_storage_path_that_cannot_be_written(project):
    readonly = project.folder / "ro"
    readonly.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "plinth-test", readonly], check=True)
    try:
        with_storage(project, f'path = "{readonly}"')
        fails(project, 5, str(readonly), "ead-only")
    finally:
        subprocess.run(["umount", readonly], check=True)


def test_too_little_space_is_said_before_anything_is_made(project):
    small = project.folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=0755", "plinth-test", small], check=True)
    try:
        with_storage(project, f'path = "{small}"')
        done = fails(project, 5, "this machine lacks what the plan needs", str(small), "--scale-to-fit")
        assert "make storage" not in done.stderr
        assert not project.bundle.exists()
    finally:
        subprocess.run(["umount", small], check=True)


def shrink(tmpfs, free_bytes):
    """Leave only so much space on a tmpfs."""
    space = os.statvfs(tmpfs)
    size_bytes = (space.f_blocks - space.f_bfree) * space.f_frsize + free_bytes
    subprocess.run(["mount", "-o", f"remount,size={size_bytes}", tmpfs], check=True)


def test_space_that_runs_out_in_the_middle_of_a_load(project):
    small = project.folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500m,mode=0755", "plinth-test", small], check=True)
    try:
        with_storage(project, f'path = "{small}"')
        running = project.start(*ONE, "--set", "dataset.scale=20")
        running.wait_for("load tpcb")
        shrink(small, 60 * 2**20)  # at once: the load takes a second
        code, said = running.end()
        assert code == 1, said
        assert "No space left on device" in said
        assert "Traceback" not in said
        assert project.left_behind() == []
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


def serves_clients(storage):
    """Whether a server that is stored below `storage` is under load: its backends' titles say so."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if (process / "cwd").readlink().is_relative_to(storage) and "UPDATE" in (process / "cmdline").read_text(
                errors="replace"
            ):
                return True
    return False


@pytest.mark.long
def test_space_that_runs_out_in_the_middle_of_a_trial(project):
    """All that the clients see is that the server is gone; why it is, it has written to its log."""
    small = project.folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500m,mode=0755", "plinth-test", small], check=True)
    try:
        with_storage(project, f'path = "{small}"')
        # Segments that are kept for later would let the load go on for a long time.
        small_wal = ("--set", "server.settings.wal_recycle=off", "--set", "server.settings.min_wal_size=32MB")
        running = project.start(*ONE, "--set", "measure.duration=60s", *small_wal)
        running.wait_for("load tpcb")
        wait_until(lambda: serves_clients(small), timeout_s=60)
        leave_free(small, 0)
        code, said = running.end()
        assert code == 1, said
        (failure,) = {trial["failure"] for trial in project.trials() if trial["failure"]}
        assert re.search(r"; .* PANIC: .* No space left on device", failure), failure
        (small / "filler").unlink()
        assert project.left_behind() == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_space_for_the_bundle_that_runs_out_in_the_middle_of_a_run(project):
    small = project.folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "plinth-test", small], check=True)
    try:
        project.bundle = small / "bundle"
        running = project.start(*ONE)
        running.wait_for("initialise cluster")
        leave_free(small, 0)
        code, said = running.end()
        assert code == 5, said
        assert "cannot write the bundle: no space left" in said
        assert "Traceback" not in said
        assert project.left_behind() == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_tmpfs_that_is_smaller_than_its_data(project):
    fails(project, 5, "capacity of storage memory", words=("--set", "storage.memory.size=64MiB"))


def test_scale_to_fit_cuts_what_does_not(project):
    done = project.plinth("plan", "x.toml", "--set", "dataset.scale=100000", "--scale-to-fit")
    assert done.returncode == 0, done.stderr
    assert "differs from the file: dataset.scale=" in done.stdout
    assert "NOT ENOUGH" not in done.stdout


def test_a_builtin_without_its_dataset_and_a_working_set_larger_than_the_dataset(project):
    project.write(project.experiment.replace('"tpcb-like"', '"numbers-select"'))
    fails(project, 2, "x.toml:16: workload.builtin: 'numbers-select' works on dataset numbers, not on tpcb")
    project.write(project.experiment)
    said = "--set workload.active_rows=100001: workload.active_rows: got 100,001; the dataset has 100,000 rows"
    fails(project, 2, said, words=(*ONE, "--set", "workload.active_rows=100001"))


def test_a_port_that_is_taken(project):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with_server(project, 'listen = "tcp"', f"port = {port}")
        fails(project, 5, f"port {port}", "leave server.port out")


def test_a_socket_path_that_is_too_long(project):
    deep = project.folder / ("d" * 100)
    deep.mkdir()
    fails(project, 2, "107", TMPDIR=str(deep))


def test_broken_binaries(project):
    broken = project.folder / "broken"
    broken.mkdir()
    for name in ("postgres", "initdb"):
        (broken / name).write_text("#!/bin/sh\necho nonsense\nexit 127\n")
        (broken / name).chmod(0o755)
    with_server(project, f'bindir = "{broken}"')
    fails(project, 5, str(broken))


def test_a_version_that_is_not_installed(project):
    with_server(project, "version = 13")
    fails(project, 5, "no PostgreSQL 13", "server.bindir")


def test_a_server_that_does_not_come_up_shows_its_log(project):
    with_server(project, 'settings.shared_preload_libraries = "/nowhere/library"')
    fails(project, 1, "ended with exit code 1", 'could not access file "/nowhere/library"')


def test_ssl_that_the_build_lacks(project):
    with_server(project, "settings.ssl = true")
    fails(project, 2, "x.toml:12: server.settings.ssl", "SSL is not supported by this build")


def test_huge_pages_that_the_machine_has_not(project):
    with_server(project, 'settings.huge_pages = "on"', 'settings.shared_buffers = "16MB"')
    fails(project, 5, "would not start", "could not map anonymous shared memory")
    assert not project.bundle.exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("no_such_thing=1", "has no setting 'no_such_thing'"),
        ("shared_bufers=64MB", "shared_buffers"),
        ("shared_buffers=64 parsecs", "shared_buffers"),
        ("wal_level=maximal", "wal_level"),
        ("max_connections=-5", "max_connections"),
        ("shared_preload_libraries=pg_stat_statement", "did you mean 'pg_stat_statements'?"),
        ("shared_buffers=100TB", "exceeds integer range"),
        ("port=1", "set by Plinth"),
    ],
)
def test_settings_that_the_server_would_refuse(project, setting, said):
    fails(project, 2, said, words=(*ONE, "--set", f"server.settings.{setting}"))


NO_STANDBY = "has no standby"


def planned_with(project, text, *words):
    project.write(project.experiment.replace("[matrix]\n", f"{text}\n[matrix]\n"))
    return project.plinth("plan", "x.toml", *ONE, *words)


def test_standbys_that_nobody_is_are_refused_with_file_and_line(project):
    done = planned_with(project, "[server.settings]\nsynchronous_standby_names = 'ANY 1 (a, b)'\n")
    assert done.returncode == 2, done.stderr
    assert "x.toml:20: server.settings.synchronous_standby_names: " in done.stderr
    assert NO_STANDBY in done.stderr
    assert "synchronous_commit" in done.stderr
    assert "server.connection" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("settled", ["synchronous_commit=local", "synchronous_commit=false", "max_wal_senders=0"])
def test_standbys_that_no_commit_waits_for_are_planned(project, settled):
    words = ("--set", "server.settings.synchronous_standby_names=*")
    refused = planned_with(project, "", *words)
    assert refused.returncode == 2
    assert "--set server.settings.synchronous_standby_names=*" in refused.stderr
    done = planned_with(project, "", *words, "--set", f"server.settings.{settled}")
    assert done.returncode == 0, done.stderr


def test_a_level_that_waits_for_standbys_names_its_factor(project):
    words = ("--set", 'matrix."server.settings.synchronous_standby_names"=["", "s1"]')
    done = planned_with(project, "", *words)
    assert done.returncode == 2
    assert "matrix.server.settings.synchronous_standby_names: synchronous_standby_names = 's1' with" in done.stderr
    by_commit = ("--set", 'matrix."server.settings.synchronous_commit"=["off", "remote_apply", "local"]')
    done = planned_with(project, "", "--set", "server.settings.synchronous_standby_names=s1", *by_commit)
    assert done.returncode == 2
    assert done.stderr.count(NO_STANDBY) == 1
    assert "synchronous_commit = remote_apply" in done.stderr


@pytest.mark.parametrize(
    ("server", "load", "key"),
    [
        ("", "synchronous_standby_names = 's1'", "synchronous_standby_names"),
        (
            "synchronous_standby_names = 's1'\nsynchronous_commit = 'off'",
            "synchronous_commit = 'on'",
            "synchronous_commit",
        ),
    ],
)
def test_settings_of_the_load_that_wait_for_standbys(project, server, load, key):
    done = planned_with(project, f"[server.settings]\n{server}\n[dataset.load_settings]\n{load}\n")
    assert done.returncode == 2, done.stderr
    assert f"dataset.load_settings.{key}: " in done.stderr
    assert NO_STANDBY in done.stderr
    without = planned_with(project, f"[server.settings]\n{server}\n")
    assert without.returncode == 0, without.stderr


@pytest.mark.parametrize(
    ("script", "place", "message"),
    [
        ("SELECT 1;\nSELECT :row;\n", "2:1", 'undefined variable "row"'),
        ("SELECT 1;\n\\set a-b 1\n", "2:6", 'invalid variable name: "a-b" in command "set"'),
        ("SELECT 1 \\gset a-\n", "1:16", 'invalid variable name: "a-" in command "gset"'),
    ],
)
def test_a_script_that_the_engine_would_not_run_is_reported_before_anything_is_made(project, script, place, message):
    (project.folder / "wrong.sql").write_text(script)
    project.write((project.folder / "x.toml").read_text().replace('builtin = "tpcb-like"', 'script = "wrong.sql"'))
    done = fails(project, 2, f"wrong.sql:{place}", message)
    assert "make storage" not in done.stderr
    assert not project.bundle.exists()


def test_memory_for_keys_that_the_server_would_refuse_once_the_rows_are_there(project):
    reported = "dataset.maintenance_work_mem: invalid value"
    fails(project, 2, reported, words=(*ONE, "--set", "dataset.maintenance_work_mem=9999TB"))


def test_a_bundle_folder_that_cannot_be(project):
    project.bundle.write_text("a file")
    fails(project, 2, str(project.bundle))
    project.bundle.unlink()
    project.bundle.mkdir()
    (project.bundle / "precious").write_text("")
    fails(project, 4, "not empty", "plinth resume")
    assert [p.name for p in project.bundle.iterdir() if not p.name.startswith(".")] == ["precious"]


@pytest.mark.long
def test_a_script_whose_sql_always_fails_is_a_failed_trial_with_its_message(project):
    (project.folder / "wrong.sql").write_text("SELECT * FROM no_such_table;\n")
    project.write((project.folder / "x.toml").read_text().replace('builtin = "tpcb-like"', 'script = "wrong.sql"'))
    done = fails(project, 1)
    assert "no_such_table" in done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "failed"
    assert trial["errors"][0]["sqlstate"] == "42P01"


def test_inherited_pg_variables_do_not_reach_a_managed_server(project):
    done = project.run(*ONE, PGHOST="nowhere.invalid", PGPORT="1", PGDATABASE="nope", PGOPTIONS="-c nonsense=1")
    assert done.returncode in (0, 3), done.stderr


@pytest.mark.long
def test_a_run_without_standard_streams_is_a_run_like_any_other(project):
    words = [sys.executable, "-m", "plinth", "run", "x.toml", "--bundle", str(project.bundle), *ONE]
    closed = ["sh", "-c", f"exec {shlex.join(words)} 0<&- 1>&- 2>&-"]
    done = subprocess.run(closed, cwd=project.folder, env=project.environment(), timeout=120)
    assert done.returncode in (0, 3)
    assert project.status() == "complete"
    assert [trial["status"] for trial in project.trials()] == ["complete"]
    assert project.left_behind() == []
