"""The files that an experiment names, read with it: scripts of clients, and the SQL of a dataset."""

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
    """The text of each file that a raw document with a flat matrix names, by its path as written.

    Paths are relative to `folder`; those that the experiment of a bundle names are in the bundle. What cannot be read is added
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
    """Whether `folder` is a bundle. A link for its manifest.json, wherever it leads, does not keep it from being one."""
    return os.path.lexists(folder / "manifest.json")


class _OutsideBundle(Exception):
    """What a bundle's experiment names is not in the bundle."""


def _place(folder: Path, name: str) -> Path:
    """Where the file is; of a bundle's experiment in the bundle, since bundles are shared and any file could be named."""
    if not is_bundle(folder):
        return folder / name
    kept = folder / kept_path(name)
    if not kept.exists() or not kept.resolve().is_relative_to(folder.resolve() / "files"):
        raise _OutsideBundle
    return kept


def _named(document: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """What the keys and their levels name, each with the key that says so."""
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
    """One name, or a list of them; what is neither is reported with the experiment itself."""
    values = value if isinstance(value, list) else [value]
    return [one for one in values if isinstance(one, str)]
