"""The names of the wait profile: the objects of the samples of source pg_wait.

An object is "KIND/WAIT": KIND is a process's backend_type as in pg_stat_activity, WAIT is "type:event" or CPU where it
waits for nothing. Bundles of the first format have "WAIT" alone, of client backends and parallel workers.
"""

from typing import NamedTuple

SOURCE = "pg_wait"
ON_CPU = "CPU"
CLIENT_KINDS = ("client backend", "parallel worker")
"""The processes that do the clients' work."""
ALL = "all"
"""The object of what is not of one wait: metrics LOOKS, ACTIVE, IDLE and IDLE_IN_TRANSACTION."""
LOOKS = "looks"
BACKENDS = "backends"
ACTIVE, IDLE, IDLE_IN_TRANSACTION = "active", "idle", "idle_in_transaction"


class Wait(NamedTuple):
    """A kind of process and what it waits for."""

    kind: str
    event: str

    @property
    def of_clients(self) -> bool:
        """Whether a client's work waits."""
        return self.kind in CLIENT_KINDS


def wait_of(name: str) -> Wait:
    """Return the wait that an object's name denotes."""
    kind, slash, event = name.partition("/")
    return Wait(kind, event) if slash else Wait(CLIENT_KINDS[0], name)
