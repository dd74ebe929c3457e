"""What stands here for an object of another host: its methods are made from the table of those that a host may be asked for."""

from abc import update_abstractmethods
from collections.abc import Callable, Collection
from inspect import signature
from operator import attrgetter
from typing import Any

from plinth.common.complete import complete
from plinth.model.progress import Report
from plinth.run.hosts.calls import SUPPLIED, Method
from plinth.run.hosts.link import HostLink
from plinth.run.hosts.methods import METHODS


class RemoteObject:
    """Stands for the object that the agent of `link` knows as `on`, such as ("storage", "disk")."""

    def __init__(self, link: HostLink, on: tuple[str, ...]) -> None:
        self._link = link
        self._on = on

    def _ask(self, method: str, report: Report | None = None, **arguments: Any) -> Any:
        return self._link.call(self._on, method, arguments, report=report)


def remote(kind: str, by_twin: Collection[str] = ()) -> Callable[[type], Any]:
    """Return a decorator that gives a RemoteObject those methods of its protocols that it does not write itself: each asks the host, by
    METHODS[kind], or, of `by_twin`, the object `twin`.

    The import of its module raises TypeError for a method that is in none of them. A type checker would miss the methods that are made
    here, so to it the class can be anything.
    """

    def made(cls: Any) -> Any:
        for name in cls.__abstractmethods__:
            if name in by_twin:
                setattr(cls, name, property(attrgetter(f"twin.{name}")))
            elif method := METHODS[kind].get(name):
                setattr(cls, name, _asking(method, getattr(cls, name)))
        return complete(update_abstractmethods(cls))

    return made


def _asking(method: Method, declared: Callable[..., Any]) -> Callable[..., Any]:
    parameters = signature(declared)

    def ask(self: RemoteObject, *positional: Any, **named: Any) -> Any:
        given = parameters.bind(self, *positional, **named).arguments
        report = given.get("report")
        sent = {name: value for name, value in list(given.items())[1:] if name not in SUPPLIED}
        return self._ask(method.name, report, **sent)

    ask.__name__, ask.__doc__ = method.name, declared.__doc__
    return ask
