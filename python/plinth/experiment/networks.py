"""Checks that [network], its factors and the actions that change it name links between servers that there are."""

from collections.abc import Iterator
from typing import Any

from plinth.common.nearest import nearest
from plinth.experiment.toml_document import list_of, table_at
from plinth.model.errors import Problem
from plinth.model.experiment import factor_path
from plinth.model.network import directions_of
from plinth.model.standby import PRIMARY

_KEY = "network"


def check_network(document: dict[str, Any], matrix: dict[str, Any]) -> list[Problem]:
    """Return the problems of the network of a raw document with a flat matrix."""
    asked = list(_asked(document, matrix))
    actions = list(_actions(document))
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
    problems = [problem for path, link in (*asked, *actions) if link and (problem := _of_link(link, path, nodes))]
    if server.get("listen") == "tcp" or "server.listen" in matrix:
        hint = 'leave it out: listen = "unix"'
        path = ["matrix", "server.listen"] if "server.listen" in matrix else ["server", "listen"]
        message = "with [network] servers are in network namespaces, where clients reach them by their sockets only"
        problems.append(Problem(message, path=path, hint=hint))
    return problems


def _asked(document: dict[str, Any], matrix: dict[str, Any]) -> Iterator[tuple[list[str | int], str | None]]:
    """Yield where a network is asked for, each with the link that is named there."""
    table = document.get(_KEY)
    if table is not None:
        yield [_KEY], None
        for name in table_at(table, "link"):
            yield [_KEY, "link", name], name
    for factor in matrix:
        first, *rest = factor_path(factor)
        if first == _KEY:
            yield ["matrix", factor], rest[1] if rest[:1] == ["link"] and len(rest) > 1 else None


def _actions(document: dict[str, Any]) -> Iterator[tuple[list[str | int], str | None]]:
    for number, action in enumerate(list_of(table_at(document, "measure").get("action"))):
        if isinstance(action, dict) and action.get("do") == _KEY:
            link = action.get("link")
            yield ["measure", "action", number], link if isinstance(link, str) else None


def _of_link(link: str, path: list[str | int], nodes: list[str]) -> Problem | None:
    try:
        directions = directions_of(link)
    except ValueError as error:
        return Problem(str(error), path=path)
    unknown = next((node for node in directions[0] if node not in nodes), None)
    if unknown is None:
        return None
    message = f"{link}: {unknown!r} is not one of: {', '.join(nodes)}"
    return Problem(message, path=path, hint=nearest(unknown, nodes))
