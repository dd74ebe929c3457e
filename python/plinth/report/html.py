"""The HTML report: the built viewer with the report embedded as JSON, in one file that needs no network."""

from plinth.common.shown import shown_in_json
from plinth.model.report import Report
from plinth.report.viewer import PLACE, viewer_parts


def render_html(report: Report) -> str:
    """Return the page. Raises MissingCapability when the viewer was not built into this installation."""
    before, after = viewer_parts()
    # In JSON "<" occurs only in strings; escaped there, no text of a report can end the script element.
    data = shown_in_json(report.model_dump_json()).replace("<", "\\u003c")
    return f"{before}{PLACE.removesuffix('</script>')}{data}</script>{after}"
