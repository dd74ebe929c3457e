"""Standbys of a managed server: what the experiment says of each, what its base backup took, and how it was found."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, field_validator

from plinth.model.base import Frozen, Name, SettingValue

PRIMARY = "primary"
"""The name of the node that takes writes."""
WAIT_TIMEOUT_S = 0.9
"""How long the observer waits on a standby for what was committed: less than the time between two readings."""

BACKUP_VERSION = 1
_KEYWORDS = ("any", "first", PRIMARY)
_OWNED = {
    "hot_standby": "Plinth reads back what a standby has taken, which needs hot_standby = on",
    "primary_conninfo": "Plinth makes it from upstream",
    "primary_slot_name": "each standby has a slot of its own",
    "synchronous_standby_names": "only the primary's counts: server.synchronous_standby_names",
}

StandbyName = Annotated[Name, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
"""Also the name of its replication slot and its application_name, hence lower case and without quotes."""


class StandbySpec(Frozen):
    """A physical standby of a managed server, made by pg_basebackup through a replication slot of its own."""

    storage: Name = Field(description="The storage that holds its data directory.", examples=["disk"])
    wal_storage: Name | None = Field(
        default=None,
        description="A storage for its WAL alone. Default: pg_wal within its data directory.",
        examples=["fast"],
    )
    upstream: Name = Field(
        default=PRIMARY,
        description="The node that it streams from: primary, or another standby (a cascade).",
        examples=["a"],
    )
    settings: dict[str, SettingValue] = Field(
        default_factory=dict,
        description="PostgreSQL settings that differ from the primary's.",
        examples=[{"recovery_min_apply_delay": "100ms"}],
    )

    @field_validator("settings")
    @classmethod
    def _settings_are_its_own(cls, settings: dict[str, SettingValue]) -> dict[str, SettingValue]:
        for name in settings:
            why = _OWNED.get(name.lower())
            if why is not None:
                raise ValueError(f"{name}: not in the settings of a standby: {why}")
            if name.lower().startswith("recovery_target"):
                raise ValueError(f"{name}: not in the settings of a standby: one that reaches it stops following")
        return settings


Standbys = dict[StandbyName, StandbySpec]


def check_standbys(standbys: Mapping[str, StandbySpec]) -> None:
    """Raise ValueError for names that mean something else, for upstreams that do not exist, and for circles of them."""
    for name, standby in standbys.items():
        if name in _KEYWORDS:
            raise ValueError(
                f"{name!r} cannot be the name of a standby: it means something else to PostgreSQL or Plinth"
            )
        if standby.upstream not in (PRIMARY, *standbys):
            raise ValueError(
                f"standby {name}: upstream {standby.upstream!r} is not one of: {', '.join((PRIMARY, *standbys))}"
            )
        way, upstream = [name], standby.upstream
        while upstream != PRIMARY and upstream in standbys:
            way.append(upstream)
            if upstream == name or len(way) > len(standbys) + 1:
                raise ValueError(f"standby {name}: nothing reaches it from the primary: {' from '.join(way)}")
            upstream = standbys[upstream].upstream


def upstream_first(standbys: Mapping[str, StandbySpec]) -> dict[str, StandbySpec]:
    """Return valid standbys, each after the one that it streams from, otherwise in their order."""
    ordered: dict[str, StandbySpec] = {}
    while len(ordered) < len(standbys):
        for name, standby in standbys.items():
            if name not in ordered and standby.upstream in (PRIMARY, *ordered):
                ordered[name] = standby
    return ordered


class BaseBackup(Frozen):
    """The base backup that a standby was made by: how long pg_basebackup took for what is in its directories."""

    schema_version: int = BACKUP_VERSION
    cluster: str
    standby: str
    upstream: str
    duration_s: float = Field(ge=0, description="Of pg_basebackup with its fsync of all files, checkpoint included.")
    size_bytes: int = Field(ge=0, description="Of all files of the standby afterwards, WAL and tablespaces included.")

    @property
    def bytes_per_s(self) -> float | None:
        """The rate; None where it took no time that could be measured."""
        return self.size_bytes / self.duration_s if self.duration_s > 0 else None


class StandbyFacts(Frozen):
    """A standby as found before a trial, once it had replayed all that its upstream had."""

    name: str
    upstream: str
    in_recovery: bool
    slot: str
    slot_active: bool
    sync_state: str | None = Field(
        description="Of pg_stat_replication on its upstream: async, potential, sync, quorum."
    )
    received_lsn: str | None
    replayed_lsn: str | None
    caught_up_s: float = Field(ge=0, description="How long it took to catch up before the trial.")
    round_trip_ns: int | None = Field(
        default=None,
        description="To its upstream on another machine: the median time of connecting by TCP; None on the same machine.",
    )
