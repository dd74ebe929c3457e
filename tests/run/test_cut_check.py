"""What a check after a power cut makes of a server that does not live through it."""

import os
import signal
from typing import Any

import pytest

from plinth.model.load import LoadResult
from plinth.model.plan import Variant
from plinth.model.workload import WorkloadSpec
from plinth.run.cut_check import CutState, Findings, check_recovered
from plinth.server import Cluster, connect
from plinth.system.runner import Runner
from plinth.workload.registry import Nothing
from plinth.workload.survival import Survival
from servers import new_clusters

VARIANT = Variant(
    id="v",
    label="the variant",
    levels={},
    cluster="c",
    settings={},
    workload=WorkloadSpec(builtin="tpcb-like"),
    scripts=(),
)


class CrashesTheServer(Nothing):
    """A dataset whose backend dies of a signal while its rows are read, as of a page that makes it."""

    def after_cut(self, control: Any, before: dict[str, int], result: LoadResult) -> Survival:
        os.kill(control.info.backend_pid, signal.SIGSEGV)
        control.execute("SELECT pg_sleep(60)")
        raise AssertionError("the server answered")


class Whole(Nothing):
    """A dataset that has lost nothing."""

    def after_cut(self, control: Any, before: dict[str, int], result: LoadResult) -> Survival:
        return Survival(acknowledged=3, unanswered=0, damage=())


@pytest.fixture(scope="module")
def cluster():
    with new_clusters({"fsync": False}) as start:
        yield start("18")


def checked(cluster: Cluster, dataset: Nothing) -> Findings:
    with connect(cluster.connection) as control:
        row = control.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    found, at_cut = Findings(), CutState({}, LoadResult.model_construct(), None, 0, row[0])
    check_recovered(cluster, cluster.layout.installation, VARIANT, dataset, at_cut, found, Runner())
    return found


def test_a_server_that_crashes_while_it_is_checked_is_a_finding_with_its_log(cluster):
    found = checked(cluster, CrashesTheServer())
    (damage,) = found.damage
    assert damage.kind == "server crashed"
    assert "server closed the connection unexpectedly" in damage.evidence[0]
    assert any("was terminated by signal 11" in line for line in damage.evidence)
    assert not found.is_intact
    assert [check.name for check in found.checks] == ["pg_checksums"], "what can still be looked at, is"


def test_a_server_that_answers_has_none(cluster):
    cluster.start({"fsync": False})
    found = checked(cluster, Whole())
    assert found.damage == [] and found.acknowledged == 3
    assert len(found.checks) > 3
