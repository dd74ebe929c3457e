"""Attribution as a pure function: synthetic samples of trials whose clients are where they are put."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plinth.analyse.attribution import attribute, wait_shares
from plinth.analyse.wait_events import class_of
from plinth.analyse.window import Window, measured_phase
from plinth.model.base import Gap
from plinth.model.bottleneck import Bottleneck
from plinth.model.commit_model import CommitCeiling
from plinth.model.load import EngineCost, Totals
from plinth.model.trial import Sample, Trial
from sampled import by_metric

S = 1_000_000_000
CLIENTS, CORES, SECONDS = 16, 4, 5


def trial(done: int = 1000, scheduled: int = 1000, threads: int = 2, **fields: object) -> Trial:
    totals = Totals(scheduled=scheduled, done=done, failed=0, skipped=0, open=scheduled - done, retries=0, retried=0)
    engine = EngineCost(
        user_cpu_ns=0,
        system_cpu_ns=0,
        loop_lag_p99_ns=0,
        bytes_sent=0,
        bytes_received=0,
        threads=threads,
        server_version="18.6",
    )
    return Trial.model_validate(
        {
            "number": 1,
            "block": 1,
            "variant": "v",
            "status": "complete",
            "started_unix_ns": 0,
            "warmup_ns": 2 * S,
            "measured_ns": SECONDS * S,
            "tps": done / SECONDS,
            "measured": totals.model_dump(),
            "engine": engine.model_dump(),
            **fields,
        }
    )


def samples(
    waits: Mapping[str, float],
    cores: dict[str, float] | None = None,
    delays: dict[str, float] | None = None,
    system: dict[str, float] | None = None,
) -> list[Sample]:
    """Waits in backends; CPU used and waited for in cores by process group. The warm-up is all idle.

    Of the rest of the host a part is the system's time, as of a program that reads and writes a little.
    """
    if cores and "rest of host" in cores and system is None:
        rest = cores["rest of host"]
        cores, system = {**cores, "rest of host": 0.8 * rest}, {"rest of host": 0.2 * rest}
    rows = []
    for second in range(2 + SECONDS + 1):
        t_ns, measured = second * S, second > 2
        active = sum(waits.values()) if measured else 0.0
        for state, n in (("active", active), ("idle", CLIENTS - active), ("idle_in_transaction", 0.0), ("looks", 10)):
            rows.append(Sample(t_ns, "pg_wait", "all", state, n))
        for wait, n in waits.items():
            rows.append(Sample(t_ns, "pg_wait", wait, "backends", n if measured else 0.0))
        counters = (
            ("process_cpu", cores, "user_s"),
            ("process_cpu", system, "system_s"),
            ("process_delay", delays, "run_delay_s"),
        )
        for source, rates, metric in counters:
            for group, rate in (rates or {}).items():
                rows.append(Sample(t_ns, source, group, metric, 100 + rate * second))
    return rows


def found(rows: list[Sample], of: Trial | None = None, open_loop: bool = False) -> Bottleneck:
    of = of or trial()
    return attribute(of, seen(rows, of), CORES, CLIENTS, open_loop)


def seen(rows: list[Sample], of: Trial) -> Window:
    return measured_phase(of, by_metric(rows))


C = "client backend/"


@pytest.mark.parametrize(
    ("waits", "kind"),
    [
        ({C + "IO:WALSync": 9, C + "LWLock:WALWrite": 5, C + "CPU": 1}, "WAL flush"),
        ({C + "IO:WalSync": 14, C + "CPU": 1}, "WAL flush"),
        ({C + "IO:DataFileRead": 8, C + "IPC:BufferIO": 4, C + "CPU": 2}, "device reads"),
        ({C + "IO:AioIoCompletion": 12, C + "CPU": 2}, "device reads"),
        ({C + "IO:DataFileWrite": 6, C + "IO:DataFileExtend": 4, C + "IO:WALSync": 2}, "device writes"),
        ({C + "Lock:transactionid": 9, C + "Lock:tuple": 4, C + "IO:WALSync": 1}, "locks"),
        ({C + "LWLock:BufferContent": 10, C + "CPU": 4}, "locks"),
        ({C + "IPC:SyncRep": 12, C + "CPU": 1}, "replication"),
        ({C + "Client:ClientWrite": 12, C + "CPU": 1}, "network"),
        ({C + "CPU": 9, C + "IO:DataFileRead": 2}, "server CPU"),
        ({C + "CPU": 6, "parallel worker/CPU": 6, C + "IO:DataFileRead": 4}, "server CPU"),
        ({C + "CPU": 1}, "client limit"),
        ({C + "Timeout:PgSleep": 15}, "client limit"),
        ({C + "Timeout:PgSleep": 5, C + "IO:WALSync": 6}, "WAL flush"),
        ({C + "IPC:XactGroupUpdate": 9, C + "LWLock:XactSLRU": 3, C + "CPU": 2}, "locks"),
        ({C + "LWLock:AioUringCompletion": 12, C + "CPU": 2}, "device reads"),
        ({C + "IPC:ExecuteGather": 9, C + "CPU": 4}, "not known"),
        ({C + "IPC:ExecuteGather": 3, "parallel worker/CPU": 6, C + "CPU": 4}, "server CPU"),
        ({"WALSync": 0, "IO:WALSync": 12}, "WAL flush"),
    ],
)
def test_the_clients_time_decides(waits: dict[str, float], kind: str) -> None:
    bottleneck = found(samples(waits))
    assert bottleneck.kind == kind
    assert bottleneck.sentence.startswith(kind)
    assert bottleneck.evidence, "no finding without figures"


def test_processes_that_are_no_clients_are_not_clients_time() -> None:
    rows = samples({"checkpointer/IO:DataFileSync": 1, "io worker/IO:DataFileRead": 3, C + "CPU": 12})
    assert found(rows).kind == "server CPU"


def test_who_was_woken_but_has_no_cpu_yet_is_not_idle() -> None:
    """On a busy host pg_stat_activity shows such backends as idle; the kernel's run delay tells."""
    rows = samples({C + "CPU": 0.2}, {"backends": 2.9, "load engine": 0.9}, {"backends": 9.0, "load engine": 1.5})
    bottleneck = found(rows)
    assert bottleneck.kind == "server CPU"
    assert f"CPU of server, of {CORES} cores" in {one.what for one in bottleneck.evidence}


