"""The commands for the workload of a server of others, as its log has recorded it."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from plinth.cli.options import AsJson, NoProgressBar
from plinth.cli.printing import print_result
from plinth.model.errors import UsageError

_NOTHING = 1
_MOST_CLASSES = 10_000
_EXAMPLE = """
A server records its workload with

  log_min_duration_statement = 0
  log_connections = on
  log_disconnections = on
  log_parameter_max_length = -1
  log_destination = 'jsonlog'
"""

replay = App(
    name="replay",
    help="Read the statements that a server has logged, to replay them.",
    help_epilogue=_EXAMPLE,
    help_format="plaintext",
)

Logs = Annotated[tuple[Path, ...], Parameter(help="Files, or patterns in quotes; also compressed: .gz, .zst.")]
LogLinePrefix = Annotated[
    str | None,
    Parameter(help="The server's setting, for a plain log. Default: that of PostgreSQL, or of Debian's packages."),
]


@replay.command
def check(
    logs: Logs,
    /,
    *,
    log_line_prefix: LogLinePrefix = None,
    classes: Annotated[int, Parameter(help="How many classes of statements to list.")] = 10,
    as_json: AsJson = False,
    quiet: NoProgressBar = False,
) -> int:
    """Say what LOGS hold: sessions, statements, durations, and what of them can be replayed.

    Reads jsonlog, csvlog and plain logs of PostgreSQL, in any order of files; each statement that cannot be replayed is counted with
    its reason and the line of the first. Statements are grouped without their constants, which are never shown.

    Exit code 0 when a statement can be replayed, 1 when none can.

      plinth replay check 'log/postgresql-*.json'
      plinth replay check postgresql.log.gz --log-line-prefix '%m [%p] %q%u@%d '
    """
    from plinth.cli.replay_view import reading_log, show_check
    from plinth.workload.server_log import check_log, log_files

    if not logs:
        raise UsageError("no LOG to read", hint="for example: plinth replay check 'log/postgresql-*.json'")
    if not 0 <= classes <= _MOST_CLASSES:
        raise UsageError(f"--classes: got {classes}; allowed: 0 to {_MOST_CLASSES:,}")
    files = log_files(logs)
    with reading_log(quiet)(files) as advance:
        found = check_log(files, log_line_prefix, classes, advance)
    print_result(found, as_json, show_check)
    return 0 if found.statements.replayable else _NOTHING


@replay.command
def prepare(
    logs: Logs,
    /,
    *,
    output: Annotated[
        Path, Parameter(name=["--output", "-o"], help="The replay file, which its owner alone may read.")
    ],
    log_line_prefix: LogLinePrefix = None,
    user: Annotated[tuple[str, ...], Parameter(help="Only sessions of this user; may be repeated.")] = (),
    database: Annotated[tuple[str, ...], Parameter(help="Only sessions of this database; may be repeated.")] = (),
    application: Annotated[
        tuple[str, ...], Parameter(help="Only sessions of this application_name; may be repeated.")
    ] = (),
    begin: Annotated[
        str | None,
        Parameter(help="Only statements that began then or later, as in the log: '2026-11-27 12:41:01 CET'."),
    ] = None,
    end: Annotated[str | None, Parameter(help="Only statements that began before.")] = None,
    overwrite: Annotated[bool, Parameter(help="Replace FILE if it is there.")] = False,
    as_json: AsJson = False,
    quiet: NoProgressBar = False,
) -> int:
    """Write what can be replayed of LOGS to a replay file, in the order of time: `[workload] replay` of an experiment.

    The file has the statements with their constants and parameters, as the log has: it holds personal data if the log does.
    What cannot be replayed is counted with its reason, as by `plinth replay check`.

    Exit code 0 when a statement can be replayed, 1 when none can: there is no file then.

      plinth replay prepare 'log/postgresql-*.json' -o shop.replay --database shop
    """
    from plinth.cli.replay_view import reading_log, show_prepared
    from plinth.workload.server_log import Chosen, log_files, prepare_replay

    if not logs:
        raise UsageError(
            "no LOG to read", hint="for example: plinth replay prepare 'log/postgresql-*.json' -o shop.replay"
        )
    files = log_files(logs)
    chosen = Chosen(user, database, application, begin, end)
    with reading_log(quiet)(files) as advance:
        prepared = prepare_replay(
            files, output, log_line_prefix=log_line_prefix, chosen=chosen, overwrite=overwrite, progress=advance
        )
    print_result(prepared, as_json, lambda prepared, console: show_prepared(prepared, output, console))
    return 0 if prepared.written.statements else _NOTHING
