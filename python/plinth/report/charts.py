"""Renders the charts of the HTML report as SVG and PNG without a browser, by the viewer's code in V8 and by resvg."""

import json
import re
import unicodedata
from importlib import import_module, resources
from typing import Any, NamedTuple

from plinth.common.shown import shown_in_json
from plinth.model.errors import RunError
from plinth.model.report import Report
from plinth.report.html import built
from plinth.system.extras import require_package

CHARTS = "charts.js"
_FONT = "fonts/Inter-Regular.ttf"
_TIMEOUT_S = 300
"""Timeout for all charts together; each takes a tenth of a second."""
_MEMORY_BYTES = 2**30
_PNG_ZOOM = 2.0
"""PNG pixels per SVG pixel."""
_MOST_LETTERS = 80


class Drawing(NamedTuple):
    """A rendered chart. `name` is safe as a file name and has no extension."""

    name: str
    title: str
    svg: str


def draw_charts(report: Report) -> list[Drawing]:
    """Draw every chart of a report in the order of the HTML report; of time series, those that are open by default.

    Raises MissingCapability when the viewer's charts were not built, or mini-racer is not installed; RunError when they
    take more time or memory than they may.
    """
    v8 = _required("py_mini_racer", "mini-racer")
    engine = v8.MiniRacer()
    try:
        engine.set_hard_memory_limit(_MEMORY_BYTES)
        engine.eval(built("plinth.report", CHARTS, "the charts of reports are not built", "`make build` builds them"))
        # JSON is valid JavaScript.
        document = json.dumps(shown_in_json(report.model_dump_json()))
        drawn: list[dict[str, str]] = json.loads(engine.eval(f"plinthCharts({document})", timeout_sec=_TIMEOUT_S))
    except v8.JSEvalException as error:
        said = str(error).partition("\n")[0]  # then the whole source
        raise RunError(
            f"the charts could not be drawn: {said}", hint="`plinth report --html` draws them in a browser"
        ) from error
    finally:
        engine.close()
    return [
        Drawing(f"{place:02}-{_safe(chart['title'])}", chart["title"], chart["svg"])
        for place, chart in enumerate(drawn, start=1)
    ]


def png_of(drawing: Drawing) -> bytes:
    """Render a drawing as PNG at twice its size. Glyphs that Inter lacks come from the fonts of the machine."""
    resvg = _required("resvg_py", "resvg-py")
    with resources.as_file(resources.files("plinth.report") / _FONT) as font:
        return bytes(
            resvg.svg_to_bytes(
                svg_string=drawing.svg,
                zoom=_PNG_ZOOM,
                font_files=[str(font)],
                font_family="Inter",
                sans_serif_family="Inter",
            )
        )


def _required(module: str, package: str) -> Any:
    require_package(package, "drawing charts outside a browser")
    return import_module(module)


def _safe(title: str) -> str:
    """Reduce an untrusted title to lower-case ASCII letters, digits and hyphens; "chart" if nothing remains."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub("[^a-z0-9]+", "-", plain).strip("-")[:_MOST_LETTERS].rstrip("-") or "chart"
