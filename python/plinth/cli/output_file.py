"""Writes text to a file that the user named on the command line."""

import io
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plinth.model.errors import UsageError
from plinth.system.failures import from_os_error
from plinth.system.regular_file import open_output

Junit = Annotated[Path | None, Parameter(name="--junit", help="Write JUnit XML to this file as well, for CI.")]


def check_folder(path: Path | None, option: str) -> None:
    """Raise UsageError unless the folder that a file (or folder) given by `option` is to be made in is there: a typing error is
    no order to make folders, and is found before anything is measured or analysed."""
    if path is None or path.parent.is_dir():
        return
    missing = next((one for one in (path.parent, *path.parent.parents) if one.parent.is_dir()), path.parent)
    found = "is not a folder" if missing.exists() else "is not there"
    raise UsageError(
        f"{option} {path}: the folder {missing} {found}",
        where=option,
        hint=f"make it first, or let {option} name another place",
    )


def write_text(path: Path, text: str, what: str, option: str) -> Path:
    """Write `text` to the path that the user gave by `option`; `what` names the action for errors, as in "write the report"."""
    try:
        with io.BufferedWriter(open_output(path)) as file:
            file.write(text.encode())
    except OSError as error:
        raise from_os_error(error, what, path, hint=f"{option} names another place for it") from error
    return path
