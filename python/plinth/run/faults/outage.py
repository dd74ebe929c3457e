"""What a trial's faults cost, from the ledger of its commits, the steps of a failover and the database in the end."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plinth.model.base import SettingValue
from plinth.model.commit_ledger import LedgerCheck
from plinth.model.load import LoadResult
from plinth.model.outage import Failover, Outage, may_lose
from plinth.model.trial import Check
from plinth.run.faults.server_faults import Marks, ServerFaults
from plinth.workload.commit_ledger import CommitLedger, read_commit_ledger
from plinth.workload.commit_ledger_check import compare_ledger, ledger_checks

if TYPE_CHECKING:
    import psycopg

_WINDOW_NS = 10**9
_STEP_NS = 10**8
_RECOVERED_SHARE = 0.9


def after_faults(
    faults: ServerFaults,
    settings: Mapping[str, SettingValue],
    ledger: Path,
    control: "psycopg.Connection[Any]",
    load: LoadResult,
) -> tuple[Outage | None, list[Check]]:
    """Return the effect of a trial's faults, and the checks of its commits; `control` is of the last primary."""
    recorded = read_commit_ledger(ledger)
    compared = compare_ledger(recorded, control, is_standby=faults.marks.promoted is not None)
    outage = outage_of(
        faults.marks, faults.primary, faults.standbys, settings, recorded, compared, load, faults.failover_by
    )
    if outage is not None:
        outage = outage.model_copy(update={"strayed": faults.strayed()})
    return outage, ledger_checks(compared) if outage is None else outage_checks(outage, compared)


def outage_of(
    marks: Marks,
    primary: str,
    standbys: tuple[str, ...],
    settings: Mapping[str, SettingValue],
    ledger: CommitLedger,
    compared: LedgerCheck,
    load: LoadResult,
    by: str = "plinth",
) -> Outage | None:
    """Return the effect of the faults of a trial; None where none came about. `primary` takes writes in the end, `settings`
    are the primary's of the beginning, `compared` is the ledger compared with the tables of `primary`, and `by` conducted the
    failover."""
    if marks.fault_ns is None or marks.resumed_ns is None:
        return None
    gap_s, first_ns = gap_of(ledger, marks.fault_ns, marks.resumed_ns)
    lost_s = None if compared.oldest_lost_ns is None else max(0, marks.fault_ns - compared.oldest_lost_ns) / 1e9
    counts = {kind: sum(error.count for error in load.errors if error.kind == kind) for kind in ("connect", "timeout")}
    return Outage(
        faults=tuple(marks.faults),
        primary=primary,
        gap_s=gap_s,
        recovered_s=None if first_ns is None else _recovered_s(ledger, marks.fault_ns, first_ns),
        failover=_failover(marks, first_ns, by),
        restarted_by=by if marks.restarted else None,
        recovery=marks.recovery,
        acknowledged=compared.acknowledged,
        lost=compared.lost,
        lost_s=lost_s,
        lost_wal_bytes=_lost_wal_bytes(marks, compared.lost),
        may_lose=may_lose(
            settings,
            marks.promoted,
            standbys=standbys,
            candidates=marks.candidates,
            unpowered=marks.unpowered,
            unsynced=marks.unsynced,
        ),
        attempts_failed=sum(counts.values()),
        connections_lost=sum(error.count for error in load.errors if error.kind == "connection_lost"),
    )


