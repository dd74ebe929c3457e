"""From bundles and a baseline file to a comparison of runs."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from plinth.bundle import BundleFolder, is_sealed, read_run_figures, verify_bundle, write_run_figures
from plinth.model.choices import Allowance, Metric
from plinth.model.run_comparison import RunsComparison
from plinth.tasks.analysis import analyse_bundle

if TYPE_CHECKING:
    from plinth.analyse.between_runs import Run


def compare_bundles(
    bundles: Sequence[Path | BundleFolder],
    baseline: Path | None,
    metrics: Sequence[Metric],
    allowed: Iterable[Allowance],
) -> RunsComparison:
    """Return every bundle against the baseline file, or without one against the first bundle.

    Raises a PlinthError for what is no bundle, was changed after its run, or must not be compared.
    """
    from plinth.analyse.between_runs import Run, compare_runs

    runs = [_read(bundle) for bundle in bundles]
    if baseline is not None:
        runs.insert(0, Run(str(baseline), read_run_figures(baseline)))
    return compare_runs(runs, metrics, allowed)


def save_baseline(bundle: Path, path: Path, allowed: Iterable[Allowance]) -> None:
    """Write the figures of a bundle to a file that later bundles are compared with."""
    from plinth.analyse.between_runs import require_complete

    run = _read(bundle)
    require_complete(run, allowed)
    write_run_figures(path, run.figures)


def _read(bundle: Path | BundleFolder) -> "Run":
    """Return a bundle's figures. One that is sealed must be as its run left it; one that is not did not finish."""
    from plinth.analyse.between_runs import Run
    from plinth.analyse.run_figures import run_figures

    folder = BundleFolder(bundle) if isinstance(bundle, Path) else bundle
    if is_sealed(folder):
        verify_bundle(folder)
    contents, analysis = analyse_bundle(folder, checked=True)
    figures = run_figures(contents, analysis)
    if not is_sealed(folder) and figures.status == "complete":
        figures = figures.model_copy(update={"status": "running"})  # its seal is gone: nothing says that it is whole
    return Run(str(folder.path), figures)
