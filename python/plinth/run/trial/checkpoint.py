"""The checkpoint before a trial, so that it begins with nothing left to write."""

from typing import TYPE_CHECKING, Any

from plinth.model.base import Gap

if TYPE_CHECKING:
    import psycopg


def checkpoint(control: "psycopg.Connection[Any]") -> list[Gap]:
    """Have the server write a checkpoint; that an external server does not allow it is a gap."""
    import psycopg

    try:
        control.execute("CHECKPOINT")
    except psycopg.errors.InsufficientPrivilege as error:
        return [Gap(what="CHECKPOINT before the trial", reason=str(error).strip())]
    return []
