"""Whether a server recovers from a power cut or a snapshot, and what is looked for then: its commits, then everything else it stores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.model.base import SettingValue
from plinth.model.commit_ledger import CommitTimeline
from plinth.model.durability import Damage, IntegrityCheck, PlannedCut, PowerCut
from plinth.model.errors import PlinthError, RunError
from plinth.model.load import LoadResult
from plinth.model.plan import Variant
from plinth.model.recovery import Recovery
from plinth.model.units import format_duration
from plinth.model.write_facts import SettingSeen
from plinth.run.faults.power import Power, PowerLoss
from plinth.server.integrity.amcheck import CHECKSUMS, check_database, check_unlogged
from plinth.server.integrity.check_limits import limited, timeout_reason
from plinth.server.integrity.findings import Integrity, is_unanswered
from plinth.server.integrity.fingerprint import Fingerprint
from plinth.server.integrity.server_files import ServerFiles
from plinth.server.integrity.torn_pages import with_torn_pages
from plinth.server.integrity.transaction_status import check_transaction_status
from plinth.server.node import Server
from plinth.server.postmaster import START_TIMEOUT_S, StartTooLong
from plinth.server.written_relations import session_settings
from plinth.system.database import connect, connect_unpinned, database_errors
from plinth.system.failures import from_os_error
from plinth.workload.commit_ledger import CommitLedger
from plinth.workload.commit_ledger_check import commit_levels_seen
from plinth.workload.dataset import Dataset, Snapshot
from plinth.workload.prepared import commit_prepared, unfinished
from plinth.workload.survival import INVARIANTS, broken_invariants, surviving_commits

if TYPE_CHECKING:
    import psycopg

_INSERTED = "SELECT pg_current_wal_insert_lsn()::text"
# The checkpoint that ends a recovery begins where the WAL that was found ended (xlog.c, CreateEndOfRecoveryRecord).
_RECOVERED = (
    "SELECT redo_lsn::text, CASE WHEN pg_wal_lsn_diff(%s::pg_lsn, redo_lsn) < 0 THEN 0 "
    "ELSE pg_wal_lsn_diff(%s::pg_lsn, redo_lsn) END::bigint FROM pg_control_checkpoint()"
)
_NOTHING_LOST = PowerLoss((), ())
_INTACT = ("lost commit", "local-only commit lost", "resurrected abort")
"""Damage after which the database is whole: the next cut can be made on it."""


class CutState(NamedTuple):
    """What was known when the power was cut."""

    before: Snapshot
    """The dataset's figures when the load began."""
    load: LoadResult | None
    """The answers to clients; None when they are no longer known, and only the ledger shows what is missing."""
    ledger: CommitLedger | None
    """The answers to commits that clients had received by then."""
    cut_ns: int
    """CLOCK_MONOTONIC when the power was cut."""
    inserted_lsn: str | None
    """The WAL insert position; None for the image of a recording, whose server cannot be asked."""
    fingerprint: Fingerprint | None = None
    """What the database had when the load began; None where that is not known any more, or by the server's own host."""


@dataclass
class Findings:
    """The findings about a cut, filled in step by step."""

    lost: PowerLoss = _NOTHING_LOST
    after_s: float | None = None
    recovery_s: float | None = None
    mounted_s: float | None = None
    recovery: Recovery | None = None
    acknowledged: int = 0
    unanswered: int = 0
    lost_time_s: float | None = None
    lost_wal_bytes: int | None = None
    timeline: CommitTimeline | None = None
    before: Snapshot = field(default_factory=dict)
    prepared: tuple[str, ...] = ()
    damage: list[Damage] = field(default_factory=list)
    checks: list[IntegrityCheck] = field(default_factory=list)
    settings: tuple[SettingSeen, ...] = ()
    tell: Callable[[str], None] = lambda _: None
    """Shown to people: what is being checked."""

    @property
    def is_intact(self) -> bool:
        """Whether the database can serve the next cut as it is."""
        return all(damage.kind in _INTACT for damage in self.damage)

    def cut(
        self, planned: PlannedCut, *, started_unix_ns: int, failure: str | None, points: tuple[int, ...] = ()
    ) -> PowerCut:
        """Return the cut with all findings; `failure` is the reason when the check could not be completed."""
        return PowerCut(
            **planned.model_dump(),
            points=points,
            started_unix_ns=started_unix_ns,
            disks=self.lost.disks,
            reports=self.lost.reports,
            after_s=self.after_s,
            acknowledged=self.acknowledged,
            unanswered=self.unanswered,
            lost_time_s=self.lost_time_s,
            lost_wal_bytes=self.lost_wal_bytes,
            timeline=self.timeline,
            recovery_s=self.recovery_s,
            mounted_s=self.mounted_s,
            recovery=self.recovery,
            before=self.before,
            prepared=self.prepared,
            damage=tuple(self.damage),
            checks=tuple(self.checks),
            settings=self.settings,
            failure=failure,
        )

    def refuse(self, evidence: tuple[str, ...]) -> None:
        """Record that a file system could not be mounted, or that the server did not start."""
        self.damage.append(Damage(kind="recovery refused", count=1, evidence=evidence))

    def add(self, integrity: Integrity) -> None:
        """Take over what a check has found."""
        self.damage += integrity.damage
        self.checks += integrity.checks


