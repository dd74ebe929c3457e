"""Baseline files: the figures of one run to compare later runs with. They may come from others, so they are untrusted."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from plinth.bundle.files import BundleFolder
from plinth.common.untrusted import parse_untrusted, validate_untrusted
from plinth.model.errors import UsageError
from plinth.model.run_comparison import RUN_FIGURES_VERSION, RunFigures
from plinth.system.failures import from_os_error
from plinth.system.regular_file import check_regular_if_there

_HINT = "`plinth compare --save-baseline FILE BUNDLE` makes one"
_MOST_SHOWN = 3


def write_run_figures(path: Path, figures: RunFigures) -> None:
    """Write a baseline file durably, replacing an existing one. Raises a PlinthError on failure."""
    try:
        check_regular_if_there(path)
    except OSError as error:  # such as for a device, which would be replaced by the file
        raise from_os_error(error, "write the baseline", path, "--save-baseline names another place for it") from error
    BundleFolder.made(path.parent).write_durably(path.name, figures.model_dump_json(indent=1) + "\n")


def read_run_figures(path: Path) -> RunFigures:
    """Read a baseline file. Raises a PlinthError if it is not a regular file, too large, of a newer version or invalid."""
    text = BundleFolder(path.parent).read_text(path.name)
    try:
        document: Any = parse_untrusted(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"this is not a baseline file: {error}", where=str(path), hint=_HINT) from error
    version = document.get("schema_version") if isinstance(document, dict) else None
    if not isinstance(version, int):
        raise UsageError("this is not a baseline file: it has no schema_version", where=str(path), hint=_HINT)
    if version > RUN_FIGURES_VERSION:
        raise UsageError(
            f"written in version {version} of the format; this Plinth reads up to {RUN_FIGURES_VERSION}",
            where=str(path),
            hint="use the Plinth that wrote it, or a newer one",
        )
    try:
        return validate_untrusted(RunFigures, document)
    except ValidationError as error:
        raise UsageError("this is not a baseline file", where=str(path), hint=_HINT, details=_wrong(error)) from error


def _wrong(error: ValidationError) -> list[str]:
    """Return the first validation errors, each with its key."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [f"{'.'.join(map(str, one['loc'])) or 'the file'}: {one['msg']}" for one in found[:_MOST_SHOWN]]
    return lines + ([f"and {len(found) - _MOST_SHOWN} more"] if len(found) > _MOST_SHOWN else [])
