"""The bundle: the directory that a run writes, and the only input of analysis and reports."""

from plinth.bundle.authentic import REPEAT_HINT, Authentic, read_authentic
from plinth.bundle.baseline import read_run_figures, write_run_figures
from plinth.bundle.files import BundleFolder
from plinth.bundle.live import LIVE, LivePlace, LiveTail
from plinth.bundle.reader import (
    read_bundle,
    read_cuts,
    read_doctor,
    read_host,
    read_io,
    read_io_errors,
    read_loaded,
    read_manifest,
    read_plan,
    read_probes,
    read_question,
    read_wear,
)
from plinth.bundle.seal import changes_after_run, is_sealed, verify_bundle
from plinth.bundle.writer import BundleWriter, write_derived

__all__ = [
    "LIVE",
    "REPEAT_HINT",
    "Authentic",
    "BundleFolder",
    "BundleWriter",
    "LivePlace",
    "LiveTail",
    "changes_after_run",
    "is_sealed",
    "read_authentic",
    "read_bundle",
    "read_cuts",
    "read_doctor",
    "read_host",
    "read_io",
    "read_io_errors",
    "read_loaded",
    "read_manifest",
    "read_plan",
    "read_probes",
    "read_question",
    "read_run_figures",
    "read_wear",
    "verify_bundle",
    "write_derived",
    "write_run_figures",
]
