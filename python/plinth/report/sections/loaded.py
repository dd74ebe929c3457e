"""The dataset of each cluster: time to load, rows, sizes, and height of the key's index."""

from plinth.model.figures import NOT_AVAILABLE, number
from plinth.model.report import Report
from plinth.model.units import format_duration, format_size
from plinth.report.sections.section import Section, Table

_HEADS = (
    "Cluster",
    "Loaded in",
    "Table",
    "Rows",
    "Size",
    "Indexes",
    "Levels above leaves",
    "Pages per lookup",
)


def _blocks(report: Report) -> list[Table]:
    rows = [
        (
            loaded.cluster,
            format_duration(loaded.load_s),
            table.name,
            number(table.rows),
            format_size(table.size_bytes),
            "; ".join(f"{index.name} {format_size(index.size_bytes)}" for index in table.indexes),
            ", ".join(NOT_AVAILABLE if index.levels is None else str(index.levels) for index in table.indexes),
            ", ".join(str(index.lookup_buffers) for index in table.indexes if index.lookup_buffers is not None),
        )
        for loaded in report.datasets
        for table in loaded.tables
    ]
    return [Table(_HEADS, rows)]


LOADED = Section(
    id="loaded",
    title="Loaded datasets",
    note="Time to load each cluster, and the size of what was loaded.",
    blocks=_blocks,
)
