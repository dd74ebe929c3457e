"""The command compare: compares runs of different days or machines."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from plinth.cli.console import output_console
from plinth.cli.gate import FailOn, finding_of_verdict, gated
from plinth.cli.options import AsJson
from plinth.cli.output_file import Junit, check_folder, write_text
from plinth.cli.printing import print_json, print_plain, print_rendered
from plinth.cli.report import Markdown
from plinth.model.choices import Allowance, Metric
from plinth.model.errors import UsageError

if TYPE_CHECKING:
    from plinth.model.run_comparison import RunsComparison
    from plinth.report.junit import Suite


def compare(
    *bundles: Annotated[Path, Parameter(help="Folders of bundles; each is compared with the first.")],
    baseline: Annotated[
        Path | None, Parameter(name="--baseline", help="Compare with the figures in this file instead.")
    ] = None,
    save_baseline: Annotated[
        Path | None, Parameter(name="--save-baseline", help="Write the figures of the one bundle to this file.")
    ] = None,
    metrics: Annotated[
        tuple[Metric, ...],
        Parameter(
            name="--metric",
            help="What is compared. Default: tps, and of open loops latency_p99 too. May be repeated.",
        ),
    ] = (),
    allow: Annotated[
        tuple[Allowance, ...],
        Parameter(
            name="--allow",
            help="Compare although this differs (clients, dataset, driver, load of the machine), or although a run is incomplete. May be repeated.",
        ),
    ] = (),
    fail_on: FailOn = (),
    markdown: Markdown = False,
    as_json: AsJson = False,
    junit: Junit = None,
) -> int:
    """Compare runs: what differs between them, and for each variant that they have in common the ratio and a verdict.

    Bundles that were changed after their run, and runs of different transactions, are never compared; runs under different load of
    other processes only with --allow load. The trials of two runs
    are not interleaved: drift of the machine between them cannot be told from the effect of a change.

      plinth compare bundles/monday bundles/tuesday
      plinth compare --save-baseline baseline.json bundles/main
      plinth compare --baseline baseline.json bundles/change --fail-on regression --junit junit.xml

    Exit code 0 when they were compared, 99 for a finding of --fail-on; for others see `plinth --help`.
    """
    from plinth.tasks.compare import compare_bundles
    from plinth.tasks.compare import save_baseline as save

    if markdown and as_json:
        raise UsageError("give one of --markdown and --json")
    check_folder(junit, "--junit")
    check_folder(save_baseline, "--save-baseline")
    if save_baseline is not None:
        if len(bundles) != 1 or baseline is not None:
            raise UsageError("--save-baseline takes one bundle, and no --baseline")
        save(bundles[0], save_baseline, allow)
        print_plain(str(save_baseline))
        return 0
    if len(bundles) + (baseline is not None) < 2:
        raise UsageError("two runs are needed", hint="name two bundles, or a bundle and --baseline FILE")
    compared = compare_bundles(bundles, baseline, metrics, allow)
    _show(compared, markdown=markdown, as_json=as_json)
    if junit is not None:
        from plinth.report.junit import render_junit

        write_text(junit, render_junit(_suites(compared, fail_on)), "write JUnit XML", "--junit")
    return gated([finding_of_verdict(one.verdict) for one in compared.ratios], fail_on)


def _show(compared: "RunsComparison", *, markdown: bool, as_json: bool) -> None:
    from plinth.report.runs import render_runs_markdown, render_runs_terminal

    if as_json:
        print_json(compared.model_dump_json(indent=1))
    elif markdown:
        print_plain(render_runs_markdown(compared), end="")
    else:
        console = output_console()
        color = console.is_terminal and not console.no_color
        print_rendered(render_runs_terminal(compared, width=console.width, color=color))


def _suites(compared: "RunsComparison", fail_on: FailOn) -> list["Suite"]:
    """Build JUnit suites: a regression fails its case; an inconclusive case is skipped unless --fail-on names it."""
    from plinth.report.junit import Case, Suite, outcome_of

    failing = {"regression", *fail_on}
    return [
        Suite(
            run.place,
            [
                Case(f"{one.variant}: {one.metric}", outcome_of(finding_of_verdict(one.verdict), failing), one.sentence)
                for one in compared.ratios
                if one.run == place
            ],
        )
        for place, run in enumerate(compared.runs)
        if place
    ]
