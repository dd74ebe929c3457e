"""The errors of storage of a run: after its trials the storages of each variant fail in turn, and every commit is looked for."""

import time
from collections.abc import Collection
from functools import partial
from pathlib import Path

from plinth.bundle import BundleWriter
from plinth.load import LoadDriver
from plinth.model.errors import PlinthError, StorageBroken, UsageError
from plinth.model.io_error import IoErrorResult, PlannedIoError
from plinth.model.load_config import Rate
from plinth.model.plan import Plan, Variant, storage_that_holds
from plinth.model.progress import Progress
from plinth.model.units import format_count
from plinth.run.faults.failures import reason_of
from plinth.run.faults.server_faults import RETRY_CONNECT_S
from plinth.run.io_errors.io_error import make_io_error
from plinth.run.listener import Listener
from plinth.run.power_cuts.cut_check import Findings
from plinth.run.power_cuts.power import Power
from plinth.run.power_cuts.power_cut import CutSubject
from plinth.run.power_cuts.subject import endless_load, subject_of
from plinth.run.provision.live_cluster import LiveCluster
from plinth.run.provision.provisioner import Provisioner
from plinth.run.trial.trial import MakeLoad
from plinth.system import cancel

_TPS = 500.0


class IoErrors:
    """Makes the errors of a plan, one after the other."""

    def __init__(
        self, plan: Plan, provisioner: Provisioner, writer: BundleWriter, listener: Listener, make_load: MakeLoad
    ) -> None:
        self._plan = plan
        self._provisioner = provisioner
        self._writer = writer
        self._listener = listener
        self._make_load = make_load
        self._variants = {variant.id: variant for variant in plan.variants}

    def run(self, made: Collection[IoErrorResult]) -> None:
        """Make all errors but those that were `made` before, and of which something was learned. Each is written to the bundle when it is
        complete."""
        if not self._plan.io_errors:
            return
        known = {one.number for one in made if one.was_tested}
        left = [one for one in self._plan.io_errors if one.number not in known]
        self._listener.phase(f"storage fails: {format_count(len(self._plan.io_errors), 'error')}")
        began_s, failed = time.monotonic(), 0
        for done, planned in enumerate(left):
            cancel.check()
            label = self._variants[planned.variant].label
            rate = done / (time.monotonic() - began_s) if done else None
            total = len(self._plan.io_errors)
            what = f"{planned.words}: {label}"
            self._listener.progress(Progress("errors", len(known) + done, total, "errors", what, rate))
            result = self._make(planned)
            self._writer.write_io_error(result)
            failed += result.failure is not None
            self._tell(result, label)
        if failed:
            self._listener.note(
                f"{failed} of {format_count(len(self._plan.io_errors), 'error')} could not be tested; "
                f"`plinth resume {self._writer.path}` tries again"
            )

    def _tell(self, result: IoErrorResult, label: str) -> None:
        if result.failure is not None:
            self._listener.note(f"error {result.number} failed: {result.failure}")
        elif result.damage:
            kinds = ", ".join(f"{one.kind} ({one.count}): {one.evidence[0]}" for one in result.damage)
            self._listener.note(f"error {result.number}, {label}, {result.words}: {kinds}")

    def _make(self, planned: PlannedIoError) -> IoErrorResult:
        variant = self._variants[planned.variant]
        started_unix_ns, found = time.time_ns(), Findings()
        if error := self._provisioner.failure(variant):
            failure = f"not made: {reason_of(error)}"
            return IoErrorResult(**planned.model_dump(), started_unix_ns=started_unix_ns, failure=failure)
        try:
            result = self._with_load(planned, variant, found)
        except (UsageError, StorageBroken):
            raise
        except PlinthError as error:
            result = IoErrorResult(
                **planned.model_dump(),
                started_unix_ns=started_unix_ns,
                damage=tuple(found.damage),
                checks=tuple(found.checks),
                failure=reason_of(error),
            )
        if result.failure is not None or not found.is_intact:
            self._provisioner.make_again(variant)
        return result

    def _with_load(self, planned: PlannedIoError, variant: Variant, found: Findings) -> IoErrorResult:
        spec = self._plan.experiment.io_errors
        assert spec is not None, "errors are planned"
        cluster = self._provisioner.switch_to(variant)
        subject = subject_of(self._plan, variant, cluster, spec.recovery_limit_s)
        ledger = self._writer.make_io_error_ledger(planned) if variant.workload.keeps_ledger else None
        storage = cluster.context.storages[storage_that_holds(planned.holds, cluster.planned.primary.roles)]
        layout = subject.server.layout
        failing = partial(cluster.host.failing, planned, storage, cluster.planned, layout, cluster.runner)
        try:
            return make_io_error(
                planned,
                subject,
                failing,
                _power_of(cluster),
                spec,
                self._load(planned, subject, ledger),
                ledger,
                found,
            )
        finally:
            if ledger is not None and not found.damage:
                self._writer.drop_io_error_ledger(planned)

    def _load(self, planned: PlannedIoError, subject: CutSubject, ledger: Path | None) -> LoadDriver:
        """Return the load: clients that have lost their connection try again, and none begins so much that is answered by an error that the
        server's log takes all space."""
        changes: dict[str, object] = {"retry_connect_s": RETRY_CONNECT_S}
        if subject.variant.workload.rate is None:
            changes["rate"] = Rate.constant(_TPS)
        return endless_load(self._plan, planned.seed, subject, ledger, self._make_load, changes)


def _power_of(cluster: LiveCluster) -> Power:
    return Power(cluster.storages, "all", cluster.runner, cluster.journal)
