"""Standbys in a plan: which variants share servers, in which order nodes are made, and what each is stored on."""

import pytest
from pydantic import ValidationError

from plinth.model.dataset import NoDataset
from plinth.model.experiment import Experiment
from plinth.model.facts import HostFacts
from plinth.model.plan import DatasetSize, PlannedCluster, PlannedNode, ScriptText
from plinth.model.server_spec import ServerSpec
from plinth.plan import PlanInputs, build_plan, expand
from plinth.server.replication.standby import settings_of_standby

STORAGES = {"disk": {"kind": "directory"}, "slow": {"kind": "emulated", "profile": "hdd-7200", "size": "4GiB"}}
TWO = {"b": {"storage": "slow", "upstream": "a"}, "a": {"storage": "disk"}}


def expanded(matrix, standbys=TWO, **server):
    document = {
        "spec": 1,
        "name": "x",
        "question": "?",
        "storage": STORAGES,
        "server": {"storage": "disk", "standby": standbys, **server},
        "dataset": {"kind": "tpcb", "scale": 1},
        "workload": {"builtin": "tpcb-like"},
        "matrix": matrix,
        "measure": {"aa": False},
    }
    experiment = Experiment.model_validate(document, by_alias=True, by_name=False)
    return experiment, expand(experiment, lambda workload, dataset: (ScriptText(name="x", source="SELECT 1;"),))


def test_settings_of_commits_share_the_servers():
    matrix = {
        "server.settings.synchronous_commit": ["on", "remote_write"],
        "server.synchronous_standby_names": ["", "FIRST 1 (a)"],
        "server.standby.a.settings.recovery_min_apply_delay": ["0", "1s"],
    }
    _, found = expanded(matrix)
    assert (len(found.variants), len(found.clusters)) == (8, 1)
    assert {variant.settings["synchronous_standby_names"] for variant in found.variants} == {"", "FIRST 1 (a)"}
    delays = [variant.standby_settings["a"]["recovery_min_apply_delay"] for variant in found.variants]
    assert delays.count("1s") == 4


def test_topologies_that_differ_do_not_share_servers():
    _, found = expanded({"server.standbys": [0, 1, 2]}, standbys={"a": {"storage": "disk"}, "b": {"storage": "slow"}})
    assert [list(cluster.server.standby) for cluster in found.clusters] == [[], ["a"], ["a", "b"]]
    _, found = expanded({"server.standby.a.storage": ["disk", "slow"]})
    assert [cluster.server.standby["a"].storage for cluster in found.clusters] == ["disk", "slow"]


def test_a_storage_of_a_standby_is_one_for_each_of_its_levels():
    _, found = expanded({"storage.slow.profile": ["hdd-7200", "nvme"]})
    assert [cluster.server.standby["b"].storage for cluster in found.clusters] == ["slow-hdd-7200", "slow-nvme"]


def planned() -> PlannedCluster:
    experiment, found = expanded({}, tablespaces={"bulk": "slow"}, port=5433)
    host = HostFacts(
        cores=2,
        memory_total_bytes=2**40,
        memory_available_bytes=2**40,
        is_root=True,
        can_mount=True,
        kernel="",
        os="",
        cpu_model="",
    )
    inputs = PlanInputs(
        run_id="r",
        facts={None: host},
        places=lambda clusters: {},
        installations={},
        dataset_size=lambda spec: DatasetSize(1000, 100),
        populate_s=lambda spec: 1.0,
        provision_steps=lambda clusters: [],
        trial_steps=lambda trial, variant, cluster: [],
        teardown_steps=lambda clusters: [],
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plinth.plan.build.needs_of", lambda *_: [])
        patch.setattr("plinth.plan.build.estimated_s", lambda *_: 1.0)
        (cluster,) = build_plan(experiment, found, (), inputs).clusters
    return cluster


def test_nodes_come_after_what_they_stream_from_and_have_their_own_places():
    cluster = planned()
    assert [(node.name, node.upstream) for node in cluster.nodes] == [
        ("primary", None),
        ("a", "primary"),
        ("b", "a"),
    ]
    a, b = cluster.standbys
    assert a.roles == {"data": "disk", "tablespace bulk": "disk"}
    assert b.roles == {"data": "slow", "tablespace bulk": "slow"}
    assert all(isinstance(node.server, ServerSpec) and not node.server.standby for node in cluster.nodes)
    assert (cluster.primary.server.port, a.server.port) == (5433, None)
    assert a.bytes_by_storage["disk"] == sum(cluster.primary.bytes_by_storage.values())


def test_a_standby_has_no_less_than_its_primary_ever_has():
    variants = [{"max_connections": 300, "Max_Wal_Senders": "4"}, {"max_connections": 50}, {}]
    found = settings_of_standby({"max_connections": 50, "work_mem": "1MB"}, {"work_mem": "2MB"}, variants)
    assert found == {"max_connections": 300, "max_wal_senders": 10, "work_mem": "2MB"}
    found = settings_of_standby({"synchronous_standby_names": "a", "fsync": False}, {"FSYNC": True}, [])
    assert found == {"FSYNC": True}


@pytest.mark.parametrize(
    "names", [[], ["standby"], ["primary", "primary"]], ids=["none", "another", "the same name twice"]
)
def test_nodes_without_a_primary_or_with_one_name_are_refused(names):
    server = ServerSpec(version=16)
    nodes = tuple(PlannedNode(name=name, server=server) for name in names)
    with pytest.raises(ValidationError, match="have names of their own, and one is 'primary'"):
        PlannedCluster(id="1", nodes=nodes, dataset=NoDataset(kind="none"), installation=None, data_bytes=0)
