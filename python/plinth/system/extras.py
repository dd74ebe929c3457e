"""Packages that only some commands need: the extras of the distribution that install them, as pyproject.toml lists them."""

import importlib.util

from plinth.model.errors import MissingCapability

_EXTRAS = {
    "ray": "fleet",
    "sqlalchemy": "drivers",
    "mini-racer": "plots",
    "resvg-py": "plots",
    "starlette": "serve",
    "uvicorn": "serve",
}
_MODULES = {"mini-racer": "py_mini_racer", "resvg-py": "resvg_py"}


def require_package(package: str, needed_by: str, where: str | None = None) -> None:
    """Raise MissingCapability, which names the extra to install, if the package of an extra is not installed.

    `needed_by` begins the message, as in "plinth serve"; `where` is the key of the experiment, if one asks for it.
    Nothing is imported.
    """
    if importlib.util.find_spec(_MODULES.get(package, package)) is None:
        raise MissingCapability(
            f"{needed_by} needs the Python package {package}, which is not installed",
            where=where,
            hint=f"pip install 'pgplinth[{_EXTRAS[package]}]'",
        )
