"""Rows and keys that are written into the files of a stopped server, page by page, instead of being sent to it.

The tables are there, and empty; so are their keys, unless the server builds these once the rows are there. Which files are
theirs, and what a row looks like in them, the server's catalogs show while it still runs.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plinth.model.dataset import LoadedTables
from plinth.model.errors import MissingCapability, RunError
from plinth.model.generator import Generator, as_json
from plinth.model.progress import Report
from plinth.system.cgroup import processors
from plinth.system.full import DISK_FULL, full_hint
from plinth.workload.bulk import other_messages, watched
from plinth.workload.dataset import DatasetServer
from plinth.workload.partitions import Part

if TYPE_CHECKING:
    import psycopg

PAGES_BYTES_PER_S = 120e6
"""Files, flushed, and vacuum and count, by bytes of tables and indexes, as measured on two cores and a disk that others kept busy."""
RESTART_S = 1.5
"""Of the server, before and after."""

_LAYOUT = {"block_size": "8192", "segment_size": "1GB"}
_KEY_FILLFACTOR = 90
_FILES = """\
SELECT current_setting('data_directory') || '/' || pg_relation_filepath(c.oid),
       current_setting('data_directory') || '/' || pg_relation_filepath(i.indexrelid), i.indkey[0] - 1
FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.oid = %s::regclass"""
# A numeric's type modifier holds its precision, and its scale in the lower 11 bits (numeric.c, make_numeric_typmod).
_COLUMNS = """\
SELECT t.typname, CASE WHEN t.typname IN ('bpchar', 'varchar') THEN a.atttypmod - 4 END,
       CASE WHEN t.typname = 'numeric' AND a.atttypmod >= 4 THEN (a.atttypmod - 4) >> 16 END,
       CASE WHEN t.typname = 'numeric' AND a.atttypmod >= 4 THEN (a.atttypmod - 4) & 2047 END
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s::regclass AND a.attnum > 0 ORDER BY a.attnum"""


def write_pages(
    server: DatasetServer,
    spec: LoadedTables,
    generator: Generator,
    parts: Sequence[Part],
    row_bytes: float,
    report: Report,
) -> None:
    """Stop the server, fill the files of these tables and partitions and of keys that are there, and start it again.

    `row_bytes`: of a row in its table, about.

    What an attempt that was killed has finished stays. Raises RunError, and then the server is left as it is: stopped.
    """
    from plinth._native import PageLoad

    config = _config(server.control, spec, generator, parts)
    with server.stopped():
        result = watched(
            lambda: PageLoad(json.dumps(config)), "write pages", report, row_bytes=row_bytes, before="count pages"
        )
        if result["errors"]:
            raise _failure(result["errors"], f"dataset.{spec.size_key}")


def _config(
    control: "psycopg.Connection", spec: LoadedTables, generator: Generator, parts: Sequence[Part]
) -> dict[str, Any]:
    """Return the configuration for crates/bulk. Raises MissingCapability for a server with an unusual layout of files."""
    for name, usual in _LAYOUT.items():
        if (found := _setting(control, name)) != usual:
            raise MissingCapability(
                f"pages are written for {name} {usual}; this server was built with {found}",
                hint='take dataset.loader "copy"',
            )
    return {
        "generator": as_json(generator),
        "threads": spec.streams or processors(),
        "checksums": _setting(control, "data_checksums") == "on",
        "relations": [_relation(control, part, spec.fillfactor) for part in parts],
    }


def _relation(control: "psycopg.Connection", part: Part, fillfactor: int) -> dict[str, Any]:
    """Return the files of a table or a partition and of its key, and its columns."""
    row = control.execute(_FILES, (part.name,)).fetchone()
    assert row is not None, "the table is there"
    heap, index, column = row
    columns = control.execute(_COLUMNS, (part.name,)).fetchall()
    return {
        "table": part.table,
        "first_row": part.first_row,
        "rows": part.rows,
        "name": part.name,
        "columns": [
            {"type": name, "length": length, "precision": precision, "scale": scale}
            for name, length, precision, scale in columns
        ],
        "heap": heap,
        "fillfactor": fillfactor,
        "index": None if index is None else {"path": index, "column": column, "fillfactor": _KEY_FILLFACTOR},
    }


def _setting(control: "psycopg.Connection", name: str) -> str:
    row = control.execute("SELECT current_setting(%s)", (name,)).fetchone()
    assert row is not None, "a function gives one row"
    return str(row[0])


def _failure(errors: list[dict[str, Any]], size_key: str) -> RunError:
    first = errors[0]
    return RunError(
        f"loading the dataset failed: {first['message']}",
        where=first["path"] or f"pages of {first['table']}",
        hint=full_hint(
            DISK_FULL if first["kind"] == "no_space" else None, first["message"], f"take a smaller {size_key}"
        ),
        details=other_messages(errors),
    )
