"""The errors of storage of a run: after its trials the storages of each variant fail in turn, and every commit is looked for."""

import time
from collections.abc import Collection
from functools import partial

from plinth.model.io_error import IoErrorResult, IoErrorSpec, PlannedIoError
from plinth.model.load_config import Rate
from plinth.model.plan import Variant, storage_that_holds
from plinth.model.progress import Progress
from plinth.model.units import format_count
from plinth.run.faults.power import Power
from plinth.run.faults.recovery_check import Findings
from plinth.run.faults.server_faults import RETRY_CONNECT_S
from plinth.run.io_errors.io_error import make_io_error
from plinth.run.power_cuts.after_trials import AfterTrials
from plinth.system import cancel

_TPS = 500.0


def make_io_errors(after: AfterTrials, made: Collection[IoErrorResult]) -> None:
    """Make all planned errors but those that were `made` before, and of which something was learned. Each is written to the bundle when it
    is complete."""
    planned, spec = after.plan.io_errors, after.plan.experiment.io_errors
    if not planned or spec is None:
        return
    known = {one.number for one in made if one.was_tested}
    after.listener.phase(f"storage fails: {format_count(len(planned), 'error')}")
    began_s, failed = time.monotonic(), 0
    for done, one in enumerate(one for one in planned if one.number not in known):
        cancel.check()
        label = after.variants[one.variant].label
        rate = done / (time.monotonic() - began_s) if done else None
        what = f"{one.words}: {label}"
        after.listener.progress(Progress("errors", len(known) + done, len(planned), "errors", what, rate))
        result = _make(after, spec, one)
        after.writer.write_io_error(result)
        failed += result.failure is not None
        if result.failure is not None:
            after.listener.note(f"error {result.number} failed: {result.failure}")
        elif result.damage:
            kinds = ", ".join(f"{one.kind} ({one.count}): {one.evidence[0]}" for one in result.damage)
            after.listener.note(f"error {result.number}, {label}, {result.words}: {kinds}")
    after.tell_untested(failed, len(planned), "error")


def _make(after: AfterTrials, spec: IoErrorSpec, planned: PlannedIoError) -> IoErrorResult:
    variant, found, started_unix_ns = after.variants[planned.variant], Findings(), time.time_ns()
    result, failure = after.attempt(variant, found, lambda: _with_load(after, spec, planned, variant, found))
    if result is not None:
        return result
    return IoErrorResult(
        **planned.model_dump(),
        started_unix_ns=started_unix_ns,
        damage=tuple(found.damage),
        checks=tuple(found.checks),
        failure=failure,
    )


def _with_load(
    after: AfterTrials, spec: IoErrorSpec, planned: PlannedIoError, variant: Variant, found: Findings
) -> IoErrorResult:
    cluster, subject = after.subject_of(variant, spec.recovery_limit_s)
    ledger = after.writer.make_io_error_ledger(planned) if variant.workload.keeps_ledger else None
    storage = cluster.context.storages[storage_that_holds(planned.holds, cluster.planned.primary.roles)]
    layout = subject.server.layout
    failing = partial(cluster.host.failing, planned, storage, cluster.planned, layout, cluster.runner)
    power = Power(cluster.storages, "all", cluster.runner, cluster.journal)
    # Clients that have lost their connection try again, and none begins so much that is answered by an error that the server's log takes
    # all space.
    changes: dict[str, object] = {"retry_connect_s": RETRY_CONNECT_S}
    if variant.workload.rate is None:
        changes["rate"] = Rate.constant(_TPS)
    load = after.endless_load(subject, planned.seed, ledger, changes)
    try:
        return make_io_error(planned, subject, failing, power, spec, load, ledger, found)
    finally:
        if ledger is not None and not found.damage:
            after.writer.drop_io_error_ledger(planned)