def test_the_evidence_adds_up_to_the_claim_and_to_all_of_the_clients_time() -> None:
    """Time in the run queue is shown as what it is: pg_stat_activity alone shows hardly any CPU."""
    waits = {C + "LWLock:WALWrite": 4.8, C + "CPU": 0.46}
    bottleneck = found(samples(waits, {"backends": 1.9}, {"backends": 4.2}))
    assert bottleneck.sentence == (
        "server CPU: 38 % of the clients' time went to working, or waiting for a CPU, in the server: "
        "12 % on a CPU, 26 % in the run queue, without one"
    )
    spent = {
        one.what.removeprefix("clients' time: "): one.value
        for one in bottleneck.evidence
        if one.what.startswith("clients' time: ")
    }
    assert spent["on a CPU"] + spent["in the run queue, without a CPU"] == pytest.approx(6.1 / 16)
    assert spent["WAL flush"] == pytest.approx(4.8 / 16)
    assert sum(spent.values()) == pytest.approx(1, abs=0.01)
    assert "server CPU" not in spent


@pytest.mark.parametrize(
    ("cores", "delays"),
    [({"load engine": 1.9}, {}), ({"load engine": 0.05}, {"load engine": 1.8})],
    ids=["busy", "starved"],
)
def test_idle_backends_of_a_load_engine_without_cpu_are_its_doing(
    cores: dict[str, float], delays: dict[str, float]
) -> None:
    rows = samples({C + "CPU": 0.3}, cores | {"backends": 0.3}, delays | {"backends": 0.1})
    assert found(rows).kind == "load engine"
    assert found(rows, trial(threads=8)).kind == "client limit", "the same of eight threads is little"


def test_of_a_driver_it_is_reported_as_its_processes_which_have_no_more_than_all_of_their_time() -> None:
    """The coordinator works in addition to them, and is counted with them."""
    engine = trial().engine
    assert engine is not None
    rows = samples({C + "CPU": 0.2}, {"load engine": 1.9}, {"load engine": 1.8})
    reported = found(rows, trial(engine=engine.model_copy(update={"driver": "psycopg 3"}).model_dump()))
    assert reported.sentence.startswith("client driver: ")
    assert reported.sentence.endswith("its processes worked or waited for a CPU 100 % of theirs")


