"""The command `plinth`. Only this package prints results and sets exit codes.

`plinth --help` is answered from the table of commands alone: everything heavy is imported by the command that runs.
"""

import os
import sys
from textwrap import wrap

from plinth import __version__
from plinth.cli.commands import COMMANDS, Command

_HEAD = """\
Plinth: how fast is PostgreSQL on this storage, how safe is it there, and which
one should I choose?"""
_TAIL = """\
Start here:
  plinth init experiment.toml  a commented experiment: compares disk and memory
  plinth plan experiment.toml  what will be done, the time and space it needs
  plinth run experiment.toml   do it; a table, a verdict and an HTML report

`plinth COMMAND --help` explains a command. `plinth --install-completion` lets
bash, zsh or fish complete commands and options. Results go to stdout, progress
and errors to stderr.

Exit codes: 0 ok; 1 a run failed; 2 bad usage or experiment file; 3 measured but
undecided; 4 refused for safety; 5 a needed capability is missing; 99 a finding
of --fail-on, or damage found by `durability verify`; 130 interrupted (results
are kept)."""
_WIDTH = 80


def help_text() -> str:
    """Return the overview of all commands, for a terminal of 80 columns."""
    width = max(len(command.name) for command in COMMANDS) + 4
    rows = []
    for command in COMMANDS:
        first, *more = wrap(command.help, _WIDTH - width)
        rows += [f"  {command.name}".ljust(width) + first, *(" " * width + line for line in more)]
    return "\n".join([_HEAD, "", "Usage: plinth COMMAND [ARGUMENTS]", "", "Commands:", *rows, "", _TAIL])


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    from plinth.cli.standard_streams import open_standard_streams, run_with_output

    for name in open_standard_streams():
        print(f"note: {name} was closed: it is redirected to {os.devnull}", file=sys.stderr)
    words = sys.argv[1:] if arguments is None else arguments
    return run_with_output(lambda: _run(words))


def _run(words: list[str]) -> int:
    if words in ([], ["--help"], ["-h"], ["help"]):
        print(help_text())
        return 0
    if words in (["--version"], ["-V"]):
        print(f"plinth {__version__}")
        return 0
    if words[0] == "bench":  # its options are pgbench's, which only a getopt_long understands
        return _bench(words[1:])
    if words[0] == "agent":  # not for people: the coordinator of a fleet starts it
        from plinth.fleet.agent import main as serve_as_agent

        return serve_as_agent(words[1:])
    if words[0] == "host-agent":  # nor this: the coordinator of a run on other machines starts it
        from plinth.run.hosts.agent import main as serve_as_host_agent
        from plinth.run.undo import UNDO_HANDLERS

        return serve_as_host_agent(words[1:], UNDO_HANDLERS)
    if words[0] == "ray-driver":  # neither: it is the executor's process that talks to Ray
        from plinth.fleet.executors.ray_driver import main as drive_ray

        return drive_ray(words[1:])
    from plinth.cli.app import call
    from plinth.cli.standard_streams import escape_unencodable

    escape_unencodable()
    return call(words)


def _bench(words: list[str]) -> int:
    from plinth.bench import run_bench
    from plinth.cli.standard_streams import die_interrupted
    from plinth.exit_codes import INTERRUPTED

    code = run_bench(words)
    if code == INTERRUPTED:
        die_interrupted()
    return code


__all__ = ["COMMANDS", "Command", "help_text", "main"]
