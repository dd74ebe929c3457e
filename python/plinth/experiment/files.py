"""Reads the files that an experiment names: scripts of clients, and the SQL of a dataset."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plinth.experiment.text_files import UnreadableFile, read_text
from plinth.model.dataset import SqlDataset
from plinth.model.errors import Problem
from plinth.model.files import weighted
from plinth.model.plan import kept_path

_KEYS = ("workload.script", *(f"dataset.{key}" for key in SqlDataset.file_keys))


def read_files(document: dict[str, Any], folder: Path, problems: list[Problem]) -> dict[str, str]:
    """Return the text of each file that a raw document with a flat matrix names, by its path as written.

    Paths are relative to `folder`; those that the experiment of a bundle names are in the bundle. Files that cannot be read are added
    to `problems`.
    """
    files: dict[str, str] = {}
    for name, path in _named(document):
        try:
            files[name] = read_text(_place(folder, name))
        except _OutsideBundle:
            problems.append(
                Problem(
                    f"the bundle does not hold the file {name!r}",
                    path=path,
                    hint="the experiment of a bundle reads nothing but what is in its folder files/",
                )
            )
        except UnreadableFile as error:
            problems.append(
                Problem(
                    f"cannot read the file {name!r}: {error}",
                    path=path,
                    hint="the path is relative to the experiment file",
                )
            )
    return files


def is_bundle(folder: Path) -> bool:
    """Return whether `folder` is a bundle, also if its manifest.json is a symbolic link."""
    return os.path.lexists(folder / "manifest.json")


class _OutsideBundle(Exception):
    """The experiment of a bundle names a file outside of it."""


def _place(folder: Path, name: str) -> Path:
    """Return the path of a file. The experiment of a bundle may only name files in it, since bundles may come from others."""
    if not is_bundle(folder):
        return folder / name
    kept = folder / kept_path(name)
    if not kept.exists() or not kept.resolve().is_relative_to(folder.resolve() / "files"):
        raise _OutsideBundle
    return kept


def _named(document: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield each key with the files that it or its levels name."""
    matrix = document.get("matrix")
    for key in _KEYS:
        table, name = key.split(".")
        if table == "dataset" and _value(document.get(table), "kind") != "sql":
            continue
        path_of = (lambda script: weighted(script)[0]) if table == "workload" else str
        yield from ((path_of(file), [table, name]) for file in _texts(_value(document.get(table), name)))
        levels = _value(matrix, key)
        for level in levels if isinstance(levels, list) else []:
            yield from ((path_of(file), ["matrix", key]) for file in _texts(level))


def _value(table: Any, key: str) -> Any:
    return table.get(key) if isinstance(table, dict) else None


def _texts(value: Any) -> list[str]:
    """Return one name or a list of names as a list; other values are reported by the validation of the experiment."""
    values = value if isinstance(value, list) else [value]
    return [one for one in values if isinstance(one, str)]