def gap_of(ledger: CommitLedger, fault_ns: int, resumed_ns: int) -> tuple[float | None, int | None]:
    """Return the time without acknowledged commits, in s, and when it ended; None and None where it lasted until the end of
    the load.

    From `resumed_ns` on only a server that was promoted or started again can acknowledge what is sent. Where no server was, as
    when a standby is killed, commits on their way may still be acknowledged just after the fault: then it is the longest time
    without one. It lasted to the end if the commits that waited then were acknowledged with the warning that they are only local.
    """
    import numpy as np

    known = ledger.of_class("acknowledged")
    sent, answered = known["sent_ns"].astype("int64"), known["answered_ns"].astype("int64")
    if resumed_ns > fault_ns:
        before, after = answered[sent < resumed_ns], answered[sent >= resumed_ns]
        if not len(before) or not len(after):
            return None, None
        return (int(after.min()) - int(before.max())) / 1e9, int(after.min())
    times = np.sort(answered)
    first = max(1, int(np.searchsorted(times, fault_ns, side="right")))
    gaps = times[first:] - times[first - 1 : -1]
    if not len(gaps):
        return None, None
    longest = int(gaps.argmax())
    only_local_ns = ledger.of_class("local_only")["answered_ns"].astype("int64")
    if len(only_local_ns) and int(only_local_ns.max()) - int(times[-1]) > int(gaps[longest]):
        return None, None
    return int(gaps[longest]) / 1e9, int(times[first + longest])


def outage_checks(outage: Outage, compared: LedgerCheck) -> list[Check]:
    """What must hold after faults: no acknowledged commit is missing where none may be, and nothing else contradicts the ledger."""
    evidence = [one for one in (finding.sentence for finding in compared.findings) if one.startswith("lost commit")]
    others = [f"{kind}: {count:,}" for kind, count in compared.counts.items() if kind != "lost commit"]
    return [
        check_of_losses("the faults", outage.may_lose, compared.acknowledged, compared.lost, evidence[:2]),
        check_of_others("other contradictions of ledger and tables", others),
    ]


def check_of_losses(after: str, may_lose: str | None, acknowledged: int, lost: int, evidence: Sequence[str]) -> Check:
    """Return the check that no acknowledged commit is missing; `may_lose` is why some may be."""
    allowed = "0" if may_lose is None else f"any, since {may_lose}"
    return Check(
        name=f"acknowledged commits that are missing after {after}",
        expected=f"{allowed}, of {acknowledged:,}",
        got="; ".join([f"{lost:,}", *evidence]),
        ok=lost == 0 or may_lose is not None,
    )


def check_of_others(name: str, found: Sequence[str]) -> Check:
    """Return the check that nothing else was found."""
    return Check(name=name, expected="none", got="; ".join(found) or "none", ok=not found)


def _failover(marks: Marks, first_ns: int | None, by: str) -> Failover | None:
    if marks.fault_ns is None or marks.detected_ns is None or marks.promoted_ns is None or marks.promoted is None:
        return None
    return Failover(
        to=marks.promoted,
        by=by,
        detect_s=(marks.detected_ns - marks.fault_ns) / 1e9,
        promote_s=(marks.promoted_ns - marks.detected_ns) / 1e9,
        first_write_s=None if first_ns is None else (first_ns - marks.promoted_ns) / 1e9,
        rejoin=marks.rejoin,
    )


def _lost_wal_bytes(marks: Marks, lost: int) -> int | None:
    """Return None also where commits are lost that were inserted after the position was read."""
    if marks.switch_lsn is None or marks.primary_lsn is None:
        return None
    missing_bytes = max(0, _bytes_of(marks.primary_lsn) - _bytes_of(marks.switch_lsn))
    return None if lost and not missing_bytes else missing_bytes


def _bytes_of(lsn: str) -> int:
    high, low = lsn.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def _recovered_s(ledger: CommitLedger, fault_ns: int, first_ns: int) -> float | None:
    """Measure from the first commit after the fault to the first second with 90 % of the average rate before it."""
    import numpy as np

    answered = ledger.of_class("acknowledged")["answered_ns"].astype("int64")
    before_s = (fault_ns - ledger.started_ns) / 1e9
    if before_s <= 0:
        return None
    wanted = _RECOVERED_SHARE * int((answered < fault_ns).sum()) / before_s
    times = np.sort(answered[answered >= first_ns])
    begins = np.arange(first_ns, int(times[-1]) - _WINDOW_NS + 1, _STEP_NS)
    counts = np.searchsorted(times, begins + _WINDOW_NS) - np.searchsorted(times, begins)
    reached = begins[counts >= wanted]
    return (int(reached[0]) - first_ns) / 1e9 if len(reached) else None
