"""A variant that needs something this build of the server lacks fails alone, with the reason."""

import json

CHANGES = ("--set", "measure.repeats=1", "--set", "measure.aa=false", "--set", "storage=disk")
IO_URING = '\n[matrix.server.settings]\nio_method = ["sync", "io_uring"]\n'
"""The server of the wheel is built without it."""


def test_the_others_continue_and_the_reason_is_everywhere(project, nothing_left) -> None:
    project.write(project.experiment + IO_URING)
    planned = project.plinth("plan", "x.toml", *CHANGES)
    assert planned.returncode == 5, planned.stderr
    assert "Available values: sync, worker" in planned.stderr
    assert "cannot be measured: disk-io-method-io-uring: " in planned.stdout
    done = project.run(*CHANGES)
    assert done.returncode == 5, done.stderr
    assert "Available values: sync, worker" in done.stderr
    status = {trial["variant"]: (trial["status"], trial["failure"]) for trial in project.trials()}
    assert status["disk-io-method-sync"] == ("complete", None)
    lost, reason = status["disk-io-method-io-uring"]
    assert lost == "failed"
    assert 'invalid value for parameter "io_method": "io_uring"' in reason
    manifest = json.loads((project.bundle / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert [failure["what"] for failure in manifest["failures"]] == ["variant disk-io-method-io-uring"]
    nothing_left()


def test_where_nothing_else_is_asked_it_is_an_error_of_the_file(project) -> None:
    project.write(project.experiment + IO_URING.replace('"sync", ', ""))
    done = project.plinth("plan", "x.toml", *CHANGES)
    assert done.returncode == 2
    assert 'invalid value for parameter "io_method": "io_uring"' in done.stderr


def test_a_value_that_no_build_has_is_one_too(project) -> None:
    project.write(project.experiment + IO_URING.replace("io_uring", "telepathy"))
    done = project.plinth("plan", "x.toml", *CHANGES)
    assert done.returncode == 2
    assert "telepathy" in done.stderr
