"""Every external command of a run, in the bundle: logs/commands.jsonl."""

import json
from pathlib import Path

from plinth.system.runner import CommandRecord


class CommandLog:
    """Appends one line of JSON for each command: argv, user, exit code, duration, ends of its output."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def record(self, command: CommandRecord) -> None:
        """Append one command."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(command._asdict()) + "\n")
