"""A cluster is a set of nodes: each has folders, a log, a socket and steps of its own."""

import pytest

from making import RUN_ID, from_toml, host
from plinth.model.dataset import NoDataset
from plinth.model.facts import Installation
from plinth.model.plan import PlannedCluster, PlannedNode
from plinth.model.server_spec import ServerSpec
from plinth.run.context import RunContext
from plinth.system.owner import server_owner

STORAGES = """\
[storage.disk]
kind = "directory"
[storage.fast]
kind = "tmpfs"
size = "64MiB"
[storage.unused]
kind = "directory"
"""
CLUSTER = PlannedCluster(
    id="1-disk",
    nodes=(
        PlannedNode(
            name="primary",
            server=ServerSpec(storage="disk", wal_storage="fast"),
            bytes_by_storage={"disk": 300, "fast": 20},
        ),
        PlannedNode(
            name="second",
            server=ServerSpec(storage="disk", tablespaces={"bulk": "fast"}),
            bytes_by_storage={"disk": 310, "fast": 10},
        ),
    ),
    dataset=NoDataset(kind="none"),
    installation=Installation(bindir="/usr/lib/postgresql/18/bin", version="18.1", major=18, origin="debian"),
    data_bytes=320,
)


@pytest.fixture
def context(tmp_path, state_dir) -> RunContext:
    return RunContext(RUN_ID, {None: host()}, {None: server_owner()}, tmp_path, {**from_toml(STORAGES)})


def test_nodes_share_nothing_but_their_storages(context):
    first, second = context.layouts(CLUSTER)
    disk, fast = context.storages["disk"].mount_point, context.storages["fast"].mount_point
    assert (first.data_directory, first.wal_directory) == (disk / "1-disk", fast / "1-disk.wal")
    assert second.data_directory == disk / "1-disk.second"
    assert second.tablespaces == {"bulk": fast / "1-disk.second.tablespace-bulk"}
    assert (first.log.path.name, second.log.path.name) == (
        "postgresql-1-disk.log",
        "postgresql-1-disk.second.log",
    )
    assert first.socket_directory != second.socket_directory
    ids = [step.id for layout in (first, second) for step in layout.steps()]
    assert len(set(ids)) == len(ids)
    assert {step_id.rpartition(".")[0] for step_id in ids} == {"server.1-disk", "server.1-disk.second"}


def test_a_cluster_uses_and_takes_what_its_nodes_do(context):
    assert CLUSTER.storages == ("disk", "fast")
    assert [storage.name for storage in context.used_storages([CLUSTER])] == ["disk", "fast"]
    assert CLUSTER.bytes_by_storage == {"disk": 610, "fast": 30}