def inserted_lsn(control: "psycopg.Connection[Any]") -> str:
    """Return the current WAL insert position."""
    row = control.execute(_INSERTED).fetchone()
    assert row is not None, "a function gives a row"
    return str(row[0])


def restore_power(power: Power, found: Findings) -> bool:
    """Return whether every file system could be mounted again; a failure is a finding."""
    try:
        power.restore()
    except PlinthError as error:
        found.refuse((error.message, *error.details))
        return False
    return True


def start_server(
    server: Server,
    settings: Mapping[str, SettingValue],
    found: Findings,
    limit_s: float = START_TIMEOUT_S,
    key: str | None = "durability.recovery_limit",
) -> bool:
    """Start a server that has to recover, and return whether it started; a failure is a finding.

    Raises RunError when it still recovers after `limit_s`, which says nothing about what is there; `key` of the experiment sets that.
    """
    data_directory = server.layout.data_directory
    try:
        if not server.has_data_directory():
            found.refuse((f"the data directory is gone: {data_directory}",))
            return False
        server.start(settings, limit_s)
    except StartTooLong as error:
        limit = format_duration(limit_s) + (f" ({key})" if key else "")
        raise RunError(
            f"the recovery took longer than {limit}, and was ended: nothing was learned",
            where=error.where,
            details=error.details,
        ) from error
    except PlinthError as error:
        fatal = [line for line in error.details if "PANIC:" in line or "FATAL:" in line]
        found.refuse((": ".join([error.message, *fatal[:1]]), *error.details[-10:]))
    except OSError as error:
        failed = from_os_error(error, "start the server", data_directory)
        found.refuse((failed.message, *failed.details))
    else:
        return True
    return False


def check_recovered(
    server: Server, files: ServerFiles, variant: Variant, dataset: Dataset, at_cut: CutState, found: Findings
) -> None:
    """Check a running server that has recovered, from a power cut or a snapshot, stop it, and check its files. Everything that is found goes to `found`.

    A server that crashes while it is checked is a finding, too. Raises RunError where nothing can be checked, such as
    when the machine has no memory left for a query.
    """
    import psycopg

    found.before = at_cut.before
    with (
        database_errors("check what was recovered", variant.label),
        connect(server.control) as control,
        limited(control),
        connect_unpinned(server.connection) as session,
        limited(session),
    ):
        backend = control.info.backend_pid
        checksums = control.execute("SHOW data_checksums").fetchone() == ("on",)
        row = control.execute(_RECOVERED, (at_cut.inserted_lsn, at_cut.inserted_lsn)).fetchone()
        assert row is not None, "a function gives a row"
        recovered_lsn, found.lost_wal_bytes = str(row[0]), None if row[1] is None else int(row[1])
        try:
            found.prepared = unfinished(control)
            _read_settings(session, variant, found)
            found.tell("looking for commits")
            _check_commits(session, variant, dataset, at_cut, found)
            _finish_prepared(control, found)
            if any(damage.kind == "lost commit" for damage in found.damage):  # before a checkpoint recycles the segment
                _add_wal_evidence(recovered_lsn, files, at_cut, found)
            found.add(files.compare_fingerprint(control, at_cut.fingerprint))
            found.add(check_unlogged(control))
            found.add(check_database(control, server.layout.installation.major, found.tell))
            found.tell(INVARIANTS)
            _check_invariants(session, variant, dataset, at_cut, found)
            found.add(check_transaction_status(control))
            found.add(files.check_other_databases(control))
            files.read_pointers(control)
        except psycopg.OperationalError as error:
            if reason := timeout_reason(control, error, None):
                raise RunError(f"what was recovered could not be checked: {reason}", where=variant.label) from error
            if not (control.closed or session.closed):
                raise
            for one in (control, session):  # a crash has ended both, which only one of them has noticed
                one.close()
            server.wait_out_recovery(backend)  # its log has the reason then
            evidence = (str(error).strip().splitlines()[0], *server.log_crash())
            found.damage.append(Damage(kind="server crashed", count=1, evidence=evidence))
    server.shutdown()
    found.tell("index entries point to rows")
    for one in files.check_pointers():
        found.add(one)
    found.tell(CHECKSUMS)
    found.add(files.check_checksums(checksums))


