"""Renders a bundle and its analysis as HTML, Markdown, CSV, JSON, and as a table and plots for the terminal.

JSON is the report itself: `build_report(contents, analysis).model_dump_json()`.
"""

from typing import TYPE_CHECKING

from plinth.common.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from plinth.report.build import build_report
    from plinth.report.csv_form import render_csv, render_section_csv
    from plinth.report.html import check_viewer, render_html
    from plinth.report.markdown import render_markdown
    from plinth.report.plots import render_plots
    from plinth.report.summary import render_summary
    from plinth.report.terminal import render_terminal

__getattr__ = lazy_exports(
    __name__,
    {
        "build_report": "build",
        "check_viewer": "html",
        "render_csv": "csv_form",
        "render_html": "html",
        "render_markdown": "markdown",
        "render_plots": "plots",
        "render_section_csv": "csv_form",
        "render_summary": "summary",
        "render_terminal": "terminal",
    },
)
__all__ = [
    "build_report",
    "check_viewer",
    "render_csv",
    "render_html",
    "render_markdown",
    "render_plots",
    "render_section_csv",
    "render_summary",
    "render_terminal",
]
