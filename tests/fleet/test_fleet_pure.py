"""What fleets compute without machines: offsets of clocks, shares of a load, merged histograms, and what is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plinth.fleet.asking import ClockOffset, Exchange, clock_offset
from plinth.fleet.check import check_drivers, check_versions
from plinth.fleet.merge import SecondHistograms, add_histograms, merged_totals
from plinth.fleet.protocol import Hello, Request
from plinth.fleet.split import clients_of, parts_of, threads_of_fleet
from plinth.load import LoadConfig, LoadScript
from plinth.load.drivers.aggregates import highest_of_buckets
from plinth.model.connection import Connection
from plinth.model.errors import MissingCapability, UsageError
from plinth.model.fleet import FleetSpec
from plinth.model.histogram import Buckets
from plinth.model.load import FleetTrial, MachineTrial, Totals
from plinth.system.framed_tls import ProtocolError, parsed

_TIMES_NS = st.lists(st.integers(0, 2**42), min_size=1, max_size=50)


@given(
    offset_ns=st.integers(-(10**15), 10**15),
    ways_ns=st.lists(st.tuples(st.integers(1, 10**7), st.integers(1, 10**7)), min_size=1, max_size=20),
)
def test_the_true_offset_is_within_the_error_however_unequal_the_ways_are(
    offset_ns: int, ways_ns: list[tuple[int, int]]
) -> None:
    exchanges = [
        Exchange(0, there_ns + offset_ns, there_ns + 500 + offset_ns, there_ns + 500 + back_ns)
        for there_ns, back_ns in ways_ns
    ]
    found = clock_offset(exchanges)
    assert abs(found.offset_ns - offset_ns) <= found.error_ns + 1
    assert found.error_ns == (min(map(sum, ways_ns)) + 1) // 2


def _config(clients: int, threads: int) -> LoadConfig:
    nowhere = Connection(host="/nowhere", port=1, user="nobody", database="none")
    script = LoadScript(name="s", source="SELECT 1;")
    return LoadConfig(connection=nowhere, scripts=[script], clients=clients, threads=threads, duration_s=1.0)


@given(machines=st.integers(1, 40), more=st.integers(0, 200), threads=st.integers(1, 16))
def test_every_client_has_one_machine(machines: int, more: int, threads: int) -> None:
    clients = machines + more
    parts = parts_of(_config(clients, threads), machines)
    shares = [clients_of(part) for part in parts]
    assert sum(own for own, _ in shares) == clients and min(own for own, _ in shares) >= 1
    assert sum(own for _, own in shares) == threads_of_fleet(clients, threads, machines) == parts[0].threads
    assert len({own for _, own in shares}) == 1, (
        "the i-th arrival goes to machine i modulo N only with equally many threads"
    )


def test_a_machine_without_a_client_is_refused() -> None:
    with pytest.raises(UsageError, match="got 2 for a fleet of 3 machines"):
        parts_of(_config(2, 1), 3)


def _taken(row: int, times_ns: list[int]) -> bytes:
    numbers = [row]
    for times in (times_ns, []):
        highest = sorted(highest_of_buckets(_array(times)).tolist())
        buckets = [n for value in sorted(set(highest)) for n in (value, highest.count(value))]
        exact = [len(times), sum(times), min(times, default=0), max(times, default=0)]
        numbers += [*exact, len(set(highest)), *buckets]
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def _array(times: list[int]):
    import numpy as np

    return np.array(times, np.int64)


@given(parts=st.lists(_TIMES_NS, min_size=1, max_size=4))
def test_merged_histograms_are_the_histogram_of_everything(parts: list[list[int]]) -> None:
    merged: dict[int, SecondHistograms] = {}
    for times_ns in parts:
        add_histograms(merged, _taken(3, times_ns))
    alone: dict[int, SecondHistograms] = {}
    add_histograms(alone, _taken(3, [time for times_ns in parts for time in times_ns]))
    assert merged == alone
    shares = (0.0, 0.5, 0.95, 0.99, 1.0)
    assert [merged[3].latencies.percentile_ns(s) for s in shares] == [
        alone[3].latencies.percentile_ns(s) for s in shares
    ]
    assert merged[3].lags == Buckets()


@pytest.mark.parametrize("cut", [1, 8, 20, 47])
def test_histograms_that_are_cut_off_are_refused(cut: int) -> None:
    whole = _taken(0, [700, 3_000])
    with pytest.raises(ProtocolError):
        add_histograms({}, whole[:-cut])


def test_a_count_that_one_part_does_not_know_is_not_known() -> None:
    known = Totals(scheduled=3, done=2, failed=1, skipped=0, open=0, retries=0, retried=0, rolled_back=1)
    merged = merged_totals([known, known.model_copy(update={"rolled_back": None})])
    assert (merged.done, merged.failed, merged.rolled_back) == (4, 2, None)


def test_other_versions_are_refused_with_the_list() -> None:
    ours = Hello(plinth="0.0.1", python="3.11.0")
    with pytest.raises(MissingCapability) as refused:
        check_versions({"client1": ours, "client2": ours.model_copy(update={"python": "3.12.1"})})
    assert "client2: plinth 0.0.1, Python 3.12.1" in refused.value.details


def test_other_versions_of_a_driver_are_refused_with_the_list() -> None:
    check_drivers({"client1": "psycopg 3.2.1", "client2": "psycopg 3.2.1"})
    with pytest.raises(MissingCapability, match="different versions of the driver") as refused:
        check_drivers({"client1": "psycopg 3.2.1", "client2": "psycopg 3.1.0"})
    assert "client2: psycopg 3.1.0" in refused.value.details


def test_what_a_message_holds_is_not_in_the_error_about_it() -> None:
    with pytest.raises(ProtocolError) as refused:
        parsed(Request, b'{"kind": "reach", "connection": {"host": "h", "password": "sesame", "port": "sesame"}}')
    assert "sesame" not in str(refused.value)


def _trial(*first_starts_ns: int | None, clock_error_ns: int = 100_000, clock_moved_ns: int = 0) -> FleetTrial:
    totals = Totals(scheduled=1, done=1, failed=0, skipped=0, open=0, retries=0, retried=0)
    machines = tuple(
        MachineTrial.model_construct(
            name=f"m{n}",
            first_start_ns=start_ns,
            measured=totals,
            clock_error_ns=clock_error_ns,
            clock_moved_ns=clock_moved_ns,
        )
        for n, start_ns in enumerate(first_starts_ns)
    )
    known = [start for start in first_starts_ns if start is not None]
    skew_ns = max(known) - min(known) if len(known) == len(machines) else None
    return FleetTrial.model_construct(machines=machines, skew_ns=skew_ns, skew_limit_ns=5_000_000)


@pytest.mark.parametrize(
    ("starts_ns", "words"),
    [
        ((0, 5_000_000), None),
        ((100_000, 5_200_000), "machines began up to 5.1 ms after one another; 5 ms are allowed"),
        ((7_000_000, 7_500_000), "a machine began up to 7.5 ms after the agreed start"),
        ((0, None), "a machine served no client"),
    ],
)
def test_a_trial_that_did_not_begin_together_is_excluded_by_a_rule(
    starts_ns: tuple[int | None, ...], words: str | None
) -> None:
    excluded = _trial(*starts_ns).excluded
    assert excluded is None if words is None else excluded is not None and words in excluded


def test_a_trial_whose_clocks_are_not_known_well_enough_is_excluded() -> None:
    assert _trial(0, 1_000, clock_error_ns=2_500_000).excluded is None
    excluded = _trial(0, 1_000, clock_error_ns=20_300_000).excluded
    assert excluded is not None and "that of m0 is known to within 20.3 ms only" in excluded


def test_a_trial_in_which_a_clock_jumped_is_excluded() -> None:
    assert _trial(0, 1_000, clock_moved_ns=5_000_000).excluded is None
    excluded = _trial(0, 1_000, clock_moved_ns=100_000_000).excluded
    assert excluded is not None and "that of m0 moved by 100.0 ms against the coordinator's" in excluded
    before, after = ClockOffset(1_000, 100), ClockOffset(-50_000, 200)
    assert (before.least_move_ns(after), before.least_move_ns(ClockOffset(1_300, 250))) == (50_700, 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"executor": "ssh"}, "needs hosts"),
        ({"executor": "ssh", "hosts": ["a"], "machines": 2}, "there are 1 hosts"),
        ({"executor": "ssh", "hosts": ["a", "a"]}, "named twice"),
        ({"executor": "ssh", "hosts": ["-oProxyCommand=x"]}, "is no host"),
        ({"executor": "ssh", "hosts": ["a b"]}, "is no host"),
        ({"executor": "ssh", "hosts": ["a"], "command": "plinth; rm x"}, "path of plinth alone"),
        ({"executor": "local", "hosts": ["a"]}, 'only with executor = "ssh"'),
        ({"executor": "slurm"}, "'local', 'ssh' or 'ray'"),
        ({"executor": "local", "machines": 0}, "greater than or equal to 1"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        FleetSpec.model_validate(given)
