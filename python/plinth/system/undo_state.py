"""State that is needed to undo a step: small JSON files in labelled directories, written atomically."""

import json
import os
from pathlib import Path
from typing import Any

from plinth.model.errors import Refused
from plinth.system.directory import nearest_label
from plinth.system.failures import from_os_error


def write_undo_state(path: Path, content: dict[str, Any]) -> None:
    """Write `content` to `path` atomically and durably."""
    beside = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with beside.open("w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise from_os_error(error, "write down what is to be undone", path) from error


def read_undo_state(path: Path, label: str) -> dict[str, Any] | None:
    """Read the content of `write_undo_state`; None if there is none. Raises Refused if the directory does not have `label`."""
    try:
        text = path.read_text()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise from_os_error(error, "read what is to be undone", path) from error
    found = nearest_label(path.parent)
    if found != label:
        raise Refused(f"its folder has the label {found!r}, not ours, {label!r}", where=str(path))
    return json.loads(text)
