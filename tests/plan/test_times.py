"""How long a run is said to take: as on a common SSD, and longer by what a storage is known to be slow in."""

from typing import get_args

import pytest
from pytest import approx

from plan_inputs import GIB, experiment, plan_of
from plinth.model.choices import WriteGroup
from plinth.model.dataset import NumbersDataset
from plinth.model.plan import DatasetSize, Pace
from plinth.model.probe import FsyncOptions
from plinth.plan import StoragePlace
from plinth.probe.fsync_probe import cases
from plinth.workload.loading import typical_populate_s

MEASURE = {"warmup": "1s", "duration": "9s", "repeats": 3, "aa": False}
ONE = {"storage": {"disk": {"kind": "directory"}, "wal": {"kind": "directory"}}}


def seconds(
    pace: Pace | None = None,
    wal_pace: Pace | None = None,
    clients: int = 4,
    probe: str = "0s",
    builtin: str = "tpcb-like",
    **server: str,
) -> float:
    places = {
        "disk": StoragePlace("1", "/", 100 * GIB, pace=pace),
        "wal": StoragePlace("1", "/", 100 * GIB, pace=wal_pace),
    }
    measure = MEASURE | {"probe": probe}
    changes = {"matrix": {"storage": ["disk"]}, "server": server, "measure": measure}
    workload = {"builtin": builtin, "clients": clients}
    return plan_of(experiment(**ONE, **changes, workload=workload), places=places).estimated_s


def test_nothing_known_is_a_common_ssd() -> None:
    undo_and_report_s = 0.5 + 2.0 + 3 * 0.1
    assert seconds() == approx(3.0 + 1.0 + 3 * (10.0 + 2.0) + undo_and_report_s)
    assert seconds(Pace(flush_s=0, page_write_s=0, write_bytes_per_s=None)) == seconds()


def test_each_storage_is_probed_once() -> None:
    assert seconds(probe="1s") == approx(seconds() + 8)
    assert seconds(probe="1s", wal_storage="wal") == approx(seconds(wal_storage="wal") + 2 * 8)


def test_loading_goes_at_the_bandwidth_of_the_disk() -> None:
    slow = Pace(flush_s=0, page_write_s=0, write_bytes_per_s=1e6)
    fast = Pace(flush_s=0, page_write_s=0, write_bytes_per_s=1e9)
    assert seconds(slow) - seconds() > 160, "160 MB of tables and keys at 1 MB/s, and the WAL"
    assert seconds(fast) == seconds()


def test_ballast_is_written_at_the_bandwidth_of_the_disk() -> None:
    def of(ballast_bytes: int, write_bytes_per_s: float | None) -> float:
        pace = Pace(flush_s=0, page_write_s=0, write_bytes_per_s=write_bytes_per_s)
        place = StoragePlace("1", "/", 100 * GIB, pace=pace, ballast_bytes=ballast_bytes)
        return plan_of(
            experiment(**ONE, matrix={"storage": ["disk"]}), places={"disk": place, "wal": StoragePlace()}
        ).estimated_s

    assert of(10**10, 1e8) - of(0, 1e8) == approx(100)
    assert 0 < of(10**10, None) - of(0, None) < 100


def test_updates_after_loading_wait_for_the_pages_that_memory_does_not_hold() -> None:
    def of(rows: int, updates_per_row: float) -> float:
        place = StoragePlace("1", "/", 1000 * GIB, pace=Pace(0, 0, None, page_read_s=0.001))
        numbers = {"kind": "numbers", "rows": rows, "updates_per_row": updates_per_row}
        e = experiment(**ONE, matrix={"storage": ["disk"]}, dataset=numbers, workload={"builtin": "numbers-select"})
        return plan_of(e, places={"disk": place, "wal": place}).estimated_s

    assert of(10**6, 1) - of(10**6, 0) < 60, "all in memory: what the server works"
    read_s = 10**9 * 2 * 0.001
    assert 0.8 * read_s < of(10**9, 1) - of(10**9, 0) < 1.1 * read_s


def test_flushes_are_waited_for_at_every_restart() -> None:
    assert seconds(Pace(flush_s=0.1, page_write_s=0, write_bytes_per_s=None)) == approx(seconds() + 3 * 30 * 0.1)


def test_a_checkpoint_writes_what_the_trial_changed_and_at_most_all_there_is() -> None:
    disk = Pace(flush_s=0.01, page_write_s=0.005, write_bytes_per_s=None)
    restarts_s = 3 * 30 * 0.01
    # 4 clients for 10 s, a commit in 10 ms, 2 pages each, at 5 ms a page
    assert seconds(disk) == approx(seconds() + 3 * (4 * 10 / 0.01 * 2 * 0.005) + restarts_s)
    swept = disk._replace(write_bytes_per_s=100e6)
    assert restarts_s < seconds(swept) - seconds() < seconds(disk) - seconds()
    assert seconds(disk, builtin="select-only") == approx(seconds() + restarts_s), "nothing was changed"
    instant = disk._replace(flush_s=1e-6, page_write_s=1e-6)
    assert seconds(instant) - seconds() < 1, "clients commit no faster than they can ask"
    more = disk._replace(flush_s=0.02)
    assert seconds(more) < seconds(disk), "fewer commits change fewer pages"