def test_what_could_not_be_looked_at_is_not_claimed() -> None:
    seen_engine = found(samples({C + "CPU": 1}, {"load engine": 0.1}))
    assert seen_engine.sentence.endswith("and the load engine was not busy")
    unseen = found(samples({C + "CPU": 1}))
    assert unseen.sentence.endswith("and the load engine could not be looked at")
    assert (seen_engine.confidence, unseen.confidence) == ("high", "low")


def test_cores_are_too_few_only_where_they_are_the_server_s() -> None:
    waits = {C + "CPU": 3.5}
    assert found(samples(waits, {"backends": 3.4})).kind == "server CPU"
    assert found(samples(waits)).kind == "client limit", "a server elsewhere has cores of its own"


def test_a_run_queue_behind_neighbours_is_not_the_server_s() -> None:
    """The server used little CPU; what its backends waited for, programs of others had."""
    rows = samples(
        {C + "IO:WALSync": 2, C + "CPU": 0.3},
        {"backends": 0.5, "load engine": 0.2, "rest of host": 3.2},
        {"backends": 11},
    )
    bottleneck = found(rows)
    assert bottleneck.kind == "other processes"
    assert bottleneck.sentence == (
        "other processes of this machine: 56 % of the clients' time went to waiting for a CPU that these had; "
        "other processes used 3.20 of 4 cores, the server 0.50"
    )
    assert bottleneck.confidence == "high"
    spent = {one.what: one.value for one in bottleneck.evidence if one.what.startswith("clients' time: ")}
    assert spent["clients' time: in the run queue, behind other processes"] == pytest.approx(11 * 3.2 / 3.9 / 16)
    assert sum(spent.values()) == pytest.approx(1, abs=0.01)


def test_a_server_that_needs_most_of_the_cpu_is_the_limit_though_a_neighbour_takes_some() -> None:
    rows = samples({C + "CPU": 10}, {"backends": 2.5, "rest of host": 1.2}, {"backends": 10})
    bottleneck = found(rows)
    assert bottleneck.kind == "server CPU"
    assert bottleneck.sentence.endswith("; other processes of this machine used 1.20 of 4 cores meanwhile")
    assert bottleneck.confidence == "medium", "who else has the CPU slows all that was measured"


def test_reads_from_a_disk_are_found_on_a_busy_machine() -> None:
    """The kernel counts backends as runnable whose read has ended; pg_stat_activity shows those as waiting for it still."""
    rows = samples({C + "IO:DataFileRead": 7, C + "CPU": 0.7}, {"backends": 0.6, "rest of host": 3.2}, {"backends": 8})
    bottleneck = found(rows)
    assert bottleneck.kind == "device reads"
    assert bottleneck.sentence.endswith("; other processes of this machine used 3.20 of 4 cores meanwhile")


def test_idle_backends_with_busy_neighbours_are_not_put_down_to_the_clients() -> None:
    cores = {"backends": 0.2, "load engine": 0.3, "rest of host": 3.1}
    bottleneck = found(samples({C + "CPU": 0.4}, cores, {"backends": 0.4, "load engine": 0.2}))
    assert (bottleneck.kind, bottleneck.confidence) == ("not known", "low")
    assert bottleneck.sentence == (
        "not known: backends were idle 96 % of the time while other processes of this machine used 3.10 of 4 cores: whether "
        "those or the clients' own pace set the limit cannot be told; measure on an idle machine"
    )


def test_an_engine_that_neighbours_keep_from_a_cpu_is_not_what_limits() -> None:
    cores = {"backends": 0.2, "load engine": 0.2, "rest of host": 3.4}
    bottleneck = found(samples({C + "CPU": 0.4}, cores, {"backends": 0.4, "load engine": 1.7}))
    assert bottleneck.kind == "other processes"
    assert bottleneck.sentence == (
        "other processes of this machine: backends waited for the load engine, which spent 80 % of its time without a CPU that "
        "these had; other processes used 3.40 of 4 cores, the server 0.20"
    )
    working = found(samples({C + "CPU": 0.4}, cores | {"load engine": 1.7}, {"load engine": 0.2}))
    assert working.kind == "load engine", "its own work is its own"


