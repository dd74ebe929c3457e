"""Checks names of storages, scripts and baseline levels in the raw document, so that they are reported with all other
problems."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from plinth.common.nearest import nearest
from plinth.experiment.networks import check_network
from plinth.experiment.storages import check_data_directory, check_storages, valid_storages
from plinth.experiment.toml_document import list_of, table_at
from plinth.model.errors import Problem
from plinth.model.experiment import factor_path
from plinth.model.level import same_level
from plinth.model.server_spec import DEFAULT_TABLESPACE


def check_references(document: dict[str, Any]) -> list[Problem]:
    """Return problems of undefined names in a raw document with a flat matrix."""
    storages = table_at(document, "storage")
    server = table_at(document, "server")
    matrix = table_at(document, "matrix")
    problems = []
    is_external = "connection" in server or "server.connection" in matrix
    if not is_external and not storages:
        problems.append(
            Problem(
                "a managed server needs a storage",
                path=["storage"],
                hint='add [storage.disk] with kind = "directory", or [server] connection for a server of your own',
            )
        )
    if is_external and storages:
        problems.append(
            Problem(
                "an external server has its own storage; [storage.NAME] is for managed servers",
                path=["storage"],
                hint="leave out the storages, or the connection",
            )
        )
    tablespaces = table_at(server, "tablespaces")
    standbys = table_at(server, "standby")
    paths = ["server.storage", "server.wal_storage", *(f"server.tablespaces.{name}" for name in tablespaces)]
    paths += [f"server.standby.{name}.{key}" for name in standbys for key in ("storage", "wal_storage")]
    valid = valid_storages(storages)
    problems += check_storages(valid, storages)
    if storages:
        problems += _check_names("storage", paths, storages, document, matrix)
        for name, path in _named(paths, document, matrix):
            problems += check_data_directory(name, path, valid)
    if not is_external:
        within = ["dataset.tablespace", "dataset.index_tablespace"]
        problems += _check_names("tablespace", within, [*tablespaces, DEFAULT_TABLESPACE], document, matrix)
    else:
        problems += _check_loader(document, matrix) + _check_load_settings(document, matrix) + _check_stops(document)
    return [
        *problems,
        *_check_baseline(document, matrix),
        *_check_compare(document, matrix),
        *check_objectives(document, matrix, storages),
        *check_network(document, matrix),
    ]


def _check_loader(document: dict[str, Any], matrix: dict[str, Any]) -> list[Problem]:
    """Check the loader, which an external server restricts."""
    return [
        Problem(
            "loader pages writes into the files of a server that is stopped for it; an external server is neither ours to "
            "stop nor to write to",
            path=path,
            hint='loader = "copy", or a managed server: [storage.NAME] instead of server.connection',
        )
        for name, path in _named(["dataset.loader"], document, matrix)
        if name == "pages"
    ]


def _check_load_settings(document: dict[str, Any], matrix: dict[str, Any]) -> list[Problem]:
    """Check that an external server is not given settings."""
    key = ("dataset", "load_settings")
    written = [key] if table_at(document, *key) else []
    written += [("matrix", factor) for factor in matrix if factor_path(factor)[:2] == key]
    return [
        Problem("load_settings: not with connection: Plinth does not change a server that it did not start", path=path)
        for path in written
    ]


def _check_stops(document: dict[str, Any]) -> list[Problem]:
    """Check that nothing requires an external server to be stopped."""
    measure = table_at(document, "measure")
    asked = {"cache": measure.get("cache") == "cold", "restore": measure.get("restore", "none") != "none"}
    return [
        Problem(
            f"{key}: got {measure[key]!r}; the server is stopped for it, and an external server is not ours to stop",
            path=["measure", key],
            hint="leave it out, or take a managed server",
        )
        for key, stops in asked.items()
        if stops
    ]


def _check_names(
    what: str, keys: Iterable[str], allowed: Collection[str], document: dict[str, Any], matrix: dict[str, Any]
) -> list[Problem]:
    """Return problems of names at dotted `keys` that are not in `allowed`."""
    return [
        Problem(f"{what} {name!r} is not one of: {', '.join(allowed)}", path=path, hint=nearest(name, allowed))
        for name, path in _named(keys, document, matrix)
        if name not in allowed
    ]


def _named(
    keys: Iterable[str], document: dict[str, Any], matrix: dict[str, Any]
) -> Iterator[tuple[str, Sequence[str | int]]]:
    """Yield the value at dotted `keys` and every level of a factor that sets it, each with its path."""
    for key in keys:
        *parents, last = factor_path(key)
        written = table_at(document, *parents).get(last)
        if isinstance(written, str):
            yield written, [*parents, last]
        for factor, levels in matrix.items():
            if factor_path(factor) == (*parents, last):
                yield from ((level, ["matrix", factor]) for level in list_of(levels) if isinstance(level, str))


def _check_baseline(document: dict[str, Any], matrix: dict[str, Any]) -> Iterator[Problem]:
    for factor, level in table_at(document, "measure", "baseline").items():
        path: list[str | int] = ["measure", "baseline", factor]
        if factor not in matrix:
            yield _no_factor(factor, matrix, path)
        elif isinstance(levels := matrix[factor], list) and level not in levels:
            yield _no_level(level, levels, path)


def _no_factor(factor: str, matrix: dict[str, Any], path: list[str | int], hint: str | None = None) -> Problem:
    factors = ", ".join(matrix) or "none, as there is no [matrix]"
    message = f"{factor!r} is not a factor; allowed: {factors}"
    return Problem(message, path=path, hint=nearest(factor, matrix) or hint)


def _no_level(level: object, levels: list[Any], path: list[str | int]) -> Problem:
    shown = ", ".join(repr(item) for item in levels)
    return Problem(f"got {level!r}; allowed: {shown}", path=path, hint=nearest(str(level), map(str, levels)))


def _check_compare(document: dict[str, Any], matrix: dict[str, Any]) -> list[Problem]:
    """Check that compared factors exist and have more than one level."""
    asked = table_at(document, "measure").get("compare", [])
    varied = {factor: factor_path(factor) for factor, levels in matrix.items() if len(list_of(levels)) > 1}
    allowed = ", ".join(varied) or "none, as no factor has more than one level"
    return [
        Problem(
            f"{name!r} has one level only; allowed: {allowed}"
            if any(factor_path(name) == factor_path(factor) for factor in matrix)
            else f"{name!r} is not a factor; allowed: {allowed}",
            path=["measure", "compare"],
            hint=nearest(name, varied) or "compare names factors of [matrix], whose levels are then compared",
        )
        for name in ([asked] if isinstance(asked, str) else list_of(asked))
        if isinstance(name, str) and factor_path(name) not in varied.values()
    ]


def check_objectives(document: dict[str, Any], matrix: dict[str, Any], storages: dict[str, Any]) -> list[Problem]:
    """Return problems of names and levels that do not exist; other types are reported by the validation."""
    return [
        problem
        for place, objective in enumerate(list_of(document.get("objective")))
        if isinstance(objective, dict)
        for problem in (*_where(objective, matrix, place), *_prices(objective, storages, place))
    ]


def _where(objective: dict[str, Any], matrix: dict[str, Any], place: int) -> Iterator[Problem]:
    for factor, wanted in table_at(objective, "where").items():
        path: list[str | int] = ["objective", place, "where", factor]
        levels = matrix.get(factor)
        if levels is None:
            hint = 'a dotted name needs quotes here, as in where = { "workload.clients" = 16 }'
            yield _no_factor(factor, matrix, path, hint)
        elif isinstance(levels, list):
            for level in [wanted] if _is_one_of(wanted, levels) or not isinstance(wanted, list) else wanted:
                if not _is_one_of(level, levels):
                    yield _no_level(level, levels, path)


def _is_one_of(level: object, levels: list[Any]) -> bool:
    return any(same_level(level, one) for one in levels)


def _prices(objective: dict[str, Any], storages: dict[str, Any], place: int) -> Iterator[Problem]:
    for storage in table_at(objective, "price_per_hour"):
        if storage not in storages:
            allowed = ", ".join(storages) or "none, as there is no [storage.NAME]; give one number"
            path: list[str | int] = ["objective", place, "price_per_hour", storage]
            yield Problem(f"storage {storage!r} is not one of: {allowed}", path=path, hint=nearest(storage, storages))
