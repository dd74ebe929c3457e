"""What an acknowledged commit survives with standbys: the loss of the primary's power, and that of the primary with its storage.

By "Synchronous Replication" and the description of synchronous_commit in PostgreSQL's documentation.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from plinth.model.base import SettingValue
from plinth.model.standby import quorum_of
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


class CommitSurvival(NamedTuple):
    """Two sentences, without a full stop."""

    power_loss: str
    primary_loss: str


def survival_of(settings: Mapping[str, SettingValue], standbys: Collection[str]) -> CommitSurvival | None:
    """What a commit survives that a primary with these settings, in any spelling, has acknowledged; None without standbys."""
    if not standbys:
        return None
    asked = {name.lower(): str(value) for name, value in settings.items()}
    level = canonical(asked.get("synchronous_commit", "on"))
    return CommitSurvival(
        f"When the primary loses its power, {_BY_ITSELF.get(level, _flushed_locally(level))}",
        f"When the primary is lost with its storage, {_on_standbys(level, asked, standbys)}",
    )


def _flushed_locally(level: str) -> str:
    return (
        f"every acknowledged commit survives on its own storage: synchronous_commit = {level} waits for the local flush"
    )


def _on_standbys(level: str, asked: Mapping[str, str], standbys: Collection[str]) -> str:
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
    return f"each acknowledged commit is on {which}, {_REACHED[level]}"
