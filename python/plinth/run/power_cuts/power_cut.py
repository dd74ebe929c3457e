"""One power cut: the load runs, the power is cut, the server recovers, and acknowledged commits are looked for."""

import contextlib
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plinth.load import LoadDriver
from plinth.model.durability import PlannedCut
from plinth.model.errors import Interrupted, PlinthError, RunError
from plinth.model.plan import Variant
from plinth.run.faults.power import Power, PowerLoss
from plinth.run.faults.recovery_check import (
    CutState,
    Findings,
    check_recovered,
    inserted_lsn,
    name_torn_pages,
    restore_power,
    start_server,
)
from plinth.run.power_cuts.cut_moments import during_moment, is_during_load, prepare_moment
from plinth.run.trial.load_config import STOP_TIMEOUT_S
from plinth.server.integrity.fingerprint import Fingerprint
from plinth.server.node import Server
from plinth.system import cancel
from plinth.system.database import connect, connect_unpinned, database_errors
from plinth.system.runner import Runner
from plinth.workload.commit_ledger import read_commit_ledger
from plinth.workload.dataset import Dataset, Snapshot
from plinth.workload.survival import prepare_commits

if TYPE_CHECKING:
    import psycopg

_POLL_S = 0.01
_FIRST_COMMIT_TIMEOUT_S = 60.0
_WITHIN_RECOVERY_S = 0.5


@dataclass(frozen=True)
class CutSubject:
    """The subject of power cuts: a variant with its running server."""

    variant: Variant
    dataset: Dataset
    server: Server
    runner: Runner
    recovery_limit_s: float


@dataclass
class LiveCut:
    """A power cut during a load; what is found goes to `found`. An exception does not mean that the storages are damaged."""

    planned: PlannedCut
    subject: CutSubject
    power: Power
    found: Findings

    def __post_init__(self) -> None:
        self.files = self.subject.server.files()
        self.chance = random.Random(self.planned.seed)

    def make(self, within_s: float, load: LoadDriver, ledger: Path | None) -> None:
        """Drive the load, cut the power at a random moment of `within_s` after the first commit, let the server recover and check it;
        `ledger` is the folder of the load's ledger."""
        before, fingerprint = self._prepare()
        at_cut = self._load_until_cut(load, within_s, before, ledger)._replace(fingerprint=fingerprint)
        if self.planned.moment == "recovery" and not self._cut_in_recovery():
            return
        if self._recovers():
            one = self.subject
            check_recovered(one.server, self.files, one.variant, one.dataset, at_cut, self.found)
        name_torn_pages(self.found, self.files, self.subject.variant)

    def _prepare(self) -> tuple[Snapshot, Fingerprint | None]:
        """Prepare the dataset as for a trial, take its fingerprint, and make it durable."""
        variant = self.subject.variant
        with (
            database_errors("prepare a power cut", variant.label),
            connect(self.subject.server.control) as control,
            connect_unpinned(self.subject.server.connection) as session,
        ):
            before = prepare_commits(control, session, variant.workload, self.subject.dataset)
            prepare_moment(session, self.planned.moment)
            return before, self.files.take_fingerprint(control)

    def _load_until_cut(self, load: LoadDriver, within_s: float, before: Snapshot, ledger: Path | None) -> CutState:
        """Drive the load until the power is cut; the server has ended then."""
        server = self.subject.server
        with contextlib.closing(connect(server.control)) as control:
            try:
                load.start()
                await_first_commit(load)
                first_ns = time.monotonic_ns()
                run_for(load, self.chance.uniform(0, within_s))
                if is_during_load(self.planned.moment):
                    with during_moment(self.planned.moment, server, load, self.chance):
                        cut_ns, lsn = self._cut_now(control)
                else:
                    cut_ns, lsn = self._cut_now(control)
            finally:
                load.stop()
                load.wait(STOP_TIMEOUT_S)
        self.found.after_s = (cut_ns - first_ns) / 1e9
        result = load.result()
        self.found.acknowledged = result.totals.done
        self.found.unanswered = result.totals.failed + result.totals.open
        known = None if ledger is None else read_commit_ledger(ledger).answered_by(cut_ns)
        return CutState(before, result, known, cut_ns, lsn)

    def _cut_now(self, control: "psycopg.Connection[Any]") -> tuple[int, str]:
        """Cut the power and end the server; returns CLOCK_MONOTONIC and the WAL insert position just before."""
        with database_errors("read how far WAL has been inserted", self.subject.variant.label):
            lsn = inserted_lsn(control)
        cut_ns = time.monotonic_ns()
        self.found.lost = self.power.cut(self.planned.mode, self.planned.seed)
        self.subject.server.lose_power()
        return cut_ns, lsn

    def _cut_in_recovery(self) -> bool:
        """Let the server recover, and cut the power again meanwhile; return whether the storages came back before."""
        if not restore_power(self.power, self.found):
            return False
        one, found = self.subject, self.found
        within_s = self.chance.uniform(0, _WITHIN_RECOVERY_S)

        def cut() -> PowerLoss:
            cancel.sleep(within_s)
            return self.power.cut(self.planned.mode, self.planned.seed + 1)

        with ThreadPoolExecutor(max_workers=1) as meanwhile:
            cutting = meanwhile.submit(cut)
            try:
                one.server.start(one.variant.settings)
            except Interrupted:
                raise
            except (PlinthError, OSError):
                pass  # as it must be when the disk goes away; whether the server can recover is seen at its next start
            again = cutting.result()
        one.server.lose_power()
        found.lost = PowerLoss(found.lost.disks, (*found.lost.reports, *again.reports), (*found.lost.torn, *again.torn))
        return True

    def _recovers(self) -> bool:
        """Restore the power and start the server; a failure to start is a finding."""
        started_s = time.monotonic()
        if not restore_power(self.power, self.found):
            return False
        self.found.mounted_s = time.monotonic() - started_s
        one = self.subject
        if not start_server(one.server, one.variant.settings, self.found, one.recovery_limit_s):
            return False
        self.found.recovery_s = time.monotonic() - started_s
        self.found.recovery = one.server.recovery()
        return True


def await_first_commit(load: LoadDriver) -> None:
    """Wait until a transaction has been acknowledged. Raises RunError when none is, or the load ends."""
    deadline = time.monotonic() + _FIRST_COMMIT_TIMEOUT_S
    while load.progress().done == 0:
        cancel.check()
        if load.wait(_POLL_S):
            raise _ended_early(load)
        if time.monotonic() > deadline:
            raise RunError(f"no transaction was acknowledged within {_FIRST_COMMIT_TIMEOUT_S:g} s")


def run_for(load: LoadDriver, seconds: float) -> None:
    """Let a load run for this time. Raises RunError when it ends before."""
    deadline = time.monotonic() + seconds
    while (left_s := deadline - time.monotonic()) > 0:
        cancel.check()
        if load.wait(min(left_s, 0.1)):
            raise _ended_early(load)


def _ended_early(load: LoadDriver) -> RunError:
    """Return the error of a load that ended too early. Raises the load's own, such as a ledger that has no space left."""
    errors = sorted(load.result().errors, key=lambda error: -error.count)
    return RunError(
        "the load ended before its power was cut", details=[f"{error.count}x {error.message}" for error in errors[:3]]
    )
