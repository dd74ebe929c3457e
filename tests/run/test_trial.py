"""One trial, by a load and a clock that the test moves, on a real server: any event gives one result, or passes through."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from making import host
from plinth.model.base import SettingValue
from plinth.model.errors import Interrupted, PlinthError, RunError, StorageBroken
from plinth.model.load import EngineCost, LoadError, LoadProgress, LoadResult, Totals
from plinth.model.load_config import LoadConfig
from plinth.model.plan import PRIMARY, Plan, PlannedCluster, PlannedNode, PlannedTrial, ScriptText, Variant
from plinth.model.server_spec import ServerSpec
from plinth.observe.observer import Observer
from plinth.run.context import RunContext
from plinth.run.listener import Listener
from plinth.run.provision.live_cluster import LiveCluster
from plinth.run.provision.provisioner import Provisioner
from plinth.run.trial.trial import Clock, TrialOutput, TrialRunner
from plinth.run.undo import UNDO_HANDLERS
from plinth.run.write_budget import WriteBudget
from plinth.server.server import LocalServer
from plinth.system import cancel
from plinth.system.database import connect_unpinned
from plinth.system.journal import Journal
from plinth.system.runner import Runner
from servers import new_servers

CLIENTS = 2
COMMITS = 40
SECOND_NS = 10**9
BEGUN_UNIX_NS = 1_700_000_000 * SECOND_NS
EXPERIMENT: dict[str, Any] = {
    "spec": 1,
    "name": "x",
    "question": "?",
    "storage": {},
    "server": {"connection": "host=/nowhere"},
    "dataset": {"kind": "none"},
    "workload": {"script": ["one.sql"], "clients": CLIENTS},
    "measure": {"warmup": "1s", "duration": "2s", "fresh_server": False},
}
SETTINGS: dict[str, SettingValue] = {"shared_buffers": "16MB", "fsync": False, "autovacuum": False}
HOST = host(can_mount=False)
TRIAL = PlannedTrial(number=7, block=2, variant="v", seed=1)


def make_plan() -> Plan:
    plan = Plan.model_validate(
        {
            "run_id": "r",
            "experiment": EXPERIMENT,
            "host": HOST,
            "clusters": (),
            "variants": (),
            "trials": (TRIAL,),
            "steps": (),
            "needs": (),
            "estimated_s": 1.0,
        }
    )
    experiment = plan.experiment
    cluster = PlannedCluster(
        id="c",
        nodes=(PlannedNode(name=PRIMARY, server=ServerSpec()),),
        dataset=experiment.dataset,
        installation=None,
        data_bytes=0,
    )
    scripts = (ScriptText(name="one.sql", source="SELECT 1;"),)
    variant = Variant(
        id="v", label="v", levels={}, cluster="c", settings=SETTINGS, workload=experiment.workload, scripts=scripts
    )
    return plan.model_copy(update={"clusters": (cluster,), "variants": (variant,)})


PLAN = make_plan()
(VARIANT,) = PLAN.variants


class MovedClock(Clock):
    """Stands still but for `advance`."""

    def __init__(self) -> None:
        self.passed_ns = 0

    def advance(self, duration_s: float) -> None:
        self.passed_ns += round(duration_s * SECOND_NS)

    def unix_ns(self) -> int:
        return BEGUN_UNIX_NS + self.passed_ns

    def monotonic_ns(self) -> int:
        return self.passed_ns


def totals(done: int) -> Totals:
    return Totals(scheduled=done, done=done, failed=0, skipped=0, open=0, retries=0, retried=0)


def errors_of(kind: str) -> tuple[LoadError, ...]:
    where: dict[str, Any] = {"sqlstate": None, "script": None, "statement": None, "line": None}
    return (LoadError(kind=kind, message="the server closed the connection", count=1, first_ns=5, **where),)


class Load:
    """Commits as often as it is told, then does one of `polls` each time that it is waited for, until none is left or it is stopped."""

    processes: tuple[int, ...] = ()

    def __init__(
        self,
        clock: MovedClock,
        polls: Sequence[Callable[[], object]] = (),
        *,
        commits: int = COMMITS,
        done: int = COMMITS,
        measured: int | None = None,
        errors: tuple[LoadError, ...] = (),
        refuses: PlinthError | None = None,
    ) -> None:
        self.clock = clock
        self.polls = list(polls)
        self.commits = commits
        self.done = done
        self.measured = done if measured is None else measured
        self.errors = errors
        self.refuses = refuses
        self.clients_open = CLIENTS
        self.calls: list[str] = []
        self.config: LoadConfig | None = None
        self.started_unix_ns = 0

    def make(self, driver: str, config: LoadConfig) -> "Load":
        self.calls.append(f"make {driver}")
        self.config = config
        return self

    def start(self) -> None:
        self.calls.append("start")
        if self.refuses is not None:
            raise self.refuses
        self.clock.advance(3)  # connecting
        self.started_unix_ns = self.clock.unix_ns()
        assert self.config is not None
        with connect_unpinned(self.config.connection) as session:
            for _ in range(self.commits):
                session.execute("SELECT 1")

    def wait(self, timeout_s: float) -> bool:
        self.clock.advance(timeout_s)
        if "stop" in self.calls or not self.polls:
            self.calls.append("end")
            return True
        self.polls.pop(0)()
        return False

    def progress(self) -> LoadProgress:
        return LoadProgress(
            elapsed_ns=self.clock.unix_ns() - self.started_unix_ns,
            phase="measure",
            done=self.done,
            failed=0,
            retried=0,
            clients_open=self.clients_open,
            seconds=(),
            events=(),
            events_dropped=0,
        )

    def begin_measuring(self) -> int:
        raise AssertionError("its warm-up has a fixed length")

    def stop(self) -> None:
        self.calls.append("stop")

    def result(self) -> LoadResult:
        return LoadResult(
            started_unix_ns=self.started_unix_ns,
            connect_ns=3 * SECOND_NS,
            warmup_ns=SECOND_NS,
            measured_ns=2 * SECOND_NS,
            interrupted=False,
            clients_aborted=0,
            totals=totals(self.done),
            measured=totals(self.measured),
            scripts=(),
            series=(),
            histograms=(),
            errors=self.errors,
            engine=EngineCost(
                user_cpu_ns=1,
                system_cpu_ns=1,
                loop_lag_p99_ns=None,
                bytes_sent=None,
                bytes_received=None,
                threads=1,
                server_version=None,
            ),
        )


class Quiet(Listener):
    """A run that reports nothing."""


class Provisioned(Provisioner):
    """A cluster with a server that runs; the test says what a run knows of its storages."""

    def __init__(self, cluster: LiveCluster) -> None:
        self.cluster = cluster
        self.lost: PlinthError | None = None
        self.cause: str | None = None
        self.asked_for_cause = 0
        self.storages = cancel.CancelToken(None)
        self.budget = WriteBudget(None, lambda reason: pytest.fail(str(reason)), read_smart=lambda disk: (None, None))

    def failure(self, variant: Variant) -> PlinthError | None:
        return self.lost

    @contextmanager
    def in_use(self, variant: Variant) -> Iterator[LiveCluster]:
        with cancel.scope() as self.storages:
            yield self.cluster

    def after_failure(self, variant: Variant) -> str | None:
        self.asked_for_cause += 1
        return self.cause


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with new_servers(SETTINGS) as start:
        yield start()


@pytest.fixture
def provision(server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provisioned]:
    monkeypatch.setenv("PLINTH_STATE_DIR", str(tmp_path / "state"))
    context = RunContext("r", {None: HOST}, {None: server.layout.owner}, tmp_path)
    (planned,) = PLAN.clusters
    journal = Journal.create("a-trial", UNDO_HANDLERS)
    cluster = LiveCluster(planned, PLAN, context, Runner(), journal, Quiet())
    cluster.servers[PRIMARY] = server
    yield Provisioned(cluster)
    journal.close()


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


def no_ledger(trial: PlannedTrial) -> Path:
    raise AssertionError("the workload keeps no ledger")


def run(provision: Provisioned, load: Load) -> TrialOutput:
    return TrialRunner(PLAN, provision, {}, Quiet(), load.make, load.clock, no_ledger).run(TRIAL, VARIANT)


def test_a_trial_that_succeeds_has_the_loads_figures_and_its_checks(provision: Provisioned, clock: MovedClock) -> None:
    load = Load(clock, [lambda: None, lambda: None])
    output = run(provision, load)
    trial = output.trial
    assert (trial.number, trial.block, trial.variant) == (7, 2, "v")
    assert (trial.status, trial.failure) == ("complete", None)
    assert trial.started_unix_ns == BEGUN_UNIX_NS
    assert (trial.connect_ns, trial.tps) == (3 * SECOND_NS, COMMITS / 2)
    assert [check.ok for check in trial.checks] == [True]
    assert output.load == load.result()
    assert output.server is not None and output.samples
    assert load.calls == ["make plinth", "start", "end"]
    assert provision.asked_for_cause == 0


def test_the_observer_is_told_when_the_measured_phase_begins_and_ends(
    provision: Provisioned, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as the load has started, and again when its own clock says so more exactly."""
    told: list[tuple[int, int]] = []
    measure = Observer.measure

    def noting(observer: Observer, begin_ns: int, end_ns: int) -> None:
        told.append((begin_ns, end_ns))
        measure(observer, begin_ns, end_ns)

    monkeypatch.setattr(Observer, "measure", noting)
    load = Load(clock, [lambda: None, lambda: None])
    run(provision, load)
    begin_ns = 3 * SECOND_NS + round(PLAN.experiment.measure.warmup_s * SECOND_NS)
    assert told == [(begin_ns, begin_ns + round(PLAN.experiment.measure.duration_s * SECOND_NS))] * 3


