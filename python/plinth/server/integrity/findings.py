"""What checks of a database find: damage of some kind, with the evidence, and the checks that were made."""

import re
from typing import TYPE_CHECKING, NamedTuple

from plinth.model.durability import Damage, DamageKind, IntegrityCheck

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

_MOST_EVIDENCE = 10
_BAD_PAGE = re.compile(r"invalid page in block|page verification failed")

Finding = tuple[DamageKind, str]
"""What is wrong, and the evidence."""


class Integrity(NamedTuple):
    """The findings of the checks, and the checks that were made."""

    damage: tuple[Damage, ...]
    checks: tuple[IntegrityCheck, ...]


def is_unanswered(control: "psycopg.Connection[TupleRow]", error: "psycopg.Error") -> bool:
    """Return whether an error says nothing of the data that was read: the connection is gone, or the query was ended or had
    no resources.

    SQLSTATE classes 53 and 57 (PostgreSQL's manual, appendix A). Others, such as a file that is not there (58P01), are answers.
    """
    return control.closed or (error.sqlstate or "")[:2] in ("53", "57")


def finding_of(
    control: "psycopg.Connection[TupleRow]", error: "psycopg.Error", name: str, kind: DamageKind = "heap damaged"
) -> Finding:
    """Make a finding of an error with which the server answered about relation `name`. Raises it where it says nothing of the data."""
    if is_unanswered(control, error):
        raise error
    message = str(error).strip().splitlines()[0]
    return "checksum failure" if _BAD_PAGE.search(message) else kind, f"{name}: {message}"


def damage_of(found: list[Finding]) -> tuple[Damage, ...]:
    """Make one damage of each kind, in the order of their first."""
    by_kind: dict[DamageKind, list[str]] = {}
    for kind, evidence in found:
        by_kind.setdefault(kind, []).append(evidence)
    return tuple(
        Damage(kind=kind, count=len(evidence), evidence=tuple(evidence[:_MOST_EVIDENCE]))
        for kind, evidence in by_kind.items()
    )
