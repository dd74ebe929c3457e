"""What a server's log says of its recovery: logs as PostgreSQL 13 to 18 write them, and logs that say nothing of it."""

import pytest

from plinth.model.recovery import Recovery
from plinth.server.postmaster import recovery_of

CRASHED = """\
2026-11-27 10:00:00.000 UTC [10] LOG:  starting PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc, 64-bit
2026-11-27 10:00:00.010 UTC [10] LOG:  listening on Unix socket "/tmp/.s.PGSQL.5432"
2026-11-27 10:00:00.100 UTC [13] LOG:  database system was interrupted; last known up at 2026-11-27 09:59:00 UTC
2026-11-27 10:00:02.000 UTC [13] LOG:  syncing data directory (fsync), elapsed time: 1.90 s, current path: ./base/5/1
2026-11-27 10:00:02.500 UTC [13] LOG:  database system was not properly shut down; automatic recovery in progress
2026-11-27 10:00:02.600 UTC [13] LOG:  redo starts at FF/FF000000
2026-11-27 10:00:02.700 UTC [14] FATAL:  the database system is not yet accepting connections
2026-11-27 10:00:02.700 UTC [14] DETAIL:  Consistent recovery state has not been yet reached.
2026-11-27 10:00:05.600 UTC [13] LOG:  invalid record length at 100/1000000: expected at least 24, got 0
2026-11-27 10:00:05.700 UTC [13] LOG:  redo done at 100/00FFFFC0 system usage: CPU: user: 2.00 s, system: 0.50 s, elapsed: 3.10 s
2026-11-27 10:00:05.800 UTC [11] LOG:  checkpoint starting: end-of-recovery immediate wait
2026-11-27 10:00:07.800 UTC [11] LOG:  checkpoint complete: wrote 5 buffers (0.0%); 0 WAL file(s) added
2026-11-27 10:00:08.000 UTC [10] LOG:  database system is ready to accept connections
"""
RECOVERY = Recovery(before_redo_s=2.6, redo_s=3.1, redo_bytes=0x1FFFFC0, after_redo_s=2.3)


def lines(text: str = CRASHED, *changes: tuple[str, str]) -> list[str]:
    for change in changes:
        assert change[0] in text
        text = text.replace(*change)
    return text.splitlines()


def test_parts_add_up_to_the_time_without_connections() -> None:
    found = recovery_of(lines())
    assert found == RECOVERY
    assert found is not None and found.total_s == pytest.approx(8.0)


def test_the_last_start_counts() -> None:
    earlier = CRASHED.replace("redo done at 100/00FFFFC0", "redo done at 101/00000000").replace("10:00:0", "09:00:0")
    assert recovery_of([*lines(earlier), *lines()]) == RECOVERY
    assert recovery_of([*lines(), *lines()[:1]]) is None, "it has not come up yet"


def test_older_versions_say_less_at_the_end_of_redo() -> None:
    usage = " system usage: CPU: user: 2.00 s, system: 0.50 s, elapsed: 3.10 s"
    assert recovery_of(lines(CRASHED, (usage, ""))) == RECOVERY


def test_nothing_to_replay_takes_no_time() -> None:
    redo = [line for line in lines() if "redo" in line]
    text = CRASHED.replace(redo[0], redo[0].partition("redo")[0] + "redo is not required").replace(f"{redo[1]}\n", "")
    found = recovery_of(lines(text))
    assert found is not None
    assert (found.redo_s, found.redo_bytes, found.total_s) == (0, 0, pytest.approx(8.0))


@pytest.mark.parametrize(
    "changes",
    [
        [("redo starts at", "Redo beginnt bei")],
        [("redo done at", "redo was done at")],
        [(" UTC [", " UTC app@shop [")],
        [("10:00:08.000", "09:00:08.000")],
        [("starting PostgreSQL", "beginning PostgreSQL")],
    ],
    ids=["another language", "no end", "another prefix", "a clock that was set", "no beginning"],
)
def test_a_log_that_does_not_say_it_gives_nothing(changes: list[tuple[str, str]]) -> None:
    assert recovery_of(lines(CRASHED, *changes)) is None


def test_an_orderly_start_is_no_recovery() -> None:
    assert recovery_of(lines()[:2] + lines()[-1:]) is None
