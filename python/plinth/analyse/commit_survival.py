"""What an acknowledged commit survives with standbys: the loss of the primary's power, and that of the primary with its storage.

By "Synchronous Replication" and the description of synchronous_commit in PostgreSQL's documentation.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from plinth.model.base import SettingValue
from plinth.model.standby import PRIMARY
from plinth.model.synchronous_standby_names import quorum_of
from plinth.model.write_facts import UNKNOWN, canonical

_UNSEEN = "what survives is not known: synchronous_commit is set to a value that only shows while it runs"
_BY_ITSELF = {
    UNKNOWN: _UNSEEN,
    "off": "commits of the last moments do not survive: synchronous_commit = off does not wait for the local flush",
}
_REACHED = {
    "remote_write": "written there but not flushed: it survives unless that standby's machine loses its power, too",
    "on": "flushed there: it survives, also when that standby loses its power",
    "remote_apply": "flushed and replayed there: it survives, also when that standby loses its power, and can be read there",
}
"""By synchronous_commit, how far a synchronous standby is when a commit is acknowledged."""
_REACHED_IN_VAIN = {
    "remote_write": "written there: it survives unless that standby loses its power, too",
    "on": "received there: it survives unless that standby loses its power, too",
    "remote_apply": "replayed there: it survives unless that standby loses its power, too",
}
"""The same of standbys whose flushes do not keep it."""


class CommitSurvival(NamedTuple):
    """Two sentences, without a full stop."""

    power_loss: str
    primary_loss: str


def survival_of(
    settings: Mapping[str, SettingValue],
    standbys: Collection[str],
    losing: Mapping[str, str] = MappingProxyType({}),
) -> CommitSurvival | None:
    """Return what a commit survives that a primary with these settings, in any spelling, has acknowledged; None without standbys.

    `losing` has why a node does not keep what it has flushed, or why that is not known: of those that are not trusted to.
    """
    if not standbys:
        return None
    asked = {name.lower(): str(value) for name, value in settings.items()}
    level = canonical(asked.get("synchronous_commit", "on"))
    return CommitSurvival(
        f"When the primary loses its power, {_on_primary(level, losing.get(PRIMARY))}",
        f"When the primary is lost with its storage, {_on_standbys(level, asked, standbys, losing)}",
    )


def _on_primary(level: str, why: str | None) -> str:
    if level in _BY_ITSELF:
        return _BY_ITSELF[level]
    if why is not None:
        return f"acknowledged commits may not survive on its own storage, although synchronous_commit = {level} waits for the local flush: {why}"
    return (
        f"every acknowledged commit survives on its own storage: synchronous_commit = {level} waits for the local flush"
    )


def _on_standbys(level: str, asked: Mapping[str, str], standbys: Collection[str], losing: Mapping[str, str]) -> str:
    quorum = quorum_of(asked.get("synchronous_standby_names", ""))
    lost = "commits that no standby had received do not survive"
    if quorum is None or quorum.needed == 0:
        return f"{lost}: synchronous_standby_names names no standby to wait for"
    if level == UNKNOWN:
        return _UNSEEN
    if level not in _REACHED:
        return f"{lost}: synchronous_commit = {level} waits for no standby"
    possible = quorum.possible(standbys)
    if len(possible) < quorum.needed:
        return f"{lost}: synchronous_standby_names waits for {quorum.needed} of {len(possible)} standbys, so that no commit is acknowledged"
    which = possible[0] if len(possible) == 1 else f"{quorum.needed} of {', '.join(possible)}"
    unkept = [name for name in possible if name in losing]
    if len(unkept) < quorum.needed:  # of those that any commit waits for, one at least keeps it
        return f"each acknowledged commit is on {which}, {_REACHED[level]}"
    return f"each acknowledged commit is on {which}, {_REACHED_IN_VAIN[level]}: {unkept[0]}: {losing[unkept[0]]}"
