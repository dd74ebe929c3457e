"""Runs that measured nothing: what they print, and what they leave."""

import pytest


@pytest.mark.long
def test_of_trials_that_all_failed_only_the_error_is_printed(project, nothing_left):
    (project.folder / "wrong.sql").write_text("SELECT * FROM no_such_table;\n")
    project.write(project.experiment.replace('builtin = "tpcb-like"', 'script = "wrong.sql"'))
    done = project.run("--set", 'matrix.storage=["disk"]')
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    error = done.stderr.partition("\nerror: ")[2]
    assert error.startswith("nothing was measured: ") and "no_such_table" in error
    assert {trial["status"] for trial in project.trials()} == {"failed"}
    assert not (project.bundle / "derived" / "report.html").exists()
    assert "no_such_table" in project.whole_report()
    nothing_left()


@pytest.mark.parametrize("place", ["new/er", "there"])
def test_of_a_refused_run_no_folder_is_left_that_was_not_there(project, place, nothing_left):
    (project.folder / "there").mkdir()
    before = sorted(project.folder.iterdir())
    storage = '[storage.disk]\nkind = "loop"\nsize = "2GiB"\nmkfs_options = ["-O", "no_such_feature"]\n'
    head, _, tail = project.experiment.partition('[storage.disk]\nkind = "directory"\n')
    project.write(f"{head}{storage}{tail}")
    done = project.plinth("run", "x.toml", "--bundle", place, "--set", 'matrix.storage=["disk"]')
    assert done.returncode == 5, done.stderr
    assert "no_such_feature" in done.stderr and done.stdout == ""
    left = [path for path in sorted(project.folder.iterdir()) if path not in (*before, project.state)]
    assert left == [] and list((project.folder / "there").iterdir()) == []
    nothing_left()


def test_where_a_server_has_logged_why_its_log_is_kept_and_named(project, nothing_left):
    project.write(project.experiment)
    done = project.run(
        "--set", "server.settings.shared_preload_libraries=/nowhere/no_such_library", "--set", 'matrix.storage=["disk"]'
    )
    assert done.returncode != 0 and done.stdout == "", done.stderr
    assert "no_such_library" in done.stderr
    assert f"{project.bundle}" in done.stderr
    assert any("no_such_library" in log.read_text() for log in project.bundle.glob("logs/*.log"))
    assert not (project.bundle / "derived").exists()
    nothing_left()
