"""The loaded dataset: the time it took, the sizes of its tables and keys, and the depth of a lookup."""

from pydantic import Field

from plinth.model.base import Frozen, Gap

LOADED_VERSION = 1


class LoadedIndex(Frozen):
    """An index as it was once loaded."""

    name: str
    size_bytes: int
    levels: int | None = Field(description="Of a B-tree, above its leaves; None where it was not read.")
    lookup_buffers: int | None = Field(
        description="Of a primary key: pages that reading one row by it touches, the row's own among them."
    )


class LoadedTable(Frozen):
    """A table as it was once loaded, without its indexes."""

    name: str
    rows: int = Field(description="By the server's estimate, after ANALYZE.")
    size_bytes: int
    indexes: tuple[LoadedIndex, ...]


class LoadTask(Frozen):
    """A part of loading, such as its rows, or its keys and vacuum."""

    name: str
    duration_s: float


class LoadedDataset(Frozen):
    """The dataset of one cluster, right after it was loaded."""

    schema_version: int = LOADED_VERSION
    cluster: str
    kind: str
    load_s: float
    tasks: tuple[LoadTask, ...] = Field(description="In their order; what lies between them is in `load_s` only.")
    tables: tuple[LoadedTable, ...] = Field(description="The largest first.")
    gaps: tuple[Gap, ...] = ()
