"""From a bundle to its analysis."""

from pathlib import Path

from plinth.bundle import read_bundle
from plinth.model.analysis import Analysis
from plinth.model.contents import BundleContents


def analyse_bundle(path: Path) -> tuple[BundleContents, Analysis]:
    """Read the bundle at `path` and analyse it. Raises UsageError when it is no bundle."""
    from plinth.analyse import analyse  # statistics, whose libraries are slow to load

    contents = read_bundle(path)
    return contents, analyse(contents)
