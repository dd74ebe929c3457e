"""libpq's parser of connection strings, by its C interface.

It is the libpq that psycopg brings. Importing psycopg for it would take a tenth of a second, which the first transaction of
`plinth bench` would wait for. Only what reads nothing but its arguments is here; connections are in system/libpq.py.
Functions: https://www.postgresql.org/docs/current/libpq-connect.html
"""

import ctypes
import re
from collections.abc import Callable
from functools import cache
from importlib.machinery import PathFinder
from typing import Any, NamedTuple

_PACKAGES = ("psycopg_c", "psycopg_binary")
"""Where psycopg itself looks for an extension that is linked to libpq, in its order."""
_ESCAPED = re.compile(r"([\\'])")
_SPACE = re.compile(r"\s")
_HIDDEN = b"*"
"""How libpq marks a password, which is not to be shown where it is typed."""


class ConninfoError(ValueError):
    """A connection string that libpq does not take, in its words."""


class ConninfoOption(NamedTuple):
    """A parameter of connections; `value` is None where it is not set."""

    keyword: str
    value: bytes | None
    is_hidden: bool


class _Option(ctypes.Structure):
    """PQconninfoOption."""

    keyword: bytes | None
    val: bytes | None
    dispchar: bytes | None
    _fields_ = [
        *((name, ctypes.c_char_p) for name in ("keyword", "envvar", "compiled", "val", "label", "dispchar")),
        ("dispsize", ctypes.c_int),
    ]


def parse(conninfo: str) -> list[ConninfoOption]:
    """Return every parameter there is, with the values that a connection string gives (PQconninfoParse). Raises ConninfoError.

    Raises UnicodeEncodeError for what is not text.
    """
    message = ctypes.c_char_p()
    options = function("PQconninfoParse", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        conninfo.encode(), ctypes.byref(message)
    )
    if not options:
        reported = (message.value or b"out of memory").decode(errors="replace")
        function("PQfreemem", None, ctypes.c_void_p)(message)
        raise ConninfoError(reported.strip())
    return taken_options(options)


def keywords() -> list[str]:
    """Return the names of all parameters (PQconndefaults)."""
    return [option.keyword for option in taken_options(function("PQconndefaults", ctypes.c_void_p)())]


def parameters(conninfo: str) -> dict[str, str]:
    """Return what a connection string sets. Raises ConninfoError."""
    return {option.keyword: option.value.decode() for option in parse(conninfo) if option.value is not None}


def make_conninfo(conninfo: str = "", **overrides: object) -> str:
    """Return a connection string of keywords: those of `conninfo`, and over them what is given and not None. Raises ConninfoError."""
    given = {name: str(value) for name, value in overrides.items() if value is not None}
    made = " ".join(f"{name}={_quoted(value)}" for name, value in (parameters(conninfo) | given).items())
    parse(made)
    return made


def _quoted(value: str) -> str:
    escaped = _ESCAPED.sub(r"\\\1", value)
    return f"'{escaped}'" if not escaped or _SPACE.search(escaped) else escaped


def taken_options(array: int) -> list[ConninfoOption]:
    """Return the entries of libpq's array of options, which is freed."""
    size = ctypes.sizeof(_Option)
    options: list[ConninfoOption] = []
    while (option := _Option.from_address(array + len(options) * size)).keyword is not None:
        options.append(ConninfoOption(option.keyword.decode(), option.val, option.dispchar == _HIDDEN))
    function("PQconninfoFree", None, ctypes.c_void_p)(array)
    return options


@cache
def function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """Return a function of libpq with its C types. Raises AttributeError where this libpq is too old to have it."""
    found = _library()[name]
    found.restype, found.argtypes = result, arguments
    return found


@cache
def _library() -> ctypes.CDLL:
    """Return psycopg's extension, in which libpq's functions are found as well. Raises ImportError."""
    for package in _PACKAGES:
        folder = PathFinder.find_spec(package)
        extension = folder and PathFinder.find_spec("pq", folder.submodule_search_locations)
        if extension and extension.origin:
            return ctypes.CDLL(extension.origin)
    from ctypes.util import find_library

    if system := find_library("pq"):
        return ctypes.CDLL(system)
    raise ImportError('there is no libpq: "pip install psycopg[binary]" brings one')
