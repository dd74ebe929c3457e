"""The end of a cluster's WAL, as shown by pg_waldump."""

import re

from plinth.model.facts import Installation
from plinth.server.layout import ServerLayout
from plinth.system.runner import CommandError, Runner

_COMMIT = re.compile(r"desc: COMMIT\b")
_WAL_SEGMENT_BYTES = 16 * 2**20


def last_commit_before(end_lsn: str, layout: ServerLayout, installation: Installation, runner: Runner) -> str | None:
    """The last commit before `end_lsn` in its WAL segment, in pg_waldump's words; None where there is none, or no WAL to read."""
    high, low = (int(part, 16) for part in end_lsn.split("/"))
    argv = (
        f"{installation.bindir}/pg_waldump",
        f"--path={layout.data_directory / 'pg_wal'}",
        "--rmgr=Transaction",
        f"--start={high:X}/{low - low % _WAL_SEGMENT_BYTES:X}",
        f"--end={end_lsn}",
    )
    try:
        shown = runner.run(argv, owner=layout.owner).stdout
    except CommandError as error:
        shown = error.completed.stdout  # it ends with an error where the WAL does
    commits = [line for line in shown.splitlines() if _COMMIT.search(line)]
    return commits[-1].strip() if commits else None
