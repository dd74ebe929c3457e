"""[[objective]] in a real run: every metric that can be measured here has a figure, and the gate stops a pipeline."""

import json
from xml.etree import ElementTree

import pytest

OBJECTIVES = """
[[objective]]
metric = "tps"
min = 1
[[objective]]
metric = "latency_p99"
max = "1us"
[[objective]]
metric = "wal_per_transaction"
max = "1GB"
[[objective]]
metric = "cost_per_million_transactions"
max = 1_000_000
price_per_hour = { disk = 0.35, memory = 1.2 }
[[objective]]
metric = "commits"
min = "keeps"
where = { storage = "memory" }
[[objective]]
metric = "written_per_transaction"
max = "1B"
where = { storage = "memory" }
"""


@pytest.mark.long
def test_a_real_run_is_judged_and_its_pipeline_stopped(project):
    project.write(project.experiment + OBJECTIVES)
    junit = project.folder / "junit.xml"
    ran = project.run("--repeats", "3", "--duration", "2s", "--fail-on", "objective", "--junit", junit)
    assert ran.returncode == 99, ran.stderr
    assert "p99 latency at most 1us: not met" in ran.stdout
    report = project.plinth("report", project.bundle, "--json", "--fail-on", "objective")
    assert report.returncode == 99
    found = json.loads(report.stdout)["analysis"]["objectives"]
    outcomes = {(one["metric"], one["variant"]): one["outcome"] for one in found}
    for variant in ("disk", "memory"):
        assert outcomes["latency_p99", variant] == "not met"
        assert outcomes["tps", variant] == "met"
        assert outcomes["wal_per_transaction", variant] == "met"
        assert outcomes["cost_per_million_transactions", variant] == "met"
    assert outcomes["commits", "memory"] == "not met"
    assert outcomes["written_per_transaction", "memory"] == "not measured", "memory has no device"
    cost = next(one for one in found if one["metric"] == "cost_per_million_transactions" and one["variant"] == "memory")
    tps = next(one for one in found if one["metric"] == "tps" and one["variant"] == "memory")
    assert abs(cost["figure"]["value"] * tps["figure"]["value"] * 3600 / 1e6 - 1.2) < 1e-6
    root = ElementTree.parse(junit).getroot()
    assert (root.get("tests"), root.get("failures")) == ("10", "3")


def test_a_gate_without_objectives_is_refused_before_anything_is_measured(project):
    refused = project.run("--fail-on", "objective")
    assert refused.returncode == 2
    assert "[[objective]]" in refused.stderr
    assert not project.bundle.exists()
