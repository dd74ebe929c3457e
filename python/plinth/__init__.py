"""Plinth: a laboratory for the storage under PostgreSQL."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from plinth.bundle.opened import OpenedBundle

__version__ = "0.1.0"


def open_bundle(path: "str | Path") -> "OpenedBundle":
    """Read the bundle at `path`, whose trials, series, histograms and samples are then given as arrays or frames.

    The bundle is not changed. Raises PlinthError when it is no bundle, a newer one, or corrupted.

        plinth.open_bundle("bundles/ramdisk-20261122-091717").trials().pandas()
    """
    from plinth.bundle.opened import OpenedBundle  # commands are not to import it

    return OpenedBundle.read(path)
