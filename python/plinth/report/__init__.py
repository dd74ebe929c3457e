"""Renders a bundle and its analysis as HTML, Markdown, CSV, JSON, and as a table and plots for the terminal.

JSON is the report itself: `build_report(contents, analysis).model_dump_json()`.
"""

from typing import TYPE_CHECKING

from plinth.common.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from plinth.report.build import build_report
    from plinth.report.flashbacks import flashback_texts
    from plinth.report.html import render_html
    from plinth.report.io import io_figures
    from plinth.report.machines import machine_texts
    from plinth.report.markdown import render_markdown
    from plinth.report.network import link_texts
    from plinth.report.new_orders import tpcc_texts
    from plinth.report.outages import outage_texts
    from plinth.report.plots import render_plots
    from plinth.report.published import published_beside
    from plinth.report.standbys import standby_texts
    from plinth.report.summary import render_summary
    from plinth.report.table import render_csv
    from plinth.report.terminal import render_terminal
    from plinth.report.viewer import check_viewer

__getattr__ = lazy_exports(
    __name__,
    {
        "build_report": "build",
        "check_viewer": "viewer",
        "flashback_texts": "flashbacks",
        "io_figures": "io",
        "link_texts": "network",
        "machine_texts": "machines",
        "outage_texts": "outages",
        "published_beside": "published",
        "render_csv": "table",
        "render_html": "html",
        "render_markdown": "markdown",
        "render_plots": "plots",
        "render_summary": "summary",
        "render_terminal": "terminal",
        "standby_texts": "standbys",
        "tpcc_texts": "new_orders",
    },
)
__all__ = [
    "build_report",
    "check_viewer",
    "flashback_texts",
    "io_figures",
    "link_texts",
    "machine_texts",
    "outage_texts",
    "published_beside",
    "render_csv",
    "render_html",
    "render_markdown",
    "render_plots",
    "render_summary",
    "render_terminal",
    "standby_texts",
    "tpcc_texts",
]
