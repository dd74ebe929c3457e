"""A plan that an earlier Plinth wrote is read: `former/plan-version-1.json` is one as version 1 of the plan was written."""

import json
import shutil
from pathlib import Path

import pytest

from bundle_parts import PLAN
from plinth.bundle import BundleWriter, read_plan
from plinth.model.errors import RunError
from plinth.model.plan import PLAN_VERSION, Plan

FORMER = Path(__file__).parent / "former" / "plan-version-1.json"


@pytest.fixture
def bundle(tmp_path):
    BundleWriter.create(tmp_path / "b", PLAN, "", "0.1.0").finish("complete")
    shutil.copy(FORMER, tmp_path / "b" / "plan.json")
    return tmp_path / "b"


def test_the_server_of_a_cluster_is_read_as_its_primary(bundle):
    plan = read_plan(bundle)
    first, second = plan.clusters
    assert [node.name for node in first.nodes] == ["primary"]
    assert first.primary.roles == {"data": "disk", "tablespace bulk": "fast"}
    assert second.primary.roles == {"data": "disk", "WAL": "fast", "tablespace bulk": "fast"}
    assert second.storages == ("disk", "fast")
    assert second.bytes_by_storage == {"disk": 51304432, "fast": 65402216}
    assert not plan.is_external


def test_what_was_read_is_written_in_this_version(bundle):
    plan = read_plan(bundle)
    written = json.loads(plan.model_dump_json())
    assert written["schema_version"] == PLAN_VERSION
    assert "server" not in written["clusters"][0] and "nodes" in written["clusters"][0]
    assert Plan.model_validate(written) == plan


@pytest.mark.parametrize(
    "names",
    [[], ["standby"], ["primary", "primary"], ["primary", "../elsewhere"]],
    ids=["none", "other", "twice", "path"],
)
def test_nodes_without_names_of_their_own_are_refused(bundle, names):
    document = json.loads(FORMER.read_text())
    for cluster in document["clusters"]:
        server = cluster.pop("server")
        del cluster["storage"], cluster["bytes_by_storage"]
        cluster["nodes"] = [{"name": name, "server": server} for name in names]
    (bundle / "plan.json").write_text(json.dumps(document))
    with pytest.raises(RunError, match=r"clusters\.0"):
        read_plan(bundle)


@pytest.mark.parametrize("value", [None, "/home/a/config"])
def test_a_configuration_of_ssh_that_a_former_experiment_named_is_not_read(bundle, value):
    document = json.loads(FORMER.read_text())
    document["experiment"]["fleet"] = {"address": "ssh", "hosts": ["client1"], "ssh_config": value}
    (bundle / "plan.json").write_text(json.dumps(document))
    fleet = read_plan(bundle).experiment.fleet
    assert fleet is not None and fleet.hosts == ("client1",)
    assert "ssh_config" not in fleet.model_dump()
