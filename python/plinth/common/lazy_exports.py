"""Packages whose names are imported when they are asked for (PEP 562)."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of `package`, for its names and the modules of it that define them.

    A command then imports only the modules that it uses. For type checkers the package also imports the names under
    `TYPE_CHECKING`. The function raises AttributeError for any other name, as a module does.
    Raises ValueError for a name that is a module's too: importing that module would replace it in the package.
    """
    if taken := set(homes) & set(homes.values()):
        raise ValueError(f"{package}: {', '.join(taken)}: a module of that name replaces what it exports")

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return find
