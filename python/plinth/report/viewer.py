"""The built viewer of HTML reports, into which a report is written.

Apart from what renders, so that a run finds out before its first step, and cheaply, that the viewer is missing.
"""

from importlib import resources

from plinth.model.errors import MissingCapability

VIEWER = "viewer.html"
PLACE = '<script type="application/json" id="plinth-report"></script>'


def viewer_parts() -> tuple[str, str]:
    """Return what stands before and after `PLACE`. Raises MissingCapability if the viewer was not built into this installation."""
    file = resources.files("plinth.report") / VIEWER
    try:
        viewer = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise MissingCapability(
            "the viewer of HTML reports is not built", where=str(file), hint="`make build` builds it"
        ) from error
    before, place, after = viewer.partition(PLACE)
    if not place:
        raise MissingCapability(
            f"the viewer has no place for the data: {PLACE}", where=str(file), hint="`make build` builds it again"
        )
    return before, after


def check_viewer() -> None:
    """Raise MissingCapability if no report could be written: a run of hours must not find that at its end."""
    viewer_parts()
