"""Bundles on disk with the trials of contents that a test has made up."""

from pathlib import Path

from plinth.bundle import BundleWriter
from plinth.bundle.tables import Tables
from plinth.model.contents import BundleContents
from sampled import rows_of


def write_bundle(path: Path, contents: BundleContents) -> Path:
    """Write a complete, sealed bundle; returns its folder."""
    writer = BundleWriter.create(path, contents.plan, "spec = 1\n", contents.manifest.plinth_version)
    for facts in contents.storages.values():
        writer.write_storage(facts)
    for variant, server in contents.servers.items():
        writer.write_server(variant, server)
    for each in contents.trials:
        folder = writer.write_trial(each.trial, None, rows_of(each.read_samples()), each.events)
        name = f"trials/{folder.name}"
        tables = Tables(writer.folder)
        tables.write_series(f"{name}/series.parquet", each.series)
        tables.write_histograms(f"{name}/hist.parquet", each.histograms)
    writer.finish("complete")
    return path
