"""The commands report and verify, and the output at the end of a run."""

import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from plinth.cli.console import output_console
from plinth.cli.experiment import AsJson
from plinth.cli.objectives import FailOnObjectives, gated_objectives, require_objectives
from plinth.cli.output_file import Junit, check_folder, write_text
from plinth.cli.printing import print_json, print_plain, print_rendered
from plinth.model.errors import UsageError
from plinth.system.directory import for_owner_only

if TYPE_CHECKING:
    from plinth.model.analysis import Analysis
    from plinth.model.contents import BundleContents
    from plinth.model.report import Report

Html = Annotated[bool, Parameter(name="--html", negative="", help="Write one HTML file that opens offline.")]
Markdown = Annotated[bool, Parameter(name="--markdown", negative="", help="Print Markdown.")]
Csv = Annotated[bool, Parameter(name="--csv", negative="", help="Print CSV, a row for each trial.")]
Plots = Annotated[
    bool,
    Parameter(
        name="--plots",
        negative="",
        help="Draw charts below the table, in characters: a sweep's curves, throughput over time, latency percentiles.",
    ),
]
Svg = Annotated[
    Path | None,
    Parameter(name="--svg", help="Folder to write the HTML report's charts to, as SVG; made if it is not there."),
]
Png = Annotated[Path | None, Parameter(name="--png", help="The same, as PNG.")]
Whole = Annotated[
    bool,
    Parameter(
        name="--full",
        negative="",
        help="All that a terminal can show: every warning, bottlenecks, writes, I/O, studies.",
    ),
]
Output = Annotated[
    Path | None,
    Parameter(name="--output", help="File to write instead. Default for --html: BUNDLE/derived/report.html."),
]

_REPORT = ("write the report", "--output")


def report(
    bundle: Annotated[Path, Parameter(help="Folder of the bundle.")],
    /,
    *,
    html: Html = False,
    markdown: Markdown = False,
    csv: Csv = False,
    as_json: AsJson = False,
    full: Whole = False,
    plots: Plots = False,
    svg: Svg = None,
    png: Png = None,
    output: Output = None,
    fail_on: FailOnObjectives = (),
    junit: Junit = None,
) -> int:
    """Show a bundle's results: table, answer, safety and the heaviest warnings on one screen, unless another form is asked for.

    Works on any machine that has the bundle; nothing but the bundle is read.

      plinth report bundles/ramdisk-20261122-091717
      plinth report bundles/ramdisk-20261122-091717 --full
      plinth report bundles/ramdisk-20261122-091717 --plots
      plinth report bundles/ramdisk-20261122-091717 --html --output report.html
      plinth report bundles/ramdisk-20261122-091717 --svg charts --png charts
      plinth report bundles/ramdisk-20261122-091717 --fail-on objective --junit junit.xml

    --svg and --png print the path and the title of each chart that they write; with --json as JSON.

    Exit code 0 when it was shown, 99 for a finding of --fail-on; for others see `plinth --help`.
    """
    for path, option in ((output, "--output"), (junit, "--junit"), (svg, "--svg"), (png, "--png")):
        check_folder(path, option)
    if svg is not None or png is not None:
        if any((html, markdown, csv, full, plots, output)):
            raise UsageError("--svg and --png go with each other and with --json only")
        from plinth.cli.chart_files import write_charts

        results = _results_of(bundle)
        require_objectives(results.contents.plan.experiment.objectives, fail_on, junit)
        write_charts(results.report, results.bundle, svg, png, as_json)
        return gated_objectives(results.analysis, fail_on, junit)
    if sum((html, markdown, csv, as_json, plots)) > 1:
        raise UsageError("give one of --html, --markdown, --csv, --json and --plots")
    if full and any((html, markdown, csv, as_json)):
        raise UsageError("--full goes with the table and --plots; the other forms are whole already")
    if output is not None and not (html or markdown or csv or as_json):
        raise UsageError("--output goes with --html, --markdown, --csv or --json")
    results = _results_of(bundle)
    require_objectives(results.contents.plan.experiment.objectives, fail_on, junit)
    if html:
        print_plain(str(write_html(results, output)))
    elif not (markdown or csv or as_json):
        (show_whole if full else _print_summary)(results, plots)
    else:
        _show_text(_rendered(results, markdown=markdown, csv=csv), output, as_json=as_json)
    return gated_objectives(results.analysis, fail_on, junit)


