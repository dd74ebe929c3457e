"""What a load wrote to, and under which settings it committed: as seen in the server, not as asked for.

A grade of safety holds only for what is flushed at commit, to a place that a power cut reaches. A script can set
synchronous_commit for its own transactions, and a dataset can keep its tables elsewhere.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen, Gap, SettingValue
from plinth.model.facts import ServerFacts, StorageFacts

DURABILITY_SETTINGS = (
    "data_sync_retry",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "synchronous_standby_names",
    "wal_sync_method",
    "wal_writer_delay",
)
"""The settings that decide whether an acknowledged commit is kept, and for how long it is not."""
COMMIT_LEVELS = ("off", "local", "remote_write", "on", "remote_apply")
"""Values of synchronous_commit, the weakest first."""
_DEFAULTS = {
    "data_sync_retry": "off",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "synchronous_standby_names": "",
}
_WORDS = {"true": "on", "yes": "on", "1": "on", "t": "on", "y": "on"} | {
    "false": "off",
    "no": "off",
    "0": "off",
    "f": "off",
    "n": "off",
}
AS_READ_BACK, AS_ASKED = "as read back", "as asked"
"""Where a setting was seen that the server itself has, and one of a server that was never read."""
UNKNOWN = "unknown"
"""Stands for a value that is set by an expression, in the settings of `as_settings`."""

Persistence = Literal["permanent", "unlogged"]


class SettingSeen(Frozen):
    """A value of a durability setting that transactions of the load had, or may have had."""

    name: str
    value: str | None = Field(description="None: it is set to something that is only known while it runs.")
    where: str = Field(
        description='What sets it, or where it was read: "script bank.sql: SET LOCAL synchronous_commit = off".'
    )
    certain: bool = Field(default=True, description="False: it may be that no transaction of the load had it.")


class WrittenRelation(Frozen):
    """A table that took writes, or an index of one; partitions and their parents are relations of their own."""

    name: str = Field(description="With its schema.")
    kind: Literal["table", "index"]
    persistence: Persistence
    tablespace: str | None = Field(description="None: that of the data directory.")
    directory: str | None = Field(description="Of the tablespace; None: within the data directory.")
    storage: str | None = Field(
        default=None, description="The storage of the experiment that the directory is on; None: on none, or not known."
    )
    place: StorageFacts | None = Field(
        default=None, description="What was found where the directory is, of one that is on no storage."
    )


class WriteFacts(Frozen):
    """What the load of a trial, or of a power cut, wrote to, and the durability settings that its commits had."""

    relations: tuple[WrittenRelation, ...] = Field(
        default=(), description="Those that are unlogged or outside of the data directory; others need no mention."
    )
    written: int | None = Field(
        default=None, description="How many tables took writes, by the server's statistics; None: not known."
    )
    settings: tuple[SettingSeen, ...] = ()
    gaps: tuple[Gap, ...] = ()


def canonical(value: SettingValue) -> str:
    """Return a value in lower case, and a boolean in any of PostgreSQL's spellings as on or off."""
    if isinstance(value, bool):
        return "on" if value else "off"
    word = str(value).strip().lower()
    return _WORDS.get(word, word)


def settings_in_force(
    asked: Mapping[str, SettingValue], server: ServerFacts | None, writes: Iterable[WriteFacts] = ()
) -> dict[str, SettingSeen]:
    """Return the weakest value of each durability setting that was seen: in the server when the trials began, and by their loads.

    `asked` counts where the server was never read. A value that could not be seen is weaker than one that keeps commits,
    and one that certainly loses them is weaker still. Settings that no source mentions, of which the default holds, are left out.
    """
    if server is None:
        first = [SettingSeen(name=name.lower(), value=str(value), where=AS_ASKED) for name, value in asked.items()]
    else:
        first = [SettingSeen(name=one.name.lower(), value=one.value, where=AS_READ_BACK) for one in server.settings]
    found: dict[str, SettingSeen] = {}
    for seen in [*first, *(seen for facts in writes for seen in facts.settings)]:
        if seen.name in DURABILITY_SETTINGS and (
            seen.name not in found or _strength(seen) < _strength(found[seen.name])
        ):
            found[seen.name] = seen
    return found


def value_in_force(settings: Mapping[str, SettingSeen], name: str) -> str | None:
    """Return the canonical value of `settings_in_force`, or the default; None: not known."""
    seen = settings.get(name)
    if seen is None:
        return _DEFAULTS.get(name)
    return None if seen.value is None else canonical(seen.value)


def as_settings(in_force: Mapping[str, SettingSeen], asked: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """Return the settings that were asked for, with those of `settings_in_force` in their place."""
    return {name.lower(): value for name, value in asked.items()} | {
        name: UNKNOWN if seen.value is None else seen.value for name, seen in in_force.items()
    }


def _strength(seen: SettingSeen) -> float:
    """Return certain losses first, then what may lose or cannot be seen, then what keeps. Other values are alike: the first stays."""
    if seen.name == "wal_writer_delay":
        return -float(seen.value) if seen.value is not None and seen.value.isdecimal() else 0
    order = COMMIT_LEVELS if seen.name == "synchronous_commit" else ("off", "on")
    if seen.name == "data_sync_retry":
        order = ("on", "off")
    if seen.value is None:
        return 0.5
    value = canonical(seen.value)
    if value not in order:
        return 0
    level = float(order.index(value))
    return level if seen.certain or value in ("on", "remote_apply") else max(level, 0.25)
