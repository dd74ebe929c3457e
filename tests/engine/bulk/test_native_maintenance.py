"""What Plinth chooses for a load where nobody has said: streams by the server's version, workers for keys."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from native_server import Server
from plinth.model.dataset import NumbersDataset, TpcbDataset
from plinth.system.cgroup import processors
from plinth.workload.loading import Recipe
from plinth.workload.maintenance import Maintenance
from plinth.workload.partitions import Part

CHOSEN = [f"SET max_parallel_maintenance_workers = {processors() - 1}"]


NO_ROWS: Any = {}
"""No generator: nothing is generated here."""


def recipe(rows: int, partitions: int = 0, streams: int | None = None) -> Recipe:
    spec = NumbersDataset(kind="numbers", rows=rows, partitions=partitions, streams=streams)
    parts = tuple(Part(f"p{number}", 0, 0, rows // (partitions or 1)) for number in range(partitions or 1))
    return Recipe(spec, NO_ROWS, parts, 50.0, (), {"numbers": rows}, (), ())


@pytest.mark.parametrize(
    ("rows", "partitions", "asked", "version", "streams", "freezes"),
    [
        (1_000_000, 0, None, 130_012, 2, False),
        (1_000_000, 0, None, 140_000, 1, True),
        (1_000_000, 0, None, 150_014, 1, True),
        (1_000_000, 0, None, 160_000, 2, False),
        (200_000_000, 0, None, 150_014, 2, False),  # above 8 GiB: too long to begin again
        (1_000_000, 4, None, 150_014, 2, True),
        (1_000_000, 4, 3, 180_000, 3, True),
        (1_000_000, 0, 4, 150_014, 4, False),
        (200_000_000, 0, 1, 180_000, 1, True),
        (1_000_000, 0, 1, 130_012, 1, False),
    ],
)
def test_streams_are_chosen_by_version_and_size_unless_asked_for(
    rows: int, partitions: int, asked: int | None, version: int, streams: int, freezes: bool
) -> None:
    made = recipe(rows, partitions, asked)
    assert (made.streams(version), made.freezes(version)) == (streams, freezes)


@pytest.fixture
def database(server: Server) -> Iterator[str]:
    server.execute("CREATE DATABASE maintenance")
    yield "maintenance"
    server.execute("DROP DATABASE maintenance WITH (FORCE)")


def settings(server: Server, maintenance: Maintenance) -> list[str]:
    """Of a new session, which can be told them."""
    with psycopg.connect(
        host=str(server.folder), port=server.port, user="postgres", dbname="maintenance", autocommit=True
    ) as control:
        found = list(maintenance.settings(control))
        for statement in found:
            control.execute(statement.encode())
        has_ring_setting = control.info.server_version >= 160_000
    ring = "SET vacuum_buffer_usage_limit = 0"
    assert (ring in found) == has_ring_setting
    return [statement for statement in found if statement != ring]


def test_a_key_is_built_by_all_processors_where_nobody_has_said(server: Server, database: str) -> None:
    spec = TpcbDataset(kind="tpcb")
    assert settings(server, Maintenance(spec, 1)) == CHOSEN
    # Of several at the same time, each has its share of processors.
    assert settings(server, Maintenance(spec, 2 * processors())) == ["SET max_parallel_maintenance_workers = 0"]


def test_what_dataset_or_server_say_is_obeyed(server: Server, database: str) -> None:
    asked = TpcbDataset(kind="tpcb", maintenance_work_mem="7MB", maintenance_workers=5)
    obeyed = ["SET maintenance_work_mem = '7MB'", "SET max_parallel_maintenance_workers = 5"]
    assert settings(server, Maintenance(asked, 1)) == obeyed
    assert Maintenance(asked, 1).description() == ""
    server.execute("ALTER DATABASE maintenance SET max_parallel_maintenance_workers = 1")
    assert settings(server, Maintenance(TpcbDataset(kind="tpcb"), 1)) == []