def test_an_engine_that_the_server_keeps_from_a_cpu_is_not_what_limits() -> None:
    """Sessions of one transaction: they look idle, or are gone, while the engine waits for the cores that they had."""
    cores = {"backends": 0.3, "short-lived backends": 2.6, "load engine": 0.1, "rest of host": 0.3}
    bottleneck = found(samples({C + "CPU": 2.5}, cores, {"load engine": 1.6}))
    assert bottleneck.kind == "server CPU"
    assert "without a CPU that the server had" in bottleneck.sentence


@pytest.mark.parametrize(
    ("cores", "system"),
    [
        ({"backends": 0.3, "load engine": 0.3, "rest of host": 0.1}, {"rest of host": 3.3}),
        ({"backends": 0.3, "load engine": 0.3, "rest of run": 3.2}, {"rest of host": 0.0}),
        ({"load engine": 0.3, "rest of host": 3.2}, {"rest of host": 0.5}),
    ],
    ids=["kernel threads", "the daemon of an emulated disk", "a server that was not read"],
)
def test_what_works_for_the_run_is_no_neighbour(cores: dict[str, float], system: dict[str, float]) -> None:
    rows = samples({C + "CPU": 0.5}, {"rest of host": 0.0} | cores, {"backends": 1, "load engine": 0.1}, system)
    bottleneck = found(rows)
    assert "other processes" not in bottleneck.sentence
    assert bottleneck.kind == "client limit"


def test_sessions_that_came_and_went_between_two_readings_used_their_cpu() -> None:
    """A load that connects for each transaction: pg_stat_activity and /proc see hardly a backend."""
    waits = {C + "CPU": 0.4}
    rows = samples(waits, {"backends": 0.1, "short-lived backends": 3.6, "load engine": 0.2}, {"load engine": 0.1})
    assert found(rows).kind == "server CPU"


def test_a_statement_that_sleeps_is_not_an_idle_backend() -> None:
    bottleneck = found(samples({C + "Timeout:PgSleep": 15.5, C + "CPU": 0.1}, {"load engine": 0.1}))
    assert bottleneck.sentence == (
        "client limit: statements slept in the server 97 % of the clients' time, mostly Timeout:PgSleep"
    )
    shares = {one.what: one.value for one in bottleneck.evidence}
    assert shares["clients' time: asleep in the server"] == pytest.approx(15.5 / 16)
    assert shares["clients' time: idle"] == pytest.approx(0.4 / 16)
    assert bottleneck.confidence == "high"


def test_waits_that_indicate_no_limit_are_named_and_are_no_idleness() -> None:
    bottleneck = found(samples({C + "IPC:ExecuteGather": 8, C + "IPC:BtreePage": 2, C + "CPU": 2}))
    assert bottleneck.sentence == (
        "not known: 62 % of the clients' time went to waits that indicate no limit, mostly IPC:ExecuteGather"
    )
    assert bottleneck.confidence == "low"
    shares = {one.what: one.value for one in bottleneck.evidence}
    assert shares["clients' time: other waits"] == pytest.approx(10 / 16)
    assert shares["clients' time: idle"] == pytest.approx(4 / 16)


def test_flushes_that_are_not_counted_are_no_evidence() -> None:
    """pg_stat_wal counts none where the WAL is written with O_DSYNC: the view's zero is no figure."""
    rows = samples({C + "IO:WalWrite": 12, C + "CPU": 1})
    zeros = [Sample(second * S, "pg_wal", "all", "wal_sync", 0) for second in range(8)]
    assert not [one for one in found(rows + zeros).evidence if one.source == "pg_wal"]
    counted = [sample._replace(value=50.0 * sample.t_ns / S) for sample in zeros]
    flushes = {one.what: one.value for one in found(rows + counted).evidence if one.source == "pg_wal"}
    assert flushes == {"WAL flushes": pytest.approx(50), "transactions a WAL flush": pytest.approx(4)}


def test_a_counter_that_was_reset_has_no_growth_though_it_came_further() -> None:
    rows = [Sample(second * S, "device", "vda", "reads", value) for second, value in ((1, 5), (3, 2), (5, 9))]
    assert seen(rows, trial()).growth("device", "vda", "reads") is None


def test_a_schedule_that_is_kept_is_held_back_by_nothing() -> None:
    rows = samples({C + "IO:WALSync": 3, C + "CPU": 1})
    assert found(rows, open_loop=True).kind == "none found"
    assert found(rows, trial(done=900), open_loop=True).kind != "none found", "it was not kept"
    pressed = samples({C + "IO:WALSync": 12, C + "CPU": 1})
    assert found(pressed, open_loop=True).kind == "WAL flush", "kept, but near its limit"


