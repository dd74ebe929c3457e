"""The HTML report: the built viewer with the report embedded as JSON, in one file that needs no network."""

from importlib import resources

from plinth.model.errors import MissingCapability
from plinth.model.report import Report
from plinth.model.shown import shown_in_json

VIEWER = "viewer.html"
_PLACE = '<script type="application/json" id="plinth-report"></script>'


def render_html(report: Report) -> str:
    """Return the page. Raises MissingCapability when the viewer was not built into this installation."""
    file = resources.files("plinth.report") / VIEWER
    try:
        viewer = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise MissingCapability(
            "the viewer of HTML reports is not built",
            where=str(file),
            hint="`make build` builds it; without: --markdown, --csv and --json",
        ) from error
    before, place, after = viewer.partition(_PLACE)
    if not place:
        raise MissingCapability(
            f"the viewer has no place for the data: {_PLACE}", where=str(file), hint="build it anew with `make build`"
        )
    # In JSON "<" occurs only in strings; escaped there, no text of a report can end the script element.
    data = shown_in_json(report.model_dump_json()).replace("<", "\\u003c")
    return f"{before}{_PLACE.removesuffix('</script>')}{data}</script>{after}"
