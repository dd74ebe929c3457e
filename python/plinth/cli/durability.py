"""Commands about the durability of real drives: a witness on another machine, a load that tells it of each commit, and the
comparison after the restart; and about images of recorded disks."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from rich.live import Live
from rich.text import Text

from plinth import exit_codes
from plinth.cli.console import error_console
from plinth.cli.damaged_images import minimise_image, open_image
from plinth.cli.options import AsJson
from plinth.cli.printing import print_json, print_plain
from plinth.model.errors import UsageError

if TYPE_CHECKING:
    from plinth.model.witness import VerifiedRound, WitnessVerdict
    from plinth.witness.load import LoadEnded, LoadState

DEFAULT_PORT = 8434
_MAX_FINDINGS = 10
_PLAIN_PROGRESS_EVERY_S = 5.0
_EXAMPLE = f"""
A power cut of a real machine, in short (docs/guides/real-drives.md has it step by step):

  witness machine$  plinth durability witness rounds
  tested machine$   plinth durability load "dbname=plinth" --witness HOST:{DEFAULT_PORT} \\
                        --fingerprint sha256:... --token-file token
  pull the plug of the tested machine while the load runs, start the machine and its server again
  witness machine$  plinth durability verify rounds "host=TESTED dbname=plinth"
"""

durability = App(
    name="durability",
    help="""Pull the plug of a real machine, and look for every commit that it had acknowledged.

    The power of a real drive can be cut by hand only, and what had been acknowledged before must be known elsewhere: a witness on
    another machine records each commit while a load runs. Emulated disks are cut by `plinth run` ([durability]), and the images in
    which it found damage are opened and minimised here.
    """,
    help_epilogue=_EXAMPLE,
    help_format="plaintext",
)

durability.command(open_image, name="open")
durability.command(minimise_image, name="minimise")

Folder = Annotated[Path, Parameter(help="The witness's folder.")]
ConnectionString = Annotated[
    str,
    Parameter(
        help='Where the server is, as for psql: "host=db1 dbname=plinth" or a URL. PG* variables, services and .pgpass count.'
    ),
]


@durability.command
def witness(
    folder: Annotated[Path, Parameter(help="Where rounds are kept; made when it is not there, closed to others.")],
    /,
    *,
    listen: Annotated[
        str, Parameter(name="--listen", help="Address and port to listen on; port 0 takes a free one.")
    ] = f"0.0.0.0:{DEFAULT_PORT}",
    cert: Annotated[
        Path | None,
        Parameter(name="--cert", help="PEM file of a certificate. Default: one that is made in the folder."),
    ] = None,
    key: Annotated[Path | None, Parameter(name="--key", help="PEM file of its key.")] = None,
    silence: Annotated[
        float,
        Parameter(name="--silence", help="Seconds without a sign of life after which a load counts as gone."),
    ] = 10.0,
    max_size: Annotated[
        str, Parameter(name="--max-size", help="Of the ledger of one round: 32 bytes a commit.")
    ] = "16GiB",
) -> int:
    """Record the commits of a load on another machine, until Ctrl-C.

    Connections are encrypted (TLS 1.3). The load recognises the witness by the printed fingerprint, and needs the token, which is in
    the file `token` of the folder: copy it to the machine of the load. The witness takes one load at a time; each is a round, and
    one in which the power may have gone must be verified before the next load. Started again on the same folder, it keeps its
    fingerprint, token and rounds.

    Exit codes: 130 after Ctrl-C, the usual end; 2 it cannot listen there; 4 another witness uses the folder.

      plinth durability witness rounds
      plinth durability witness rounds --listen 10.0.0.5:9000
    """
    from plinth.cli.options import seconds_of
    from plinth.model.units import format_size
    from plinth.run.interrupt import InterruptGuard
    from plinth.witness.credentials import witness_credentials
    from plinth.witness.rounds import WitnessFolder
    from plinth.witness.server import RoundProgress, listening, serving

    silence_s, max_bytes = seconds_of("--silence", silence), _size("--max-size", max_size)
    host, port = _address("--listen", listen)
    made = WitnessFolder.made(folder)
    credentials = witness_credentials(made.path, cert, key)
    progress = _ProgressLine()

    def show(received: RoundProgress) -> None:
        progress.show(f"round {received.round}: {received.acknowledged:,} acknowledged commits are known")

    with listening(host, port) as listener:
        port = listener.getsockname()[1]
        with (
            InterruptGuard(progress.note),
            serving(
                made.path, credentials, listener, progress.note, silence_s=silence_s, max_round_bytes=max_bytes
            ) as served,
        ):
            print_plain(f"listening on {host}:{port}; rounds of at most {format_size(max_bytes)} in {made.path}")
            print_plain(f"fingerprint {credentials.fingerprint}")
            print_plain(f"token in {credentials.token_file}: copy that file to the machine of the load")
            print_plain(
                f"there: plinth durability load CONNECTION --witness THIS_HOST:{port} --fingerprint "
                f"{credentials.fingerprint} --token-file FILE",
                flush=True,
            )
            with progress:
                served.wait(show)
    return 0


@durability.command
def load(
    connection: ConnectionString = "",
    /,
    *,
    witness: Annotated[str, Parameter(name="--witness", help="HOST:PORT of the witness, as in 10.0.0.5:8434.")],
    fingerprint: Annotated[
        str,
        Parameter(
            name="--fingerprint", help="SHA-256 of the witness's certificate, as the witness prints it: sha256:...."
        ),
    ],
    token_file: Annotated[
        Path | None,
        Parameter(name="--token-file", help="The witness's token. Default: the variable PLINTH_WITNESS_TOKEN."),
    ] = None,
    clients: Annotated[int, Parameter(name="--clients", help="Sessions that commit side by side.")] = 8,
    duration: Annotated[
        str, Parameter(name="--duration", help="When it ends if nothing else ends it; 32 bytes of memory a commit.")
    ] = "10min",
) -> int:
    """Commit as fast as the server does, and tell the witness of each commit: pull the plug while it runs.

    Makes and empties the tables plinth_ledger_commits, plinth_ledger_clients and plinth_ledger_round: use a database of its own.
    Run it on the machine under test, or on any other that reaches both. When the witness does not answer any more, the load ends
    with an error, and the round does not count. After a round in which the power may have gone, a load starts only once that round was
    verified.

    Exit codes: 0 the server is lost, as it should be, or the duration is over; 1 the load failed or lost its witness; 4 the witness
    refuses it; 130 Ctrl-C, after which the round does not count.

      plinth durability load "dbname=plinth" --witness 10.0.0.5:8434 --fingerprint sha256:1f... --token-file token
    """
    from plinth.model.load_config import MAX_CLIENTS
    from plinth.model.units import parse_duration
    from plinth.system.conninfo import resolve
    from plinth.witness.credentials import parsed_fingerprint, token_of
    from plinth.witness.load import WitnessedLoad, run_witnessed

    if not 1 <= clients <= MAX_CLIENTS:
        raise UsageError(f"--clients: got {clients}; from 1 to {MAX_CLIENTS:,} are possible")
    try:
        duration_s = parse_duration(duration)
    except ValueError as error:
        raise UsageError(f"--duration: {error}") from error
    host, port = _address("--witness", witness)
    wanted = WitnessedLoad(
        connection=resolve(connection),
        host=host,
        port=port,
        fingerprint=parsed_fingerprint(fingerprint),
        token=token_of(token_file),
        clients=clients,
        duration_s=duration_s,
    )

    def show(state: "LoadState") -> None:
        progress.show(
            f"round {state.round}, {state.elapsed_s:.0f} s: {state.done:,} commits, the witness has recorded {state.known:,}"
        )

    with _ProgressLine() as progress:
        ended = run_witnessed(wanted, lambda text: progress.note(f"note: {text}"), show)
    return _show_end(ended)


@durability.command
def verify(
    folder: Folder,
    connection: ConnectionString = "",
    /,
    *,
    recovery_refused: Annotated[
        str | None,
        Parameter(
            name="--recovery-refused",
            help="The server does not start any more, which is the result: why, by the last lines of its log.",
        ),
    ] = None,
    only_verdict: Annotated[
        bool,
        Parameter(name="--verdict", help="Only say what all verified rounds show; no server is asked."),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Compare the last round with the database after the restart, check all tables and indexes, and say what all rounds show.

    Every commit that the witness knows to have been acknowledged must be there. One that it knows as sent only, or not at all, may be
    there or not, but whole. amcheck and pg_visibility look at the rest of the database, for a superuser. Exit code 99: damage
    was found, in this round or an earlier one.

    A server that does not start is a result, too; never run pg_resetwal and never zero pages to get it up for a test.

      plinth durability verify rounds "host=db1 dbname=plinth"
      plinth durability verify rounds --recovery-refused "PANIC: could not locate a valid checkpoint record"
      plinth durability verify rounds --verdict
    """
    from plinth.system.conninfo import resolve
    from plinth.witness.verify import record_refused_recovery, verdict, verify_last_round

    if only_verdict:
        if connection or recovery_refused is not None:
            raise UsageError("--verdict compares nothing: it takes neither a connection nor --recovery-refused")
        found = None
    elif recovery_refused is None:
        found = verify_last_round(folder, resolve(connection))
    elif connection:
        raise UsageError(
            "--recovery-refused and a connection exclude each other", hint="a server that takes one has recovered"
        )
    else:
        found = record_refused_recovery(folder, recovery_refused)
    all_rounds = verdict(folder)
    if as_json:
        print_json(all_rounds.model_dump_json(indent=1))
    else:
        if found is not None:
            _show_round(found)
        _show_verdict(all_rounds)
    return exit_codes.FINDING if all_rounds.damaged else 0