def test_the_result_is_not_changed_once_it_is_there(provision: Provisioned, clock: MovedClock) -> None:
    output = run(provision, Load(clock))
    with pytest.raises(FrozenInstanceError):
        output.trial = output.trial  # type: ignore[misc]


@pytest.mark.parametrize(
    ("cause", "failure"),
    [
        (None, "the server died during the trial"),
        ("storage disk is full", "the server died during the trial; storage disk is full"),
        ("the server died", "the server died during the trial"),
    ],
)
def test_a_server_that_dies_ends_the_load_and_its_cause_is_looked_for(
    provision: Provisioned, clock: MovedClock, cause: str | None, failure: str
) -> None:
    load = Load(clock)

    def die() -> None:
        provision.cluster.primary.crash()
        load.clients_open = 0

    load.polls = [die, pytest.fail]
    provision.cause = cause
    output = run(provision, load)
    assert (output.trial.status, output.trial.failure) == ("failed", failure)
    assert output.trial.totals == totals(COMMITS) and output.load is not None, "what was measured until then is kept"
    assert output.trial.checks == ()
    assert load.calls == ["make plinth", "start", "stop", "end"]
    assert provision.asked_for_cause == 1


def test_clients_that_end_on_a_server_that_lives_do_not_end_the_load(provision: Provisioned, clock: MovedClock) -> None:
    load = Load(clock, [lambda: None], errors=errors_of("connection_lost"))
    load.clients_open = 1
    output = run(provision, load)
    assert (
        output.trial.failure == "1 client did not work to the end (connection lost): the server closed the connection"
    )
    assert output.trial.errors == load.errors
    assert "stop" not in load.calls