def test_only_what_is_stored_on_the_slow_disk_is_slow() -> None:
    wal = Pace(flush_s=0.01, page_write_s=0.005, write_bytes_per_s=None)
    assert seconds(wal_pace=wal) == seconds(), "the WAL is not there"
    assert seconds(wal_pace=wal, wal_storage="wal") == approx(seconds(wal_storage="wal") + 3 * 30 * 0.01)


def test_pages_are_loaded_faster_and_written_once() -> None:
    size = DatasetSize(10**10, 5 * 10**9)
    by_sql, by_pages = (
        typical_populate_s(NumbersDataset(kind="numbers", loader=loader), size) for loader in ("copy", "pages")
    )
    assert 2 < by_sql / by_pages < 10
    document = {"kind": "tpcb", "scale": 100}
    by_sql, by_pages = (
        plan_of(experiment(dataset=document | {"loader": loader})).estimated_written_bytes
        for loader in ("copy", "pages")
    )
    assert by_pages < by_sql


def test_the_cache_that_trials_begin_with_takes_time() -> None:
    def of(cache: str, pace: Pace | None = None) -> float:
        place = StoragePlace("1", "/", 100 * GIB, pace=pace)
        e = experiment(**ONE, matrix={"storage": ["disk"]}, measure=MEASURE | {"cache": cache})
        return plan_of(e, places={"disk": place, "wal": place}).estimated_s

    as_is = of("as-is")
    assert of("cold") == approx(as_is + 3 * 3.0), "a restart more for each trial"
    assert as_is < of("warm") < as_is + 3 * 3.0, "all of it is read"
    slow = Pace(flush_s=0, page_write_s=0, write_bytes_per_s=1e6)
    assert of("warm", slow) - of("as-is", slow) > 3 * 100


def test_each_case_of_the_fsync_probe_takes_time_on_each_storage() -> None:
    def of(*groups: str) -> float:
        measure = MEASURE | {"probe": "2s", **({"probe_only": groups} if groups else {})}
        e = experiment(**ONE, matrix={"storage": ["disk"]}, measure=measure)
        return plan_of(e, places={"disk": StoragePlace(), "wal": StoragePlace()}).estimated_s

    assert of("one_block", "unsynced") - of() == approx(2.0)
    assert of("one_block", "two_blocks", "ladder") - of("one_block") == approx(10 * 2.0)


@pytest.mark.parametrize("group", get_args(WriteGroup))
def test_the_probe_has_as_many_cases_as_its_time_is_planned_for(group: WriteGroup) -> None:
    def of(*groups: WriteGroup) -> float:
        e = experiment(**ONE, matrix={"storage": ["disk"]}, measure=MEASURE | {"probe": "1s", "probe_only": groups})
        return plan_of(e, places={"disk": StoragePlace(), "wal": StoragePlace()}).estimated_s

    assert of(group) - of() == approx(len(cases(FsyncOptions(groups=(group,)))))


def test_the_machines_of_a_fleet_begin_together_in_each_trial() -> None:
    def of(**fleet: object) -> float:
        e = experiment(**ONE, matrix={"storage": ["disk"]}, measure=MEASURE, workload={"builtin": "tpcb-like"}, **fleet)
        return plan_of(e, places={"disk": StoragePlace(), "wal": StoragePlace()}).estimated_s

    assert of(fleet={"executor": "local", "machines": 1}) - of() == approx(3 * 4.0)
    assert of(fleet={"executor": "ray", "machines": 1}) - of() == approx(3 * 7.0)


def test_trials_that_end_with_a_budget_take_no_longer_than_it_but_one_block_at_least() -> None:
    def of(**measure: object) -> float:
        usual = MEASURE | {"repeats": 20, "target": "5%", "probe": "0s"}
        places = {"disk": StoragePlace("1", "/", 100 * GIB), "wal": StoragePlace("1", "/", 100 * GIB)}
        two = experiment(**ONE, matrix={"storage": ["disk", "wal"]}, measure=usual | measure)
        return plan_of(two, places=places).estimated_s

    block_s = 2 * (10.0 + 2.0)
    assert of() - of(budget="5min") == approx(20 * block_s - 300)
    assert of() - of(budget="1s") == approx(19 * block_s)
    assert of(budget="1h") == of()


def test_a_budget_is_judged_by_the_shortest_warm_up_that_a_steady_window_allows() -> None:
    def warnings(**measure: object) -> list[str]:
        usual = MEASURE | {"target": "5%", "budget": "90s", "repeats": 20}
        places = {"disk": StoragePlace("1", "/", 100 * GIB), "wal": StoragePlace("1", "/", 100 * GIB)}
        two = experiment(**ONE, matrix={"storage": ["disk", "wal"]}, measure=usual | measure)
        return list(plan_of(two, places=places).warnings)

    assert not any("measure.budget" in one for one in warnings())
    (said,) = [one for one in warnings(warmup_max="60s", steady_window="20s") if "measure.budget" in one]
    assert said.endswith("before which nothing is decided take 3 min 52 s or more")
