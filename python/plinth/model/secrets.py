"""Passwords in connection strings, which nothing that is kept or shown may have."""

import json
import re
from collections.abc import Iterable

_OF_URI = re.compile(r"(://[^:/@\s]*):[^@\s]*@")
_KEYWORD = r"\b((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&\"]*)"
_OF_KEYWORD = re.compile(_KEYWORD)
_KEYWORD_AND_SEPARATOR = re.compile(_KEYWORD + r"(?:&|\s+|$)")


def masked(text: str) -> str:
    """`text`, which has connection strings in it or is one, with *** for each password."""
    return _OF_KEYWORD.sub(r"\1***", _OF_URI.sub(r"\1:***@", text))


def without_passwords(connection: str) -> str:
    """A connection string that leads to the same place for whoever has the password in PGPASSWORD or ~/.pgpass."""
    return _KEYWORD_AND_SEPARATOR.sub("", _OF_URI.sub(r"\1@", connection)).rstrip(" ?&")


class Bare:
    """Takes the passwords of connection strings out of text that is passed on."""

    def __init__(self, connections: Iterable[str]) -> None:
        self._connections = sorted(set(connections), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """`text`, with the connection strings in it as `without_passwords` has them."""
        for connection in self._connections:
            bare = without_passwords(connection)
            text = text.replace(connection, bare)
            # As JSON and TOML write it, if it has quotes.
            text = text.replace(json.dumps(connection)[1:-1], json.dumps(bare)[1:-1])
        return text
