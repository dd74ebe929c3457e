"""Writes text to a file that the user named on the command line."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plinth.system.failures import from_os_error

Junit = Annotated[Path | None, Parameter(name="--junit", help="Write JUnit XML to this file as well, for CI.")]


def write_text(path: Path, text: str, what: str, option: str) -> Path:
    """Write `text` to the path that the user gave by `option`; `what` names the action for errors, as in "write the report"."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise from_os_error(error, what, path, hint=f"{option} names another place for it") from error
    return path
