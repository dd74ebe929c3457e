"""Which lines of a server's log tell why one of its processes died."""

from pathlib import Path

import pytest

from plinth.server.postmaster import ServerLog
from plinth.system.log_file import LogFile

BEFORE = "LOG:  database system is ready to accept connections"
CRASH = "LOG:  server process (PID 7) was terminated by signal 11: Segmentation fault"
DETAIL = "DETAIL:  Failed process was running: SELECT 1"
REFUSED = "FATAL:  the database system is in recovery mode"
AFTER = "LOG:  redo done at 0/1"


@pytest.fixture
def log(tmp_path: Path):
    file = tmp_path / "log"
    file.write_text("LOG:  server process (PID 1) was terminated by signal 6: Aborted\n")  # of an earlier start
    return file, ServerLog(LogFile(file))


@pytest.mark.parametrize(
    ("lines", "crash"),
    [
        ([BEFORE, CRASH, DETAIL, AFTER], [CRASH, DETAIL, AFTER]),
        ([BEFORE, CRASH, DETAIL, *[REFUSED] * 500, AFTER], [CRASH, DETAIL, AFTER]),
        ([CRASH, AFTER, BEFORE, "PANIC:  could not write", AFTER], ["PANIC:  could not write", AFTER]),
        ([BEFORE, AFTER], [BEFORE, AFTER]),
        ([], []),
    ],
    ids=["the crash", "connections refused meanwhile", "the last of two", "no crash", "nothing"],
)
def test_the_crash_is_found_regardless_of_what_was_logged_after_it(log, lines, crash):
    file, server_log = log
    with file.open("a") as appended:
        appended.writelines(f"{line}\n" for line in lines)
    assert list(server_log.crash()) == crash
