"""The results of a bundle as the commands run, resume and report print them."""

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from plinth.cli.console import output_console
from plinth.cli.output_file import write_text
from plinth.cli.printing import print_json, print_plain, print_rendered
from plinth.system.directory import for_owner_only

if TYPE_CHECKING:
    from plinth.model.analysis import Analysis
    from plinth.model.contents import BundleContents
    from plinth.model.report import Report

REPORT_OUTPUT = ("write the report", "--output")


@dataclass(frozen=True)
class Results:
    """A bundle's contents and analysis, and the outputs that are made from them."""

    contents: "BundleContents"
    analysis: "Analysis"
    bundle: Path

    @cached_property
    def report(self) -> "Report":
        """The report, built on first use: its timelines read every sample of the bundle, which the table does not need."""
        from plinth.report import build_report

        return build_report(self.contents, self.analysis)

    @property
    def terminal_report(self) -> "Report":
        """The report if it was built, else one without what only charts show."""
        from plinth.report import build_report

        return self.__dict__.get("report") or build_report(self.contents, self.analysis, charts=False)

    @property
    def has_figures(self) -> bool:
        """Whether anything was measured: a power cut, an error of a storage, or a trial, even one that failed by what was found after it."""
        trials = (one.trial for one in self.contents.trials)
        return bool(self.contents.cuts or self.contents.io_errors) or any(
            trial.status != "failed" or (trial.measured is not None and trial.measured.done > 0) for trial in trials
        )

    @property
    def html_path(self) -> Path:
        """Default path of the HTML report."""
        return self.bundle / "derived" / "report.html"

    @property
    def json_text(self) -> str:
        """Return the report as JSON, as printed by `plinth report --json` and `plinth run --json`."""
        return self.report.model_dump_json(indent=1) + "\n"


def write_html(results: Results, path: Path | None = None) -> Path:
    """Write the HTML report to `path`, by default into the bundle, and return its path."""
    from plinth.bundle import write_derived
    from plinth.report import render_html

    page = render_html(results.report)
    if path is not None:
        return write_text(path, page, *REPORT_OUTPUT)
    with for_owner_only(results.bundle if results.contents.plan.is_external else None):
        return write_derived(results.bundle, "report.html", page)


def show_results(results: Results, as_json: bool, plots: bool) -> None:
    """Print the results at the end of a run: one screen, charts with `plots`, and where the rest is; or JSON."""
    if as_json:
        print_json(results.json_text, end="")
        return
    show_summary(results, plots)


def show_summary(results: Results, plots: bool) -> None:
    """Print one screen: the table, the answer, safety, the heaviest warnings, and where the rest is."""
    from plinth.model.units import format_count
    from plinth.report import render_summary

    width, color = _form()
    summary = render_summary(results.terminal_report, width=width, color=color)
    print_rendered(summary.text)
    if plots:
        _print_plots(results)
    also = f" ({format_count(summary.warnings_left, 'warning')})" if summary.warnings_left else ""
    page = f"Report: {results.html_path}\n" if results.html_path.exists() else ""
    print_plain(f"\n{page}More{also}: plinth report {shlex.quote(str(results.bundle))} --full")


def show_whole(results: Results, plots: bool) -> None:
    """Print all that a terminal can show, with published figures and results of the I/O probe."""
    from plinth.report import render_terminal

    width, color = _form()
    print_rendered(render_terminal(results.terminal_report, width=width, color=color))
    if plots:
        _print_plots(results)


def _print_plots(results: Results) -> None:
    from plinth.report import render_plots

    width, color = _form()
    encoding = output_console().encoding
    print_rendered(f"\n{render_plots(results.contents, results.analysis, width=width, color=color, encoding=encoding)}")


def _form() -> tuple[int, bool]:
    """Width and colour, as the terminal has them."""
    console = output_console()
    return console.width, console.is_terminal and not console.no_color
