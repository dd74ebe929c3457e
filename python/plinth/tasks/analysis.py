"""From a bundle to its analysis."""

from dataclasses import replace
from pathlib import Path

from plinth.bundle import BundleFolder, changes_after_run, read_bundle
from plinth.model.analysis import Analysis
from plinth.model.contents import BundleContents


def analyse_bundle(bundle: Path | BundleFolder, *, checked: bool = False) -> tuple[BundleContents, Analysis]:
    """Read a bundle and analyse it; say what was changed after its run, unless it was `checked`. Raises UsageError when it is no bundle."""
    from plinth.analyse import analyse  # statistics, whose libraries are slow to load

    contents = read_bundle(bundle)
    if not checked:
        contents = replace(contents, altered=changes_after_run(bundle))
    return contents, analyse(contents)
