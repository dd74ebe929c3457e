"""Parser of synchronous_standby_names, by the grammar of PostgreSQL's syncrep_gram.y."""

import re
from collections.abc import Collection
from typing import NamedTuple


class Quorum(NamedTuple):
    """How many standbys a commit waits for, and which they may be."""

    needed: int
    candidates: tuple[str, ...]

    def possible(self, standbys: Collection[str]) -> list[str]:
        """Return those of these standbys that may count."""
        wanted = {name.lower() for name in self.candidates}
        return [name for name in standbys if "*" in wanted or name.lower() in wanted]


_METHOD = re.compile(r"\s*(?:(?:first|any)\s+)?(?P<needed>\d+)\s*\((?P<names>.*)\)\s*", re.IGNORECASE | re.DOTALL)
_NAME = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<plain>[^\s,"()]+))\s*(?:,|$)')


def quorum_of(names: str) -> Quorum | None:
    """Return what `names`, a value that the server accepts, demands; None where it is empty."""
    if not names.strip():
        return None
    method = _METHOD.fullmatch(names)
    listed = method["names"] if method else names
    found = tuple(match["plain"] or match["quoted"].replace('""', '"') for match in _NAME.finditer(listed))
    return Quorum(int(method["needed"]) if method else 1, found)