def _rendered(results: "Results", *, markdown: bool, csv: bool) -> str:
    """Render as Markdown or CSV; as JSON if neither is requested."""
    from plinth import report as rendering

    if markdown:
        return rendering.render_markdown(results.report)
    return rendering.render_csv(results.report) if csv else results.json_text


def _show_text(text: str, output: Path | None, *, as_json: bool) -> None:
    if output is not None:
        write_text(output, text, *_REPORT)
    elif as_json:
        print_json(text, end="")
    else:
        print_plain(text, end="")


def _results_of(bundle: Path) -> "Results":
    from plinth.tasks.analysis import analyse_bundle

    contents, analysis = analyse_bundle(bundle)
    return Results(contents, analysis, bundle)


def verify(bundle: Annotated[Path, Parameter(help="Folder of the bundle.")], /) -> int:
    """Check that a bundle was not changed after its run: every file exists and has the checksum in the seal.

    Links, FIFOs, sockets and devices are refused: a run leaves none.

    plinth verify bundles/ramdisk-20261122-091717
    """
    from plinth.bundle import read_manifest, verify_bundle

    read_manifest(bundle)
    print_plain(f"{verify_bundle(bundle)} files are as the run left them")
    return 0


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
    def has_figures(self) -> bool:
        """Whether anything was measured: a power cut, or a trial, even one that failed by what was found after it."""
        trials = (one.trial for one in self.contents.trials)
        return bool(self.contents.cuts) or any(
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
        return write_text(path, page, *_REPORT)
    with for_owner_only(results.bundle if results.contents.plan.is_external else None):
        return write_derived(results.bundle, "report.html", page)


def show_results(results: Results, as_json: bool, plots: bool) -> None:
    """Print the results at the end of a run: one screen, charts with `plots`, and where the rest is; or JSON."""
    if as_json:
        print_json(results.json_text, end="")
        return
    _print_summary(results, plots)


def _print_summary(results: Results, plots: bool) -> None:
    """Print one screen: the table, the answer, safety, the heaviest warnings, and where the rest is."""
    from plinth.model.units import format_count
    from plinth.report import flashback_texts, outage_texts, render_summary, tpcc_texts

    width, color = _form()
    summary = render_summary(
        results.analysis,
        width=width,
        color=color,
        tpcc=tpcc_texts(results.contents),
        outages=outage_texts(results.contents),
        flashbacks=flashback_texts(results.contents),
    )
    print_rendered(summary.text)
    if plots:
        _print_plots(results)
    also = f" ({format_count(summary.warnings_left, 'warning')})" if summary.warnings_left else ""
    page = f"Report: {results.html_path}\n" if results.html_path.exists() else ""
    print_plain(f"\n{page}More{also}: plinth report {shlex.quote(str(results.bundle))} --full")


def show_whole(results: Results, plots: bool) -> None:
    """Print all that a terminal can show, with published figures and results of the I/O probe."""
    from plinth.report import (
        flashback_texts,
        io_figures,
        link_texts,
        machine_texts,
        outage_texts,
        published_beside,
        render_terminal,
        standby_texts,
        tpcc_texts,
    )

    width, color = _form()
    text = render_terminal(
        results.analysis,
        width=width,
        color=color,
        beside=published_beside(results.contents.plan, results.analysis, results.contents.io),
        probed=io_figures(results.contents.io),
        standbys=standby_texts(results.contents, results.analysis.variants),
        tpcc=tpcc_texts(results.contents),
        links=link_texts(results.contents),
        outages=outage_texts(results.contents),
        flashbacks=flashback_texts(results.contents),
        machines=machine_texts(results.contents),
    )
    print_rendered(text)
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
