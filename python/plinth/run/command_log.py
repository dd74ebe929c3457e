"""Every external command of a run, in the bundle: logs/commands.jsonl."""

import json
from collections.abc import Callable

from plinth.model.errors import PlinthError
from plinth.system.log_file import LogFile
from plinth.system.runner import CommandRecord


class CommandLog:
    """Appends one line of JSON for each command: argv, user, exit code, duration, ends of its output.

    A command does not fail when it cannot be logged, such as when the disk with the bundle is full: `note` is then
    called once.
    """

    def __init__(self, log: LogFile, note: Callable[[str], None]) -> None:
        self._log = log
        self._note = note
        self._has_failed = False

    def record(self, command: CommandRecord) -> None:
        """Append one command."""
        try:
            with self._log.to_append() as file:
                file.write(json.dumps(command._asdict()).encode() + b"\n")
        except (OSError, PlinthError) as error:
            if not self._has_failed:
                reason = error.message if isinstance(error, PlinthError) else error.strerror
                self._note(f"{self._log.path} cannot be written ({reason}): some commands are missing there")
            self._has_failed = True
