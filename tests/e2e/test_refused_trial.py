"""A trial whose server cannot be prepared because of an error of the operating system fails alone."""

import subprocess

import pytest

LOADED = "load tpcb into 2-memory"
"""Then the server on disk is there, and stopped until its first trial."""


@pytest.mark.long
@pytest.mark.usefixtures("repeated")
def test_a_configuration_that_cannot_be_written_costs_its_trial_only(project, nothing_left):
    run = project.start()
    run.wait_for(LOADED)
    (configuration,) = project.state.rglob("1-disk/plinth.conf")
    subprocess.run(["chattr", "+i", configuration], check=True)
    try:
        failed = run.wait_for("FAILED")
    finally:
        subprocess.run(["chattr", "-i", configuration], check=True)
    assert "cannot write the configuration: operation not permitted" in failed
    code, stderr = run.end()
    assert "Traceback" not in stderr
    trials = project.trials()
    assert len(trials) == 6, "the others are run"
    storages = {"disk": set(), "memory": set()}
    for trial in trials:
        storages[trial["variant"].removesuffix("-aa")].add(trial["status"])
    # The next trial may be one of the same server, and begin before the file can be written again.
    assert storages == {"disk": {"failed", "complete"}, "memory": {"complete"}}
    assert code == 1, stderr
    nothing_left()
