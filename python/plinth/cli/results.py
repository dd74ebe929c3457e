"""Commands about results: report and verify; and what a run prints at its end."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plinth.cli.console import output_console
from plinth.cli.experiment import AsJson
from plinth.model.analysis import Analysis
from plinth.model.contents import BundleContents
from plinth.model.errors import UsageError
from plinth.model.report import PublishedBeside
from plinth.system.failures import from_os_error
from plinth.system.owners_only import for_owner_only

Html = Annotated[bool, Parameter(name="--html", negative="", help="Write one HTML file that opens offline.")]
Markdown = Annotated[bool, Parameter(name="--markdown", negative="", help="Print Markdown.")]
Csv = Annotated[bool, Parameter(name="--csv", negative="", help="Print CSV, a row for each trial.")]
Output = Annotated[
    Path | None,
    Parameter(name="--output", help="File to write instead. Default for --html: BUNDLE/derived/report.html."),
]


def report(
    bundle: Annotated[Path, Parameter(help="Folder of the bundle.")],
    /,
    *,
    html: Html = False,
    markdown: Markdown = False,
    csv: Csv = False,
    as_json: AsJson = False,
    output: Output = None,
) -> int:
    """Show a bundle's results: a table, unless another form is asked for.

    Works on any machine that has the bundle; nothing but the bundle is read.

      plinth report bundles/ramdisk-20261122-091717
      plinth report bundles/ramdisk-20261122-091717 --html --output report.html
    """
    if sum((html, markdown, csv, as_json)) > 1:
        raise UsageError("give one of --html, --markdown, --csv and --json")
    from plinth import report as rendering
    from plinth.bundle import write_derived
    from plinth.run import analyse_bundle

    contents, analysis = analyse_bundle(bundle)
    built = rendering.build_report(contents, analysis)
    if html:
        page = rendering.render_html(built)
        with for_owner_only(bundle if contents.plan.is_external and output is None else None):
            print(write_derived(bundle, "report.html", page) if output is None else _write(output, page))
        return 0
    if markdown:
        text = rendering.render_markdown(built)
    elif csv:
        text = rendering.render_csv(built)
    elif as_json:
        text = built.model_dump_json(indent=1) + "\n"
    elif output is None:
        _print_table(analysis, built.published)
        return 0
    else:
        raise UsageError("--output goes with --html, --markdown, --csv or --json")
    if output is None:
        print(text, end="")
    else:
        _write(output, text)
    return 0


def verify(bundle: Annotated[Path, Parameter(help="Folder of the bundle.")], /) -> int:
    """Check that a bundle is as its run left it: every file is there and has the sum that the seal says.

    Links, FIFOs, sockets and devices are refused: a run leaves none.

    plinth verify bundles/ramdisk-20261122-091717
    """
    from plinth.bundle import read_manifest, verify_bundle

    read_manifest(bundle)
    print(f"{verify_bundle(bundle)} files are as the run left them")
    return 0


def show_results(contents: BundleContents, analysis: Analysis, as_json: bool) -> None:
    """What a run prints at its end: the table and where the report is, or the analysis as JSON."""
    from plinth import report as rendering
    from plinth.bundle import write_derived

    built = rendering.build_report(contents, analysis)
    bundle = Path(contents.path)
    with for_owner_only(bundle if contents.plan.is_external else None):
        path = write_derived(bundle, "report.html", rendering.render_html(built))
    if as_json:
        print(analysis.model_dump_json(indent=1))
        return
    _print_table(analysis, built.published)
    print(f"\nReport: {path}\nBundle: {contents.path}")


def _print_table(analysis: Analysis, beside: PublishedBeside | None) -> None:
    """The ranked table on stdout, with what was published, as wide as the terminal and coloured where that is wanted."""
    from plinth.report import render_terminal

    console = output_console()
    color = console.is_terminal and not console.no_color
    print(render_terminal(analysis, width=console.width, color=color, beside=beside), end="")


def _write(path: Path, text: str) -> Path:
    """Write to a place that the user has named."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise from_os_error(error, "write the report", path, hint="--output names another place for it") from error
    return path
