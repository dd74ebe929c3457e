"""`plinth forecast` of a real run: of the drive that it ran on it says what was measured, and nothing of a run in memory."""

import json

import pytest

TEXT = """\
spec = 1
name = "forecast"
question = "What would another drive do?"
dataset = { kind = "tpcb", scale = 5 }
workload = { builtin = "tpcb-like", clients = 2 }
matrix = { storage = ["drive", "memory"] }
measure = { warmup = "500ms", duration = "2s", repeats = 3, aa = false }

[storage.memory]
kind = "tmpfs"
size = "3GiB"

[storage.drive]
kind = "emulated"
profile = "hdd-10k-sas"
size = "1GiB"
on = "memory"
"""


@pytest.mark.long
def test_a_run_is_forecast_on_other_drives(project, nothing_left) -> None:
    project.write(TEXT)
    done = project.run(timeout_s=240)
    assert done.returncode in (0, 3), done.stderr
    measured = [trial["tps"] for trial in project.trials() if trial["variant"] == "drive"]
    words = ("forecast", project.bundle, "--profile", "hdd-10k-sas,hdd-7200", "--profile", "sata-ssd")
    found = project.plinth(*words, "--json")
    assert found.returncode == 0, found.stderr
    forecast = json.loads(found.stdout)
    assert forecast["parts"]["WAL flush"] > 0.2, "on a busy machine its clients wait for processors, too"
    same, slower, faster = forecast["drives"]
    assert same["tps"]["interval"]["low"] < sorted(measured)[1] < same["tps"]["interval"]["high"]
    assert slower["tps"]["value"] < same["tps"]["value"] < faster["tps"]["value"]
    shown = project.plinth(*words)
    assert shown.returncode == 0
    assert "90 % intervals" in shown.stdout
    refused = project.plinth("forecast", project.bundle, "--variant", "memory")
    assert refused.returncode == 2
    assert "no forecast of memory" in refused.stderr
    wrong = project.plinth("forecast", project.bundle, "--profile", "nvmee")
    assert wrong.returncode == 2
    assert "there is no such profile" in wrong.stderr and "nvme" in wrong.stderr
    nothing_left()
