"""Forecasts for other drives: each part of a transaction's time by its own rule, the limits of drives, and what is refused."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyse_bundles import bundle
from plinth.analyse.forecast import Demand, Drive, at_its_limit, drive_of, forecast, forecast_on
from plinth.model.errors import UsageError
from plinth.model.figures import Estimate
from plinth.storage.devices.disk_daemon import disk_profiles

MS = 1e6
PROFILES = {profile.name: profile for profile in disk_profiles()}
FAST = Drive("fast", random_read_ns=0.1 * MS, random_write_ns=0.05 * MS, log_write_ns=0.1 * MS)


def demand(**parts: float) -> Demand:
    """What one client does of whose transactions each takes as long as its parts."""
    given_ns: dict[str, Any] = {"work_ns": 0.0, "flush_ns": 0.0, "read_ns": 0.0, "write_ns": 0.0, "lock_ns": 0.0}
    given_ns.update({name: value for name, value in parts.items() if name in given_ns})
    others = {name: value for name, value in parts.items() if name not in given_ns}
    clients = int(others.pop("clients", 1))
    base = Demand(
        clients=clients,
        tps=1e9 * clients / sum(given_ns.values()),
        tps_error=0.0,
        p99_ns=3 * sum(given_ns.values()),
        **given_ns,
        cpu_s=1e-6,
        cores=64,
        reads=0.0,
        writes=2.0,
        flushes=1.0,
        read_bytes=0.0,
        write_bytes=16384.0,
    )
    return replace(base, **others)


def tps(of: Demand, there: Drive, here: Drive = FAST) -> float:
    found = forecast_on(of, here, there).tps
    assert found is not None
    return found.value


def times_slower(factor: float) -> Drive:
    return replace(
        FAST,
        name="slow",
        random_read_ns=FAST.random_read_ns * factor,
        random_write_ns=FAST.random_write_ns * factor,
        log_write_ns=FAST.log_write_ns * factor,
    )


@pytest.mark.parametrize("part", ["flush_ns", "read_ns", "write_ns"])
def test_on_the_same_drive_it_does_the_same(part: str) -> None:
    one = demand(**{part: 2 * MS, "work_ns": 1 * MS, "lock_ns": 1 * MS})
    found = forecast_on(one, FAST, FAST)
    assert found.tps is not None and found.tps.interval is not None
    assert found.tps.value == pytest.approx(one.tps, rel=0.001)
    assert found.tps.interval.low < one.tps < found.tps.interval.high
    assert found.latency_p99_ns is not None
    assert found.latency_p99_ns.value == pytest.approx(one.p99_ns, rel=0.001)


def test_only_what_waits_for_the_drive_takes_longer() -> None:
    assert tps(demand(flush_ns=1 * MS), times_slower(10)) == pytest.approx(100, rel=0.01)
    half = demand(flush_ns=1 * MS, work_ns=1 * MS)
    assert tps(half, times_slower(10)) == pytest.approx(1000 / 11, rel=0.01)
    assert tps(half, times_slower(0.1)) == pytest.approx(1000 / 1.1, rel=0.01)
    assert tps(demand(work_ns=1 * MS), times_slower(10)) == pytest.approx(1000, rel=0.01)


def test_locks_are_held_as_long_as_the_rest_takes() -> None:
    assert tps(demand(flush_ns=1 * MS, lock_ns=3 * MS), times_slower(10)) == pytest.approx(25, rel=0.01)


def test_the_limits_of_a_drive_bound_it() -> None:
    one = demand(flush_ns=0.5 * MS, work_ns=0.5 * MS, clients=16, reads=1.0, read_bytes=8192.0)
    limited = forecast_on(one, FAST, replace(FAST, iops=300))
    assert limited.limit == "requests a second"
    assert limited.tps is not None
    assert limited.tps.value == pytest.approx(300 / (1 + 1 + 2 / 16), rel=0.01), "a read, a page, a shared flush"
    narrow = forecast_on(one, FAST, replace(FAST, bytes_per_s=24576 * 50))
    assert narrow.limit == "bytes a second"
    assert narrow.tps is not None and narrow.tps.value == pytest.approx(50, rel=0.01)


def test_no_forecast_beyond_the_processors() -> None:
    one = demand(flush_ns=10 * MS, work_ns=0.1 * MS, clients=16, cpu_s=0.0004, cores=2)
    found = forecast_on(one, FAST, times_slower(0.01))
    assert found.tps is None
    assert found.limit == "CPU"
    assert "about 4,500 transactions/s" in str(found.unavailable)
    assert forecast_on(one, FAST, times_slower(1)).unavailable is None


def test_a_drive_a_hundred_times_slower_is_an_extrapolation() -> None:
    one = demand(flush_ns=1 * MS)
    assert forecast_on(one, FAST, times_slower(50)).notes == ()
    assert forecast_on(one, FAST, times_slower(200)).notes == ("an extrapolation: WAL flush 200 times slower",)
    assert forecast_on(one, FAST, times_slower(1 / 200)).notes == ("an extrapolation: WAL flush 200 times faster",)
    without_flush = demand(read_ns=1 * MS)
    assert forecast_on(without_flush, FAST, replace(FAST, log_write_ns=100 * MS)).notes == ()


@given(
    st.floats(0.01, 100),
    st.floats(1.01, 10),
    st.floats(0, 10),
    st.floats(0.01, 10),
    st.floats(0, 10),
    st.integers(1, 64),
)
def test_a_slower_drive_is_never_faster(
    factor: float, more: float, work: float, flush: float, lock: float, clients: int
) -> None:
    one = demand(work_ns=work * MS, flush_ns=flush * MS, lock_ns=lock * MS, clients=clients, cpu_s=0.0)
    assert tps(one, times_slower(factor * more)) <= tps(one, times_slower(factor)) * 1.0001


def test_flushes_that_move_the_head_of_one_drive_only() -> None:
    one = demand(flush_ns=1 * MS, work_ns=0.1 * MS)
    with_head = replace(FAST, read_seek_ns=10 * MS, write_seek_ns=5 * MS)
    by_fsync = replace(one, sync_method="fsync")
    assert "moves the head" in str(forecast_on(by_fsync, FAST, with_head).unavailable)
    assert "moves the head" in str(forecast_on(by_fsync, with_head, FAST).unavailable)
    assert forecast_on(by_fsync, with_head, with_head).tps is not None
    assert forecast_on(one, FAST, with_head).tps is not None


def test_waits_for_the_limit_of_a_drive_say_nothing_of_another() -> None:
    assert at_its_limit(demand(flush_ns=2 * FAST.log_write_ns, work_ns=1 * MS), FAST) is None
    assert "20 times as long as a flush" in str(at_its_limit(demand(flush_ns=20 * FAST.log_write_ns), FAST))


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        ({"read_iops": 2000}, "requests a second"),
        ({"iops": 2300}, "requests a second"),
        ({"bytes_per_s": 16e6}, "bytes a second"),
        ({"read_seek_ns": 0.8 * MS}, "seeks"),
        ({"read_seek_ns": 0.6 * MS}, None),
        ({"iops": 4000, "read_iops": 4000, "bytes_per_s": 99e6, "read_seek_ns": 0.25 * MS}, None),
    ],
)
def test_a_drive_that_does_all_that_it_can_says_nothing_of_another(limits: dict[str, float], limit: str | None) -> None:
    """1,000 transactions a second, each of two reads of 8 kB and a quarter of a write."""
    one = demand(read_ns=4 * MS, clients=4, reads=2.0, writes=0.25, read_bytes=16_000.0)
    assert one.tps == pytest.approx(1000)
    reason = at_its_limit(one, replace(FAST, **limits))
    assert reason == (None if limit is None else f"its drive was at the limit of its {limit}")


def test_drives_of_profiles() -> None:
    disk = drive_of(PROFILES["hdd-7200"])
    assert 50 < 1e9 / disk.read_seek_ns < 150, "a seek and half a revolution each"
    assert 150 < 1e9 / disk.write_seek_ns < 250, "half a revolution and a short seek"
    one = demand(flush_ns=0.1 * MS, clients=16, reads=1.0, writes=3.0)
    seeks = forecast_on(one, FAST, replace(FAST, read_seek_ns=10 * MS, write_seek_ns=5 * MS))
    assert seeks.limit == "seeks"
    assert seeks.tps is not None and seeks.tps.value == pytest.approx(2 * 1000 / (10 + 2 * 5), rel=0.01), (
        "16 to choose from"
    )
    volume = drive_of(PROFILES["gp2-100"])
    assert volume.iops == 300
    assert volume.burst is not None and "33 min" in volume.burst
    assert drive_of(PROFILES["gp3"]).burst is None
    assert drive_of(PROFILES["ideal"]).iops == math.inf


def test_of_a_disk_the_interval_has_room_for_data_that_lie_close_together() -> None:
    close, far_away = (
        forecast_on(
            demand(read_ns=0.1 * MS, clients=4, reads=1.0, writes=0.0),
            FAST,
            replace(FAST, read_seek_ns=read_seek_ns, write_seek_ns=5 * MS),
        )
        for read_seek_ns in (5 * MS, 15 * MS)
    )
    assert close.tps and far_away.tps and close.tps.interval and far_away.tps.interval and far_away.latency_p99_ns
    assert far_away.tps.value == pytest.approx(close.tps.value / 3)
    assert not close.notes and "in a small part of it" in far_away.notes[0]
    assert far_away.tps.interval.high > close.tps.value
    assert far_away.tps.interval.low == pytest.approx(
        far_away.tps.value**2 / (far_away.tps.interval.high / 3), rel=0.01
    )
    assert far_away.latency_p99_ns.interval is not None
    assert far_away.latency_p99_ns.interval.low < far_away.latency_p99_ns.value / 3


def test_what_cannot_be_forecast() -> None:
    contents = bundle({"disk": [1000.0, 1010.0, 990.0], "memory": [3000.0, 3030.0, 2970.0]})
    with pytest.raises(UsageError, match="no such variant; there are: disk, memory"):
        forecast(contents, PROFILES, ("nvme",), "disc")
    with pytest.raises(UsageError, match="no forecast of disk"):
        forecast(contents, PROFILES, ("nvme",))
    failed = bundle({"disk": [None, None, None], "memory": [3000.0, 3030.0, 2970.0]})
    with pytest.raises(UsageError, match="no trial of disk counts"):
        forecast(failed, PROFILES, ("nvme",))


def test_an_estimate_of_one_run_has_an_interval_of_90_percent() -> None:
    found = forecast_on(demand(flush_ns=1 * MS), FAST, times_slower(3)).tps
    assert isinstance(found, Estimate) and found.interval is not None
    assert found.interval.level == 0.9
    wider = forecast_on(demand(flush_ns=1 * MS), FAST, times_slower(30)).tps
    assert wider is not None and wider.interval is not None
    assert wider.interval.high / wider.value > found.interval.high / found.value
