"""Renders a bundle and its analysis as HTML, Markdown, CSV, JSON, and as a table and plots for the terminal.

JSON is the report itself: `build_report(contents, analysis).model_dump_json()`.
"""

from plinth.report.build import build_report
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
from plinth.report.table import render_csv
from plinth.report.terminal import render_terminal

__all__ = [
    "build_report",
    "io_figures",
    "link_texts",
    "machine_texts",
    "outage_texts",
    "published_beside",
    "render_csv",
    "render_html",
    "render_markdown",
    "render_plots",
    "render_terminal",
    "standby_texts",
    "tpcc_texts",
]
