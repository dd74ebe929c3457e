"""What a trial's faults cost, from the ledger of its commits, the steps of a failover and the database in the end."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plinth.model.base import SettingValue
from plinth.model.commit_ledger import LedgerCheck
from plinth.model.load import LoadResult
from plinth.model.outage import Failover, Outage, may_lose
from plinth.model.trial import Check
from plinth.run.faults import Marks, ServerFaults
from plinth.workload.commit_ledger import CommitLedger, read_commit_ledger
from plinth.workload.ledger_check import compare_ledger, ledger_checks

if TYPE_CHECKING:
    import numpy as np
    import psycopg
    from numpy.typing import NDArray

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
    """The effect of a trial's faults, and the checks of its commits; `control` is of the node that takes writes in the end."""
    recorded = read_commit_ledger(ledger)
    compared = compare_ledger(recorded, control, is_standby=faults.marks.promoted is not None)
    outage = outage_of(faults.marks, faults.primary, faults.standbys, settings, recorded, compared, load)
    return outage, ledger_checks(compared) if outage is None else outage_checks(outage, compared)


def outage_of(
    marks: Marks,
    primary: str,
    standbys: tuple[str, ...],
    settings: Mapping[str, SettingValue],
    ledger: CommitLedger,
    compared: LedgerCheck,
    load: LoadResult,
) -> Outage | None:
    """The effect of the faults of a trial; None where none came about. `primary` takes writes in the end, `settings` are the
    primary's of the beginning, and `compared` is the ledger beside the tables of `primary`."""
    if marks.fault_ns is None or marks.resumed_ns is None:
        return None
    known = ledger.of_class("acknowledged")
    sent, answered = known["sent_ns"].astype("int64"), known["answered_ns"].astype("int64")
    before, after = answered[sent < marks.resumed_ns], answered[sent >= marks.resumed_ns]
    first_ns = int(after.min()) if len(after) else None
    gap_s = (first_ns - int(before.max())) / 1e9 if first_ns is not None and len(before) else None
    lost_s = None if compared.oldest_lost_ns is None else max(0, marks.fault_ns - compared.oldest_lost_ns) / 1e9
    counts = {kind: sum(error.count for error in load.errors if error.kind == kind) for kind in ("connect", "timeout")}
    return Outage(
        faults=tuple(marks.faults),
        primary=primary,
        gap_s=gap_s,
        recovered_s=None if first_ns is None else _recovered_s(answered, ledger.started_ns, marks.fault_ns, first_ns),
        failover=_failover(marks, first_ns),
        acknowledged=compared.acknowledged,
        lost=compared.lost,
        lost_s=lost_s,
        lost_wal_bytes=_lost_wal_bytes(marks, compared.lost),
        may_lose=may_lose(
            settings, marks.promoted, standbys=standbys, candidates=marks.candidates, unpowered=marks.unpowered
        ),
        attempts_failed=sum(counts.values()),
        connections_lost=sum(error.count for error in load.errors if error.kind == "connection_lost"),
    )


def outage_checks(outage: Outage, compared: LedgerCheck) -> list[Check]:
    """What must hold after faults: no acknowledged commit is missing where none may be, and nothing else contradicts the ledger."""
    others = {kind: count for kind, count in compared.counts.items() if kind != "lost commit"}
    evidence = [finding.sentence for finding in compared.findings]
    allowed = "0" if outage.may_lose is None else f"any, since {outage.may_lose}"
    return [
        Check(
            name="acknowledged commits that are missing after the faults",
            expected=f"{allowed}, of {compared.acknowledged:,}",
            got="; ".join([f"{compared.lost:,}", *(one for one in evidence if one.startswith("lost commit"))][:3]),
            ok=compared.lost == 0 or outage.may_lose is not None,
        ),
        Check(
            name="other contradictions of ledger and tables",
            expected="none",
            got="; ".join(f"{kind}: {count:,}" for kind, count in others.items()) or "none",
            ok=not others,
        ),
    ]


def _failover(marks: Marks, first_ns: int | None) -> Failover | None:
    if marks.fault_ns is None or marks.detected_ns is None or marks.promoted_ns is None or marks.promoted is None:
        return None
    return Failover(
        to=marks.promoted,
        detect_s=(marks.detected_ns - marks.fault_ns) / 1e9,
        promote_s=(marks.promoted_ns - marks.detected_ns) / 1e9,
        first_write_s=None if first_ns is None else (first_ns - marks.promoted_ns) / 1e9,
        rejoin=marks.rejoin,
    )


def _lost_wal_bytes(marks: Marks, lost: int) -> int | None:
    """None also where commits are lost that were inserted after the position was read."""
    if marks.switch_lsn is None or marks.primary_lsn is None:
        return None
    missing_bytes = max(0, _bytes_of(marks.primary_lsn) - _bytes_of(marks.switch_lsn))
    return None if lost and not missing_bytes else missing_bytes


def _bytes_of(lsn: str) -> int:
    high, low = lsn.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def _recovered_s(answered: "NDArray[np.int64]", started_ns: int, fault_ns: int, first_ns: int) -> float | None:
    """From the first commit after the fault to the first second in which there are 90 % as many as before the fault, on average."""
    import numpy as np

    before_s = (fault_ns - started_ns) / 1e9
    if before_s <= 0:
        return None
    wanted = _RECOVERED_SHARE * int((answered < fault_ns).sum()) / before_s
    times = np.sort(answered[answered >= first_ns])
    begins = np.arange(first_ns, int(times[-1]) - _WINDOW_NS + 1, _STEP_NS)
    counts = np.searchsorted(times, begins + _WINDOW_NS) - np.searchsorted(times, begins)
    reached = begins[counts >= wanted]
    return (int(reached[0]) - first_ns) / 1e9 if len(reached) else None
