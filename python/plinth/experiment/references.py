"""Names that must point at something: storages, scripts, baseline levels. Read off the raw document, so that
they are reported beside whatever else is wrong."""

from typing import Any

from plinth.model.errors import Problem
from plinth.model.nearest import nearest


def check_references(document: dict[str, Any]) -> list[Problem]:
    """What points at nothing in a raw document whose matrix is flat."""
    storages = _table(document, "storage")
    server = _table(document, "server")
    matrix = _table(document, "matrix")
    problems = []
    if "connection" not in server and not storages:
        problems.append(
            Problem(
                "a managed server needs a storage",
                path=["storage"],
                hint='add [storage.disk] with kind = "directory", or [server] connection for a server of your own',
            )
        )
    if "connection" in server and storages:
        problems.append(
            Problem(
                "an external server stands on storage of its own; [storage.NAME] is for managed servers",
                path=["storage"],
                hint="leave out the storages, or the connection",
            )
        )
    named = [(server.get("storage"), ["server", "storage"])]
    levels = matrix.get("storage")
    named += [(level, ["matrix", "storage"]) for level in (levels if isinstance(levels, list) else [])]
    for name, path in named:
        if isinstance(name, str) and storages and name not in storages:
            problems.append(
                Problem(
                    f"storage {name!r} is not one of: {', '.join(storages)}", path=path, hint=nearest(name, storages)
                )
            )
    return problems + _check_baseline(document, matrix)


def _check_baseline(document: dict[str, Any], matrix: dict[str, Any]) -> list[Problem]:
    problems = []
    for factor, level in _table(_table(document, "measure"), "baseline").items():
        path = ["measure", "baseline", factor]
        levels = matrix.get(factor)
        if levels is None:
            factors = ", ".join(matrix) or "none, as there is no [matrix]"
            problems.append(
                Problem(f"{factor!r} is not a factor; allowed: {factors}", path=path, hint=nearest(factor, matrix))
            )
        elif isinstance(levels, list) and level not in levels:
            shown = ", ".join(repr(item) for item in levels)
            problems.append(
                Problem(
                    f"got {level!r}; allowed: {shown}", path=path, hint=nearest(str(level), [str(x) for x in levels])
                )
            )
    return problems


def _table(document: dict[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}