def test_waits_for_the_wal_are_compared_with_the_commit_ceiling() -> None:
    rows = samples({C + "IO:WALSync": 12, C + "CPU": 1})
    ceiling = CommitCeiling(
        storage="disk", method="fdatasync", flush_median_ns=2_000_000, clients_per_s=250.0, reached=0.8
    )
    bottleneck = attribute(trial(), seen(rows, trial()), CORES, CLIENTS, False, ceiling)
    assert bottleneck.sentence.endswith("80 % of the commit ceiling was reached")
    shown = {one.what: (one.value, one.unit) for one in bottleneck.evidence if one.source == "fsync probe"}
    assert shown == {
        "transactions, of the commit ceiling": (0.8, "fraction"),
        "flush of the probe, median, by fdatasync on disk": (2_000_000, "ns"),
    }
    unknown = CommitCeiling(unavailable="storage disk was not probed")
    assert attribute(trial(), seen(rows, trial()), CORES, CLIENTS, False, unknown) == found(rows)


def test_without_wait_events_nothing_is_said_but_why() -> None:
    rows = [sample for sample in samples({C + "CPU": 3}) if sample.source != "pg_wait"]
    gap = Gap(what="pg_wait", reason="track_activities is off")
    bottleneck = found(rows, trial(gaps=(gap,)))
    assert bottleneck.kind == "not known"
    assert "track_activities is off" in bottleneck.sentence
    assert not bottleneck.evidence


def test_confidence_is_by_the_lead_and_by_how_often_it_was_looked() -> None:
    assert found(samples({C + "IO:WALSync": 12, C + "CPU": 1})).confidence == "high"
    assert found(samples({C + "IO:WALSync": 8, C + "Lock:tuple": 5, C + "CPU": 1})).confidence == "medium"
    assert found(samples({C + "IO:WALSync": 6, C + "Lock:tuple": 5, C + "CPU": 4})).confidence == "low"
    rarely = [s._replace(value=1) if s.metric == "looks" else s for s in samples({C + "IO:WALSync": 12})]
    assert found(rarely).confidence == "low"


def test_what_came_before_the_measured_phase_does_not_count() -> None:
    rows = samples({C + "CPU": 10})
    rows += [
        Sample(second * S, "pg_wait", C + "Lock:tuple", "backends", 16.0 if second <= 2 else 0.0) for second in range(8)
    ]
    assert found(rows).kind == "server CPU"


@given(
    st.lists(st.tuples(st.integers(0, 7), st.floats(0, 1e6)), min_size=2, max_size=8, unique_by=lambda point: point[0])
)
def test_a_rate_is_of_the_whole_window_or_there_is_none(points: list[tuple[int, float]]) -> None:
    counter = 0.0
    rows = []
    for second, growth in sorted(points):
        counter += growth
        rows.append(Sample(second * S, "device", "vda", "reads", counter))
    rate = seen(rows, trial()).rate("device", "vda", "reads")
    before = [row for row in rows if row.t_ns <= 2 * S][-1:]
    used = before + [row for row in rows if row.t_ns > 2 * S]
    if len(used) < 2:
        assert rate is None
    else:
        begin_ns = max(2 * S, used[0].t_ns)
        begun = np.interp(begin_ns, [row.t_ns for row in used], [row.value for row in used])
        assert rate == pytest.approx((used[-1].value - begun) / (used[-1].t_ns - begin_ns) * S)


def test_wait_shares_are_means_over_trials_and_show_the_kind() -> None:
    one, other = (seen(samples(waits), trial()) for waits in ({C + "CPU": 4, "checkpointer/CPU": 1}, {C + "CPU": 2}))
    shares = [(share.kind, share.event, share.processes) for share in wait_shares([one, other])]
    assert shares == [("client backend", "CPU", 3.0), ("checkpointer", "CPU", 0.5)]


@pytest.mark.parametrize(
    ("event", "kind"), [("Timeout:PgSleep", None), ("Client:ClientRead", None), ("Lock:extend", "device writes")]
)
def test_pauses_and_turns_of_the_client_are_no_bottleneck(event: str, kind: str | None) -> None:
    assert class_of(event) == kind
