"""Growth in a measured phase, compared with what the server says at both of its ends."""

import itertools
import time
from typing import Any

import pytest

from plinth.analyse.window import measured_phase
from plinth.model.trial import Trial
from plinth.observe.sampler import LocalSampler, stop_all
from plinth.observe.source import Reading, Readout
from plinth.server.server import LocalServer
from sampled import by_metric
from waiting import wait_until
from watching import Watched, ask, client, major, watching

S = 1_000_000_000
FAR_S = 60


def write(cluster: LocalServer, messages: int) -> None:
    """WAL of about 10 kB a message, by a session that ends, and so has reported all of it."""
    with client(cluster) as session:
        session.autocommit = True
        for _ in range(messages):
            session.execute("SELECT pg_logical_emit_message(false, 'plinth', repeat('x', 10000))")


def wal(cluster: LocalServer) -> tuple[int, int | None]:
    """The position in the WAL, and the bytes of pg_stat_wal where there is one."""
    ((position,),) = ask(cluster, "SELECT pg_current_wal_insert_lsn() - '0/0'")
    counted = ask(cluster, "SELECT wal_bytes FROM pg_stat_wal") if major(cluster) >= 14 else [(None,)]
    return int(position), None if counted[0][0] is None else int(counted[0][0])


def wait_for_reading(watched: Watched, at_ns: int) -> None:
    wait_until(lambda: watched.live("pg_wal")[-1][0] >= at_ns, "a reading at the phase's end")


def test_wal_of_the_phase_is_what_the_server_says_at_its_ends(every_server: LocalServer) -> None:
    """A warm-up of less than a reading's interval that writes 50 times as much, and as much after the end."""
    with watching(every_server, interval_s=1.0) as watched:
        write(every_server, 500)
        before = wal(every_server)
        begin_ns = time.monotonic_ns() + S // 10
        watched.observer.measure(begin_ns, begin_ns + FAR_S * S)
        wait_for_reading(watched, begin_ns)
        write(every_server, 10)
        after = wal(every_server)
        end_ns = time.monotonic_ns() + S // 10
        watched.observer.measure(begin_ns, end_ns)
        wait_for_reading(watched, end_ns)
        write(every_server, 500)
    trial: dict[str, Any] = {"number": 1, "block": 1, "variant": "v", "status": "complete", "started_unix_ns": 0}
    trial |= {"warmup_ns": begin_ns - watched.started_ns, "measured_ns": end_ns - begin_ns}
    seen = measured_phase(Trial(**trial), by_metric(watched.seen.samples))
    # The server may log a snapshot of its transactions for standbys in between.
    assert seen.growth("pg_wal", "all", "insert_lsn_bytes") == pytest.approx(after[0] - before[0], rel=0.01)
    if after[1] is not None and before[1] is not None:
        assert seen.growth("pg_wal", "all", "wal_bytes") == pytest.approx(after[1] - before[1], rel=0.01)


class Counting:
    """A source that counts its readings."""

    name = "counting"
    sparse = False

    def __init__(self) -> None:
        self.count = 0

    def read(self) -> Readout:
        self.count += 1
        return Readout([Reading("all", "readings", self.count)])


def test_a_sampler_reads_at_both_ends_and_leaves_out_the_tick_next_to_one() -> None:
    """Ticks every 0.2 s; the phase of 0.5 s begins out of step with them."""
    source, t0_ns = Counting(), time.monotonic_ns()
    sampler = LocalSampler("it", [source], t0_ns=t0_ns, interval_s=0.2)
    sampler.start()
    assert sampler.wait_for_first(5)
    begin_ns, end_ns = t0_ns + S * 33 // 100, t0_ns + S * 83 // 100
    sampler.measure(begin_ns, end_ns)
    wait_until(lambda: time.monotonic_ns() > end_ns + S // 10, "the end of the phase")
    assert stop_all([sampler], 1.0) == []
    read_ns = [at for at, _ in sampler.series["counting"]]
    for bound_ns in (begin_ns, end_ns):
        late_ns = min((at - bound_ns for at in read_ns if at >= bound_ns), default=S)
        assert late_ns < S // 10, "the first reading after an end of the phase is not a tick's"
    pauses = [later - at for at, later in itertools.pairwise(read_ns[:-1])]
    assert min(pauses) > S // 20


def test_a_correction_of_the_phase_moves_its_readings() -> None:
    source, t0_ns = Counting(), time.monotonic_ns()
    sampler = LocalSampler("it", [source], t0_ns=t0_ns, interval_s=FAR_S)
    sampler.start()
    assert sampler.wait_for_first(5)
    sampler.measure(t0_ns + 40 * S, t0_ns + 50 * S)
    sampler.measure(time.monotonic_ns() + 1, t0_ns + 50 * S)
    sampler.measure(t0_ns, time.monotonic_ns() + S // 20)
    wait_until(lambda: source.count >= 2, "the reading at the end")
    assert stop_all([sampler], 1.0) == []
