"""The HTML report: the built viewer with the report embedded as JSON, in one file that needs no network.

Imports little, so that a run finds out cheaply, before its first step, that the viewer is missing.
"""

from importlib import resources
from typing import TYPE_CHECKING

from plinth.common.shown import shown_in_json
from plinth.model.errors import MissingCapability

if TYPE_CHECKING:
    from plinth.model.report import Report

VIEWER = "viewer.html"
PLACE = '<script type="application/json" id="plinth-report"></script>'


def built(package: str, name: str, missing: str, hint: str = "`make build` builds it") -> str:
    """Return a file of a package that a build makes. Raises MissingCapability with `missing` if this installation is without."""
    file = resources.files(package) / name
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise MissingCapability(missing, where=str(file), hint=hint) from error


def viewer_parts() -> tuple[str, str]:
    """Return what stands before and after `PLACE`. Raises MissingCapability if the viewer was not built into this installation."""
    viewer = built("plinth.report", VIEWER, "the viewer of HTML reports is not built")
    before, place, after = viewer.partition(PLACE)
    if not place:
        where = str(resources.files("plinth.report") / VIEWER)
        hint = "`make build` builds it again"
        raise MissingCapability(f"the viewer has no place for the data: {PLACE}", where=where, hint=hint)
    return before, after


def check_viewer() -> None:
    """Raise MissingCapability if no report could be written: a run of hours must not find that at its end."""
    viewer_parts()


def render_html(report: "Report") -> str:
    """Return the page. Raises MissingCapability when the viewer was not built into this installation."""
    before, after = viewer_parts()
    # In JSON "<" occurs only in strings; escaped there, no text of a report can end the script element.
    data = shown_in_json(report.model_dump_json()).replace("<", "\\u003c")
    return f"{before}{PLACE.removesuffix('</script>')}{data}</script>{after}"
