"""Checks names of storages, scripts and baseline levels in the raw document, so that they are reported with all other
problems."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from plinth.common.nearest import nearest
from plinth.experiment.storages import check_data_directory, check_storages, valid_storages
from plinth.experiment.toml_document import list_of, table_at
from plinth.model.errors import Problem
from plinth.model.experiment import factor_path
from plinth.model.level import same_level
from plinth.model.network import directions_of
from plinth.model.server_spec import DEFAULT_TABLESPACE
from plinth.model.standby import PRIMARY
from plinth.model.storage import StorageSpec
from plinth.model.storage_graph import mounted_storages

_NETWORK = "network"


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
        *_check_prices(document, matrix, valid, paths),
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
        for problem in (
            *_where(objective, matrix, place),
            *_prices(objective, storages, place),
            *_price_of_cost(document, objective, place),
        )
    ]


def _price_of_cost(document: dict[str, Any], objective: dict[str, Any], place: int) -> Iterator[Problem]:
    """Check that a cost has its price from one place."""
    if objective.get("metric") != "cost_per_million_transactions":
        return
    path: list[str | int] = ["objective", place]
    own, prices = objective.get("price_per_hour"), document.get("prices")
    if prices is None and (own is None or own == {}):
        message = "price_per_hour is missing: a cost needs a price, such as price_per_hour = 0.35"
        yield Problem(message, path=path, hint="or [prices], by server and storage")
    elif prices is not None and own is not None:
        message = "price_per_hour: not with [prices], which has the price of every variant"
        yield Problem(message, path=[*path, "price_per_hour"], hint="leave one of them out")


def _with_layers(storages: dict[str, StorageSpec], name: str) -> set[str]:
    """Return a storage and all that it is built on, as far as they are valid: the names of layers may lead anywhere."""
    found: set[str] = set()
    left = [name]
    while left:
        one = left.pop()
        if one in storages and one not in found:
            found.add(one)
            left += [reference.name for reference in storages[one].references()]
    return found


def _check_prices(
    document: dict[str, Any], matrix: dict[str, Any], storages: dict[str, StorageSpec], keys: Iterable[str]
) -> list[Problem]:
    """Check that [prices] has one for each storage that servers are on, or what it is built on, and for no other."""
    priced = table_at(document, "prices", "storage")
    problems: list[Problem] = []
    for name in priced:
        of_level = any(
            factor.startswith("storage.") and name.startswith(f"{factor.split('.')[1]}-") for factor in matrix
        )
        if name not in storages and not of_level:
            allowed = ", ".join(storages) or "none, as there is no [storage.NAME]"
            path = ["prices", "storage", name]
            problems.append(
                Problem(f"storage {name!r} is not one of: {allowed}", path=path, hint=nearest(name, storages))
            )
    if not priced:
        return problems
    default = next(iter(mounted_storages(storages)), None)
    named = [name for name, _ in _named(keys, document, matrix)] or ([default] if default else [])
    for name in dict.fromkeys(named):
        if name not in storages:
            continue  # reported as such
        below = _with_layers(storages, name)
        if not any(one in priced or any(other.startswith(f"{one}-") for other in priced) for one in below):
            problems.append(
                Problem(
                    f"there is no price for storage {name}, which servers are on",
                    path=["prices", "storage"],
                    hint=f"prices.storage.{name} = {{ per_hour = 0 }} if it costs nothing on top of the server",
                )
            )
    return problems


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


def check_network(document: dict[str, Any], matrix: dict[str, Any]) -> list[Problem]:
    """Return the problems of the network of a raw document with a flat matrix."""
    asked = list(_named_links(document, matrix))
    actions = list(_changed_links(document))
    if not asked:
        return [
            Problem("there is no [network] that could be changed", path=path, hint="add [network]")
            for path, _ in actions
        ]
    server = table_at(document, "server")
    nodes = [PRIMARY, *table_at(server, "standby")]
    if len(nodes) == 1:
        hint = "add [server.standby.NAME]; clients reach the primary by its socket"
        return [Problem("there are no standbys that a network could join to the primary", path=asked[0][0], hint=hint)]
    problems = [
        problem for path, link in (*asked, *actions) if link and (problem := _problem_of_link(link, path, nodes))
    ]
    if server.get("listen") == "tcp" or "server.listen" in matrix:
        hint = 'leave it out: listen = "unix"'
        path = ["matrix", "server.listen"] if "server.listen" in matrix else ["server", "listen"]
        message = "with [network] servers are in network namespaces, where clients reach them by their sockets only"
        problems.append(Problem(message, path=path, hint=hint))
    return problems


def _named_links(document: dict[str, Any], matrix: dict[str, Any]) -> Iterator[tuple[list[str | int], str | None]]:
    """Yield where a network is asked for, each with the link that is named there."""
    table = document.get(_NETWORK)
    if table is not None:
        yield [_NETWORK], None
        for name in table_at(table, "link"):
            yield [_NETWORK, "link", name], name
    for factor in matrix:
        first, *rest = factor_path(factor)
        if first == _NETWORK:
            yield ["matrix", factor], rest[1] if rest[:1] == ["link"] and len(rest) > 1 else None


def _changed_links(document: dict[str, Any]) -> Iterator[tuple[list[str | int], str | None]]:
    for number, action in enumerate(list_of(table_at(document, "measure").get("action"))):
        if isinstance(action, dict) and action.get("do") == _NETWORK:
            link = action.get("link")
            yield ["measure", "action", number], link if isinstance(link, str) else None


def _problem_of_link(link: str, path: list[str | int], nodes: list[str]) -> Problem | None:
    try:
        directions = directions_of(link)
    except ValueError as error:
        return Problem(str(error), path=path)
    unknown = next((node for node in directions[0] if node not in nodes), None)
    if unknown is None:
        return None
    message = f"{link}: {unknown!r} is not one of: {', '.join(nodes)}"
    return Problem(message, path=path, hint=nearest(unknown, nodes))
