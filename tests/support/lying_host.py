"""`plinth` of a host whose agent does all that it is asked for, and tells the lie that the first word names."""

import dataclasses
import os
import sys
import threading
from pathlib import Path
from typing import Any

from plinth.model.errors import RunError
from plinth.run.hosts import agent
from plinth.run.hosts.limits import LOG_PIECE_BYTES
from plinth.run.hosts.methods import METHODS
from plinth.run.hosts.protocol import Answer
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.server import LocalServer
from plinth.system.runner import CommandRecord

_BEGUN = threading.Event()


def log_without_end() -> None:
    table: Any = METHODS["server"]
    known = table["log_piece"]
    table["log_piece"] = dataclasses.replace(
        known, function=lambda server, offset: b"x" * (LOG_PIECE_BYTES - 1) + b"\n"
    )


def false_end() -> None:
    """It says of what is left what no agent says."""
    send = agent.HostAgent.send

    def lie(self: agent.HostAgent, answer: Answer) -> None:
        if answer.model_fields_set == {"number", "kept"}:
            self._link.send(b'{"number": %d, "kept": "nothing"}' % answer.number)
        else:
            send(self, answer)

    agent.HostAgent.send = lie


def many_commands() -> None:
    """It says of 40 MiB of commands that it has run them, with the first server."""
    make_directory = LocalServer.initdb

    def lie(self: LocalServer, *arguments: Any, **named: Any) -> None:
        record = CommandRecord(("true",), None, 0, 0.1, "x" * 2**17, "")
        for _ in range(320):
            self._runner._record(record)
        make_directory(self, *arguments, **named)

    LocalServer.initdb = lie


def failed_with_nothing() -> None:
    """It cannot make a data directory, and says so with an exit code of 0."""

    def lie(self: LocalServer, *_: Any, **__: Any) -> None:
        error = RunError("no data directory")
        error.exit_code = 0
        raise error

    LocalServer.initdb = lie


if __name__ == "__main__":
    lie, plinth, *words = sys.argv[1:]
    if words[0] == "host-agent":
        {one.__name__: one for one in (log_without_end, false_end, many_commands, failed_with_nothing)}[lie]()
        sys.exit(agent.main(words[1:], UNDO_HANDLERS))
    os.execv(plinth, [Path(plinth).name, *words])
