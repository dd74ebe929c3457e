"""From a bundle to its analysis."""

from pathlib import Path

from plinth.bundle import BundleFolder, read_bundle
from plinth.model.analysis import Analysis
from plinth.model.contents import BundleContents


def analyse_bundle(bundle: Path | BundleFolder) -> tuple[BundleContents, Analysis]:
    """Read a bundle and analyse it. Raises UsageError when it is no bundle."""
    from plinth.analyse import analyse  # statistics, whose libraries are slow to load

    contents = read_bundle(bundle)
    return contents, analyse(contents)