class _ProgressLine:
    """A status line on stderr that is updated in place on a terminal, else printed at intervals. Notes appear above it."""

    def __init__(self) -> None:
        self._console = error_console(soft_wrap=True)
        self._line = Live(
            console=self._console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        self._next_s = 0.0

    def __enter__(self) -> "_ProgressLine":
        if self._is_live:
            self._line.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._is_live:
            self._line.stop()

    @property
    def _is_live(self) -> bool:
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def show(self, text: str) -> None:
        """Update the status."""
        if self._is_live:
            self._line.update(Text(text), refresh=True)
        elif time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _PLAIN_PROGRESS_EVERY_S
            self._console.print(text)

    def note(self, text: str) -> None:
        """Print an event."""
        if self._is_live:
            self._line.update(Text(), refresh=True)
        self._console.print(text)


def _show_end(ended: "LoadEnded") -> int:
    known = f"the witness has recorded {ended.known:,} acknowledged commits"
    if ended.end == "complete":
        print_plain(f"round {ended.round}: its duration is over without a power cut; {known}")
        return 0
    if ended.end == "interrupted":
        print_plain(f"round {ended.round}: interrupted; {known}")
        return exit_codes.INTERRUPTED
    for reason in ended.reasons[:_MAX_FINDINGS]:
        print_plain(f"  {reason}")
    if ended.end == "server lost":
        print_plain(f"round {ended.round}: the server is gone; {known}")
        print_plain("Start it again, then on the witness: plinth durability verify DIR CONNECTION")
        return 0
    print_plain(f"round {ended.round}: the load has failed; {known}")
    return 1


def _show_round(found: "VerifiedRound") -> None:
    counted = "a power cut" if found.not_a_cut is None else f"no power cut: {found.not_a_cut}"
    print_plain(f"round {found.number}: {counted}")
    if found.ledger is not None:
        check = found.ledger
        others = [f"{kind}: {count:,}" for kind, count in check.counts.items() if kind != "lost commit"]
        missing = f"{check.lost:,} of {check.acknowledged:,} acknowledged commits are missing"
        print_plain("  " + "; ".join([missing, *others]))
        print_plain(
            f"  sent and not known to be answered: {check.indeterminate:,}, of which {check.indeterminate_there:,} are there; "
            f"not known to the witness at all: {check.unheard_there:,} are there"
        )
    for one in found.checks:
        print_plain(f"  {one.name}: " + ("was run" if one.not_run is None else f"not run: {one.not_run}"))
    for line in found.evidence[:_MAX_FINDINGS]:
        print_plain(f"  {line}")
    if len(found.evidence) > _MAX_FINDINGS:
        print_plain(f"  and {len(found.evidence) - _MAX_FINDINGS} more: --json has them")


def _show_verdict(all_rounds: "WitnessVerdict") -> None:
    print_plain(all_rounds.sentence)
    for note in all_rounds.notes:
        print_plain(f"note: {note}")


def _address(option: str, text: str) -> tuple[str, int]:
    """Split HOST:PORT or [ADDRESS]:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdecimal() and int(port) <= 65535):
        raise UsageError(
            f"{option}: got {text!r}; host and port are needed", hint="as in 10.0.0.5:8434 or [fd00::5]:8434"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def _size(option: str, text: str) -> int:
    from plinth.model.units import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
