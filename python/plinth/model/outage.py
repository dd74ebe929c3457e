"""What faults of a trial's servers cost: for how long no write was accepted, and which acknowledged commits are gone."""

from collections.abc import Collection, Mapping
from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen, SettingValue
from plinth.model.recovery import Recovery
from plinth.model.standby import PRIMARY
from plinth.model.synchronous_standby_names import quorum_of
from plinth.model.write_facts import UNKNOWN, canonical

_WAITING = ("on", "remote_apply", "remote_write")
_UNSEEN = "synchronous_commit is set to a value that only shows while it runs"


class Rejoin(Frozen):
    """How the old primary came back as a standby of the new one."""

    how: Literal["rewind", "backup", "restart"] = Field(
        description="restart: it had nothing that the new primary does not have, and Patroni just started it."
    )
    duration_s: float = Field(ge=0, description="Until it streamed from the new primary, a failed pg_rewind included.")
    rewind_s: float | None = Field(
        default=None, description="Of pg_rewind, failed or not; None where it was not tried, and of Patroni's."
    )
    rewind_failure: str | None = Field(default=None, description="Why pg_rewind was followed by a base backup.")


class Failover(Frozen):
    """A failover as its steps took place, in order."""

    to: str = Field(description="The node that was promoted.")
    by: str = Field(default="plinth", description='What conducted it: "plinth", or Patroni with its settings.')
    detect_s: float = Field(
        description="From the fault to the last of the probes that had to fail; of Patroni until the promoted node had the lock."
    )
    promote_s: float = Field(description="From there until the promoted node was out of recovery, with the fencing.")
    first_write_s: float | None = Field(
        description="From there until a client got the answer to its first commit there; None: none was before the load ended."
    )
    rejoin: Rejoin | None = Field(default=None, description="None where it was not asked for.")


class Outage(Frozen):
    """The effect of a trial's faults. The gap is the clients' own: its ends are answers that they got."""

    faults: tuple[str, ...]
    primary: str = Field(description="The node that took writes in the end.")
    gap_s: float | None = Field(
        description="From the last commit that was acknowledged before, to the first that was sent and acknowledged after. Where no "
        "server was promoted or started again: the longest time without an acknowledged commit since. None: none was until the end."
    )
    recovered_s: float | None = Field(
        description="From that first commit until throughput was 90 % of that before the fault, over a second; None: not by the "
        "end of the load."
    )
    failover: Failover | None = None
    restarted_by: str | None = Field(
        default=None, description="Patroni, with its settings, where it started the primary again after a crash."
    )
    recovery: Recovery | None = Field(
        default=None,
        description="Of the primary, where it was started again without a failover; None: its log does not say.",
    )
    acknowledged: int = Field(description="Commits that were acknowledged to clients without a warning.")
    lost: int = Field(description="Of these, missing in the end.")
    lost_s: float | None = Field(description="From when the oldest of the lost commits was acknowledged, to the fault.")
    lost_wal_bytes: int | None = Field(
        description="WAL that the old primary had inserted just before the fault, and the new one never had. None without a failover, and where the lost commits were inserted later."
    )
    may_lose: str | None = Field(
        description="Why PostgreSQL's documentation allows a loss of acknowledged commits here; None: it promises that none is lost."
    )
    attempts_failed: int = Field(description="Attempts of clients to connect that failed.")
    connections_lost: int = Field(description="Connections of clients that ended, each with its transaction.")
    strayed: tuple[str, ...] = Field(
        default=(),
        description="Standbys that had replayed more of the old primary's WAL than the promoted one had, and could not follow it.",
    )


class OutageText(Frozen):
    """What faults of servers cost in the trials of a variant; times are medians."""

    variant: str
    trials: int
    faults: str
    gap: str = Field(description="From the clients' last acknowledged commit before the fault to their first after it.")
    parts: str = Field(description="The parts of that time, and until throughput was 90 % of what it had been.")
    lost: str = Field(description="Acknowledged commits that are missing, the largest loss, and what may be lost.")
    rejoin: str = Field(description="How the old primary came back as a standby, and which standbys could not follow.")


def has_fsync(settings: Mapping[str, SettingValue]) -> bool:
    """Return whether a server with these settings, in any spelling, flushes what it has to."""
    return all(canonical(value) != "off" for name, value in settings.items() if name.lower() == "fsync")


def may_lose(
    settings: Mapping[str, SettingValue],
    to: str | None,
    *,
    standbys: Collection[str],
    candidates: Collection[str],
    unpowered: Collection[str],
    unsynced: Collection[str] = (),
) -> str | None:
    """Return why acknowledged commits may be lost in a failover to node `to` (None: the primary itself recovered); None: they may not.

    `standbys` are those of the primary, `candidates` those among which the one with the most WAL was chosen, `unpowered` the nodes whose power was
    cut, `unsynced` those with fsync = off. By "Synchronous Replication" and the description of synchronous_commit in PostgreSQL's documentation.
    """
    asked = {name.lower(): str(value).lower() for name, value in settings.items()}
    level = canonical(asked.get("synchronous_commit", "on"))
    quorum = quorum_of(asked.get("synchronous_standby_names", ""))
    node = to or PRIMARY
    if node in unpowered and (node in unsynced or (node == PRIMARY and not has_fsync(settings))):
        return f"{node} has fsync = off, and its power was cut"
    if to in (None, PRIMARY):
        if level == "off":
            return "synchronous_commit = off does not wait for the local flush"
        return _UNSEEN if level == UNKNOWN else None
    if level == UNKNOWN:
        return _UNSEEN
    if level not in _WAITING:
        return f"synchronous_commit = {level} waits for no standby"
    if quorum is None or quorum.needed == 0:
        return "synchronous_standby_names names no standby to wait for"
    if to in unpowered and level == "remote_write":
        return "remote_write does not wait for the standby's flush, and its power was cut"
    named = quorum.possible(standbys)
    by_priority = not asked["synchronous_standby_names"].strip().startswith("any") and "*" not in quorum.candidates
    if by_priority and to in quorum.candidates[: quorum.needed]:
        return None
    # Of those named, so many had each commit that one of any larger set than the rest had it, too.
    if to in named and len(set(named) & set(candidates)) > len(named) - quorum.needed:
        return None
    return f"{to} may be one that the commits did not wait for"
