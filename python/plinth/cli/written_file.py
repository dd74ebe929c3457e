"""Text that a command writes to a place that the user has named."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plinth.system.failures import from_os_error

Junit = Annotated[Path | None, Parameter(name="--junit", help="Write JUnit XML to this file as well, for CI.")]


def write_text(path: Path, text: str, what: str, option: str) -> Path:
    """Write to a place that the user has named by `option`; `what` says what for, as in "write the report"."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise from_os_error(error, what, path, hint=f"{option} names another place for it") from error
    return path