def test_a_load_that_does_not_start_leaves_only_the_reason(provision: Provisioned, clock: MovedClock) -> None:
    output = run(provision, Load(clock, refuses=RunError("no client connected", where="host=x")))
    assert (output.trial.status, output.trial.failure) == ("failed", "no client connected (host=x)")
    assert (output.load, output.server, output.trial.totals) == (None, None, None)
    assert provision.asked_for_cause == 1


def test_a_check_that_does_not_hold_fails_the_trial_and_keeps_its_figures(
    provision: Provisioned, clock: MovedClock
) -> None:
    output = run(provision, Load(clock, done=10**6))
    (check,) = output.trial.checks
    assert (check.expected, check.ok) == ("at least 1000000", False)
    assert output.trial.failure == f"{check.name}: expected at least 1000000, got {check.got}"
    assert output.trial.tps == 10**6 / 2 and output.load is not None


def test_a_trial_that_measured_nothing_says_why(provision: Provisioned, clock: MovedClock) -> None:
    output = run(provision, Load(clock, measured=0, errors=errors_of("server")))
    assert output.trial.failure == "nothing was measured: the server closed the connection"
    quiet = run(provision, Load(clock, measured=0))
    assert quiet.trial.failure == "nothing was measured: no transaction ended in the measured time"
    assert (quiet.trial.status, quiet.trial.tps) == ("failed", 0)


def test_an_interrupt_ends_the_load_and_passes_through(provision: Provisioned, clock: MovedClock) -> None:
    load = Load(clock)
    with pytest.raises(Interrupted, match="Ctrl-C"), cancel.scope() as signals:
        load.polls = [lambda: signals.cancel(Interrupted("Ctrl-C")), pytest.fail]
        run(provision, load)
    assert load.calls == ["make plinth", "start", "stop", "end"]
    assert provision.asked_for_cause == 0


def test_a_storage_that_breaks_ends_the_load_and_fails_the_trial(provision: Provisioned, clock: MovedClock) -> None:
    broken = StorageBroken("disk", "its daemon died")
    load = Load(clock, [lambda: provision.storages.cancel(broken), pytest.fail])
    provision.cause = broken.message
    output = run(provision, load)
    assert output.trial.failure == "storage disk has failed: its daemon died (storage.disk)"
    assert (output.load, output.trial.status) == (None, "failed")
    assert load.calls == ["make plinth", "start", "stop", "end"], "it does not run on during the next trial"
    assert provision.asked_for_cause == 1


def test_a_variant_that_failed_is_not_run(provision: Provisioned, clock: MovedClock) -> None:
    provision.lost = StorageBroken("disk", "its daemon died")
    load = Load(clock)
    output = run(provision, load)
    assert output.trial.failure == "not run: storage disk has failed: its daemon died (storage.disk)"
    assert (load.calls, provision.asked_for_cause) == ([], 0)
