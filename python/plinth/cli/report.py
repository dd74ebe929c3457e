"""The command report."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from plinth.cli.gate import FailOnObjectives, gated_objectives, require_objectives
from plinth.cli.options import AsJson, Bundle
from plinth.cli.output_file import Junit, check_folder, write_text
from plinth.cli.printing import print_json, print_plain
from plinth.cli.results import REPORT_OUTPUT, Results, show_summary, show_whole, write_html
from plinth.model.errors import RunError, UsageError
from plinth.system.failures import from_os_error

if TYPE_CHECKING:
    from plinth.model.report import Report


Html = Annotated[bool, Parameter(name="--html", help="Write one HTML file that opens offline.")]
Markdown = Annotated[bool, Parameter(name="--markdown", help="Print Markdown.")]
Csv = Annotated[bool, Parameter(name="--csv", help="Print CSV, a row for each trial.")]
Section = Annotated[
    str | None,
    Parameter(
        name="--section",
        help="With --csv: the tables of this section instead, such as recoveries; any other word lists the sections that have one.",
    ),
]
Plots = Annotated[
    bool,
    Parameter(
        name="--plots",
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
        help="All that a terminal can show: every warning, bottlenecks, writes, I/O, studies.",
    ),
]
Output = Annotated[
    Path | None,
    Parameter(name="--output", help="File to write instead. Default for --html: BUNDLE/derived/report.html."),
]


def report(
    bundle: Bundle,
    /,
    *,
    html: Html = False,
    markdown: Markdown = False,
    csv: Csv = False,
    section: Section = None,
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
      plinth report bundles/ramdisk-20261122-091717 --csv --section bottlenecks
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
    if section is not None and not csv:
        raise UsageError("--section goes with --csv")
    results = _results_of(bundle)
    require_objectives(results.contents.plan.experiment.objectives, fail_on, junit)
    if html:
        print_plain(str(write_html(results, output)))
    elif not (markdown or csv or as_json):
        (show_whole if full else show_summary)(results, plots)
    else:
        _show_text(_rendered(results, markdown=markdown, csv=csv, section=section), output, as_json=as_json)
    return gated_objectives(results.analysis, fail_on, junit)


def _rendered(results: "Results", *, markdown: bool, csv: bool, section: str | None) -> str:
    """Render as Markdown or CSV, of one section if it is given; as JSON if neither is requested."""
    from plinth import report as rendering

    if markdown:
        return rendering.render_markdown(results.report)
    if section is not None:
        return rendering.render_section_csv(results.report, section)
    return rendering.render_csv(results.report) if csv else results.json_text


def _show_text(text: str, output: Path | None, *, as_json: bool) -> None:
    if output is not None:
        write_text(output, text, *REPORT_OUTPUT)
    elif as_json:
        print_json(text, end="")
    else:
        print_plain(text, end="")


def _results_of(bundle: Path) -> "Results":
    from plinth.tasks.analysis import analyse_bundle

    contents, analysis = analyse_bundle(bundle)
    return Results(contents, analysis, bundle)


def write_charts(report: "Report", bundle: Path, svg: Path | None, png: Path | None, as_json: bool) -> None:
    """Write every chart of the report of `bundle` to the given directories, and print the path and title of each.

    Files are written under a temporary name and renamed, so that a symbolic link of that name is replaced, not followed.
    Raises RunError when there is nothing to draw.
    """
    from plinth.bundle.files import BundleFolder
    from plinth.report.charts import draw_charts, png_of

    folders = {
        form: _created_folder(folder, form) for form, folder in (("svg", svg), ("png", png)) if folder is not None
    }
    drawings = draw_charts(report)
    if not drawings:
        raise RunError(
            "there is no chart to write: no trial of this run was measured",
            where=str(bundle),
            hint="`plinth report BUNDLE` says what failed; `plinth resume BUNDLE` runs the trials that are missing",
        )
    index: list[dict[str, str]] = []
    for form, folder in folders.items():
        opened = BundleFolder(folder)
        for drawing in drawings:
            name = f"{drawing.name}.{form}"
            opened.write_durably(name, drawing.svg if form == "svg" else png_of(drawing))
            index.append({"file": str(folder / name), "title": drawing.title})
    if as_json:
        print_json(json.dumps(index, indent=1, ensure_ascii=False))
        return
    for entry in index:
        print_plain(f"{entry['file']}: {entry['title']}")


def _created_folder(folder: Path, form: str) -> Path:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        hint = f"--{form} names another folder for them"
        raise from_os_error(error, "write the charts", folder, hint=hint) from error
    return folder