def name_torn_pages(found: Findings, files: ServerFiles, variant: Variant) -> None:
    """Tell torn pages from the other damage that was found; the server is stopped, and its files are there."""
    if not found.damage or not found.lost.torn:
        return
    unverified = any(check.name == CHECKSUMS and check.not_run is not None for check in found.checks)
    found.damage = with_torn_pages(
        found.damage,
        files.torn_pages(found.lost.torn),
        checksums=not unverified,
        full_page_writes=str(variant.settings.get("full_page_writes", "on")).lower() not in ("off", "false", "no", "0"),
    )


def _read_settings(control: "psycopg.Connection[Any]", variant: Variant, found: Findings) -> None:
    """Read under which settings commits were made: by a session as the load's, and by what scripts left in the ledger."""
    import psycopg

    try:
        seen = [
            SettingSeen(name=name, value=value, where="on a session, after the recovery")
            for name, value in session_settings(control).items()
        ]
        found.settings = tuple(seen + (commit_levels_seen(control) if variant.workload.keeps_ledger else []))
    except psycopg.Error as error:
        if is_unanswered(control, error):
            raise
        reason = str(error).strip().splitlines()[0]
        found.checks.append(IntegrityCheck(name="durability settings of the commits", not_run=reason))


def _check_commits(
    control: "psycopg.Connection[Any]", variant: Variant, dataset: Dataset, at_cut: CutState, found: Findings
) -> None:
    import psycopg

    try:
        survival = surviving_commits(control, variant.workload, dataset, at_cut.load, at_cut.ledger, at_cut.cut_ns)
    except psycopg.Error as error:  # such as a table that is not there any more, or a page that cannot be read
        if is_unanswered(control, error) or timeout_reason(control, error, None):
            raise
        found.damage.append(Damage(kind="invariant broken", count=1, evidence=(str(error).strip(),)))
    except RunError as error:  # rows that its key rules out
        found.damage.append(Damage(kind="invariant broken", count=1, evidence=(error.message,)))
    else:
        found.acknowledged, found.unanswered = survival.acknowledged, survival.unanswered
        found.damage += survival.damage
        found.timeline = survival.timeline
        if survival.lost_since_ns is not None:
            found.lost_time_s = max(0, at_cut.cut_ns - survival.lost_since_ns) / 1e9


def _finish_prepared(control: "psycopg.Connection[Any]", found: Findings) -> None:
    """Commit the prepared transactions that the comparison of commits has left: the checks would wait for their locks."""
    import psycopg

    for gid in unfinished(control):
        try:
            commit_prepared(control, (gid,))
        except psycopg.Error as error:
            if is_unanswered(control, error) or timeout_reason(control, error, None):
                raise
            evidence = f"prepared transaction {gid!r} cannot be committed: {str(error).strip()}"
            found.damage.append(Damage(kind="invariant broken", count=1, evidence=(evidence,)))


def _check_invariants(
    control: "psycopg.Connection", variant: Variant, dataset: Dataset, at_cut: CutState, found: Findings
) -> None:
    import psycopg

    try:
        broken, check = broken_invariants(control, dataset, at_cut.before, variant.workload)
    except psycopg.Error as error:
        if reason := timeout_reason(control, error, None):
            found.checks.append(IntegrityCheck(name=INVARIANTS, not_run=reason))
            return
        if is_unanswered(control, error):
            raise
        found.damage.append(Damage(kind="invariant broken", count=1, evidence=(str(error).strip(),)))
    else:
        found.add(Integrity(broken, (check,)))


def _add_wal_evidence(recovered_lsn: str, files: ServerFiles, at_cut: CutState, found: Findings) -> None:
    """Add to the evidence of lost commits where the recovered WAL ended."""
    evidence = [f"recovery found WAL up to {recovered_lsn}"]
    if at_cut.inserted_lsn is not None:
        evidence[0] += f"; it had been inserted up to {at_cut.inserted_lsn}, {found.lost_wal_bytes:,} bytes more"
    if last := files.last_commit_before(recovered_lsn):
        evidence.append(f"the last commit that recovery found, by pg_waldump: {last}")
    found.damage = [
        damage.model_copy(update={"evidence": (*damage.evidence, *evidence)})
        if damage.kind == "lost commit"
        else damage
        for damage in found.damage
    ]
