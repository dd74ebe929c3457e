"""After the restart: the database compared with what the witness knows, and what all rounds say together."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plinth.analyse.durability import upper_bound
from plinth.model.commit_ledger import LedgerCheck
from plinth.model.connection import Connection
from plinth.model.durability import Damage, IntegrityCheck
from plinth.model.errors import Refused, RunError
from plinth.model.witness import POSSIBLE_CUTS, TestedServer, VerifiedRound, WitnessRound, WitnessVerdict
from plinth.server.integrity.amcheck import check_database
from plinth.server.integrity.findings import Integrity, is_unanswered
from plinth.system.conninfo import place
from plinth.system.database import connect_unpinned, database_errors
from plinth.witness.rounds import WitnessFolder
from plinth.witness.tables import RoundInTables, check_is_same, check_tables, is_of, round_in_tables, tested_server
from plinth.workload.commit_ledger import CommitLedger
from plinth.workload.commit_ledger_check import compare_ledger

if TYPE_CHECKING:
    import psycopg

_STOPPED_ONLY = IntegrityCheck(
    name="pg_checksums", not_run="it needs a stopped server: run `pg_checksums --check` by hand"
)


def verify_last_round(path: Path, connection: Connection) -> VerifiedRound:
    """Compare the last round of the witness's folder with the database, check all of that, and keep what was found.

    What was found once stays found: a clean comparison does not replace one that found damage. Raises PlinthError when
    there is nothing to compare, or no server to compare with.
    """
    folder, last, ledger = _last_round(path)
    where = place(connection)
    hint = 'start the server; if it refuses, that is the result: --recovery-refused "the last line of its log"'
    with database_errors("connect", where, hint), connect_unpinned(connection) as control:
        now = tested_server(control, where)
        check_is_same(now, last, where)
        tables = round_in_tables(control, last.server.schema_name, where)
        has_tables = is_of(tables, last, [one.round_id for one in folder.rounds()[:-1]], where)
        check, damage = _compared(control, ledger, last, has_tables, where)
        integrity = _checked(control, where)
    found = VerifiedRound(
        number=last.number,
        verified_unix_ns=time.time_ns(),
        server_version=now.version,
        has_rebooted=None if None in (now.boot_id, last.server.boot_id) else now.boot_id != last.server.boot_id,
        not_a_cut=_not_a_cut(last, now, tables if has_tables else None),
        ledger=check,
        acknowledged=len(ledger.of_class("acknowledged")),
        lost_time_s=_lost_time_s(ledger, check),
        damage=(*damage, *integrity.damage),
        checks=(*integrity.checks, _STOPPED_ONLY),
    )
    return _kept(folder, found)


def record_refused_recovery(path: Path, said: str) -> VerifiedRound:
    """Keep that the server of the last round does not start any more; `said` is why, by its log."""
    folder, last, ledger = _last_round(path)
    found = VerifiedRound(
        number=last.number,
        verified_unix_ns=time.time_ns(),
        server_version=None,
        has_rebooted=None,
        not_a_cut=None if last.end in POSSIBLE_CUTS else _ended_before(last.end or ""),
        ledger=None,
        acknowledged=len(ledger.of_class("acknowledged")),
        damage=(Damage(kind="recovery refused", count=1, evidence=(said,)),),
    )
    return _kept(folder, found)


def verdict(path: Path) -> WitnessVerdict:
    """Return what all verified rounds of a folder say."""
    folder = WitnessFolder(path)
    rounds = folder.rounds()
    verified = [found for one in rounds if (found := folder.verified(one.number)) is not None]
    cuts = [one for one in verified if one.not_a_cut is None]
    damaged = sum(one.is_damaged for one in cuts)
    return WitnessVerdict(
        rounds=tuple(verified),
        cuts=len(cuts),
        damaged_cuts=damaged,
        acknowledged=sum(one.acknowledged for one in cuts if one.ledger is not None),
        lost=sum(one.lost for one in cuts),
        damaged_share_at_most=upper_bound(damaged, len(cuts)) if cuts else None,
        notes=tuple(_notes([one for one in rounds if one.number in {cut.number for cut in cuts}], cuts)),
    )


def _last_round(path: Path) -> tuple[WitnessFolder, WitnessRound, CommitLedger]:
    folder = WitnessFolder(path)
    rounds = folder.rounds()
    if not rounds:
        raise RunError(
            "there is nothing to verify: no load has been recorded by this witness",
            where=str(path),
            hint="start `plinth durability load` next to the server, and pull the plug while it runs",
        )
    last = rounds[-1]
    if folder.is_running(last):
        raise Refused(
            f"round {last.number} is not over: its load is connected to the witness",
            where=str(path),
            hint="pull the plug, or end the load; the witness says when nothing comes any more",
        )
    ledger = folder.ledger(last)
    if ledger is None or not len(ledger.of_class("acknowledged")):
        raise RunError(
            f"round {last.number} cannot be verified: the witness has recorded no acknowledged commit",
            where=str(path),
            hint="start the load again, and let it run for a few seconds before you pull the plug",
        )
    return folder, last, ledger


def _compared(
    control: "psycopg.Connection[Any]",
    ledger: CommitLedger,
    last: WitnessRound,
    has_tables: bool,
    where: str,
) -> tuple[LedgerCheck | None, tuple[Damage, ...]]:
    """Compare the ledger with the tables; return None where these cannot be read, which is damage."""
    import psycopg

    if not has_tables:
        # They were made, and written to, before the first commit of the round: all of it is lost.
        return compare_ledger(ledger, None), ()
    with database_errors("read the tables of the ledger", where):
        check_tables(control, last.server.schema_name)
        try:
            return compare_ledger(ledger, control), ()
        except psycopg.Error as error:
            if is_unanswered(control, error):
                raise
            message = str(error).strip().splitlines()[0]
            return None, (Damage(kind="heap damaged", count=1, evidence=(f"the tables of the ledger: {message}",)),)


def _lost_time_s(ledger: CommitLedger, check: LedgerCheck | None) -> float | None:
    if check is None or check.oldest_lost_ns is None:
        return None
    return (int(ledger.of_class("acknowledged")["answered_ns"].max()) - check.oldest_lost_ns) / 1e9


def _checked(control: "psycopg.Connection[Any]", where: str) -> Integrity:
    with database_errors("check the database", where):
        return check_database(control, control.info.server_version // 10_000)


def _not_a_cut(last: WitnessRound, now: TestedServer, tables: RoundInTables | None) -> str | None:
    """Return why nothing in this round was a power cut."""
    if last.end not in POSSIBLE_CUTS:
        return _ended_before(last.end or "")
    if tables is not None and tables.end is not None:
        return _ended_before(tables.end)
    if now.started_unix_us == last.server.started_unix_us:
        return "the server has not been restarted since the load began"
    return None


def _ended_before(how: str) -> str:
    return f"the load had ended before: {how}"


def _kept(folder: WitnessFolder, found: VerifiedRound) -> VerifiedRound:
    former = folder.verified(found.number)
    if former is None or found.is_damaged or not former.is_damaged:
        folder.write_verified(found)
    return found


def _notes(rounds: Sequence[WitnessRound], cuts: Sequence[VerifiedRound]) -> list[str]:
    notes = list(dict.fromkeys(risk for one in rounds for risk in one.server.risks))
    if len({(one.server.system_identifier, tuple(sorted(one.server.settings.items()))) for one in rounds}) > 1:
        notes.append("the rounds are of different servers or settings: the bound holds for none of them alone")
    still_up = [str(one.number) for one in cuts if one.has_rebooted is False]
    if still_up:
        notes.append(
            f"the server's machine has not been rebooted since {_loads(still_up)} began: only if its drives "
            "alone lost their power was that a power cut"
        )
    unknown = [str(one.number) for one in cuts if one.has_rebooted is None and one.server_version is not None]
    if unknown:
        notes.append(
            f"whether the server's machine has been rebooted since {_loads(unknown)} began is not known: "
            "the role may not read it (a superuser may)"
        )
    return notes


def _loads(rounds: Sequence[str]) -> str:
    if len(rounds) == 1:
        return f"the load of round {rounds[0]}"
    return f"the loads of rounds {', '.join(rounds[:-1])} and {rounds[-1]}"
