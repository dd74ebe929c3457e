"""Every external command of a run, in the bundle: logs/commands.jsonl."""

import json
from collections.abc import Callable
from pathlib import Path

from plinth.system.runner import CommandRecord


class CommandLog:
    """Appends one line of JSON for each command: argv, user, exit code, duration, ends of its output.

    A command that was done is done, though the disk with the bundle be full: `note` is told once, and no command fails by it.
    """

    def __init__(self, path: Path, note: Callable[[str], None]) -> None:
        self._path = path
        self._note = note
        self._has_failed = False

    def record(self, command: CommandRecord) -> None:
        """Append one command."""
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(command._asdict()) + "\n")
        except OSError as error:
            if not self._has_failed:
                self._note(f"{self._path} cannot be written ({error.strerror}): some commands are missing there")
            self._has_failed = True
