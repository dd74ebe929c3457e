"""The server of an experiment: the PostgreSQL cluster under test, and its standbys."""

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from plinth.common.connection_keys import check_keys
from plinth.model.base import Frozen, Name, SettingValue
from plinth.model.host import check_listen_address
from plinth.model.patroni import PatroniSpec
from plinth.model.standby import Standbys, check_standbys
from plinth.model.units import SizeBytes

OLDEST_VERSION, NEWEST_VERSION = 13, 18
"""The major versions whose settings, views and files Plinth knows, each tested on its own binaries."""
SETTING_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)*")
LEAST_MEMORY_BYTES = 2**26
"""A smaller one is a mistaken unit rather than a wish."""
DEFAULT_TABLESPACE = "pg_default"
"""The tablespace that every cluster has: within its data directory."""


class ServerSpec(Frozen):
    """The PostgreSQL cluster under test: managed (Plinth makes and starts it) or external (a connection string)."""

    storage: Name | None = Field(
        default=None,
        description="The storage that holds the data directory. Default: the first one.",
        examples=["disk"],
    )
    wal_storage: Name | None = Field(
        default=None,
        description="A storage for the WAL alone (initdb --waldir). Default, and where it is the data directory's own: "
        "pg_wal within the data directory.",
        examples=["fast"],
    )
    tablespaces: dict[Name, Name] = Field(
        default_factory=dict,
        description="Tablespaces to make, and the storage of each; see dataset.tablespace.",
        examples=[{"bulk": "slow"}],
    )
    version: int = Field(
        default=18,
        ge=OLDEST_VERSION,
        lt=100,
        description=f"Major version of a managed server. {OLDEST_VERSION} to {NEWEST_VERSION} are known; a newer one is taken where it is "
        "installed, and the plan says that it is newer.",
        examples=[18],
    )
    bindir: str | None = Field(
        default=None,
        description="Directory of postgres and initdb. Default: the wheel for 18, else the usual places.",
        examples=["/usr/lib/postgresql/17/bin"],
    )
    connection: str | None = Field(
        default=None,
        description="Connection string of an external server, by libpq's rules. Plinth then works in a schema of its own.",
        examples=["host=db1 dbname=bench"],
    )
    connection_options: dict[str, SettingValue] = Field(
        default_factory=dict,
        description="Of an external server: settings of the load's own sessions, sent as each of them begins (as in PGOPTIONS) and read "
        "back there. The server itself is not changed.",
        examples=[{"synchronous_commit": "off"}],
    )
    port: int | None = Field(
        default=None,
        ge=1024,
        le=65535,
        description="Port of a managed server. Default: 5432, or a free one for tcp.",
        examples=[54321],
    )
    listen: Literal["unix", "tcp"] = Field(default="unix", description="How the load reaches a managed server.")
    listen_address: str | None = Field(
        default=None,
        description='With listen = "tcp": the numeric address of this machine that a managed server listens on, for a load from '
        "other machines. Everybody who reaches it may try to log in; a random password is needed. Default: 127.0.0.1.",
        examples=["192.0.2.10"],
    )
    memory_bytes: SizeBytes | None = Field(
        default=None,
        ge=LEAST_MEMORY_BYTES,
        alias="memory",
        description="Of a managed server, and of each of its standbys: the most memory that its processes may use, with the page cache of "
        "what they read and write, by a control group; needs root. Default: the machine's.",
        examples=["16GiB"],
    )
    data_checksums: bool = Field(default=True, description="initdb with data checksums.")
    wal_segment_size_mb: int | None = Field(
        default=None, alias="wal_segment_size", description="initdb --wal-segsize, in MB.", examples=[64]
    )
    settings: dict[str, SettingValue] = Field(
        default_factory=dict,
        description="PostgreSQL settings, written to the configuration and read back from pg_settings.",
        examples=[{"shared_buffers": "1GB", "fsync": True}],
    )
    standby: Standbys = Field(
        default_factory=dict,
        description="Standbys of a managed server, on this machine.",
        examples=[{"a": {"storage": "disk"}}],
    )
    standbys: int | None = Field(
        default=None,
        ge=0,
        description="How many of them there are, the first of the file. Default: all.",
        examples=[2],
    )
    synchronous_standby_names: str | None = Field(
        default=None,
        description="The setting of that name on the primary: FIRST or ANY, how many, and which standbys a commit waits for.",
        examples=["ANY 1 (a, b)"],
    )
    failover: Literal["plinth", "patroni"] = Field(
        default="plinth",
        description="Who conducts the action failover. plinth: its own sequence of probes, fencing and promotion. patroni: a Patroni "
        "for each server, with an etcd, which are started before the load.",
        examples=["patroni"],
    )
    patroni: PatroniSpec = Field(
        default_factory=PatroniSpec, description='With failover = "patroni".', examples=[{"loop_wait": "5s"}]
    )

    @field_validator("connection_options")
    @classmethod
    def _options_are_for_the_load(cls, options: dict[str, SettingValue]) -> dict[str, SettingValue]:
        for name, value in options.items():
            if not SETTING_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a setting")
            if name.lower() == "search_path":
                raise ValueError(
                    "search_path: Plinth sets it, so that the load finds the tables in the schema of the run"
                )
            if not str(value).isprintable():
                raise ValueError(f"{name}: the value has a line break or another control character")
        return options

    @property
    def storages(self) -> frozenset[str]:
        """All storages that it and its standbys name."""
        of_standbys = (name for one in self.used_standbys.values() for name in (one.storage, one.wal_storage))
        return frozenset(filter(None, (self.storage, self.wal_storage, *self.tablespaces.values(), *of_standbys)))

    @field_validator("connection")
    @classmethod
    def _connection_only_connects(cls, connection: str | None) -> str | None:
        if connection is not None:
            check_keys(connection)
        return connection

    @field_validator("tablespaces")
    @classmethod
    def _names_are_free(cls, tablespaces: dict[str, str]) -> dict[str, str]:
        if reserved := [name for name in tablespaces if name.startswith("pg_")]:
            raise ValueError(f"{', '.join(reserved)}: names that begin with pg_ are PostgreSQL's own")
        return tablespaces

    @model_validator(mode="after")
    def _standbys_are_there(self) -> "ServerSpec":
        check_standbys(self.standby)
        if self.standbys is not None:
            if self.standbys > len(self.standby):
                raise ValueError(f"standbys: got {self.standbys}, but [server.standby] describes {len(self.standby)}")
            check_standbys(self.used_standbys)
        if self.synchronous_standby_names is not None and any(
            name.lower() == "synchronous_standby_names" for name in self.settings
        ):
            raise ValueError("synchronous_standby_names: given twice, here and in settings")
        return self

    @property
    def used_standbys(self) -> Standbys:
        """The standbys that there are: all that are described, or the first of them."""
        return dict(list(self.standby.items())[: self.standbys])

    @model_validator(mode="after")
    def _listens_on_an_address(self) -> "ServerSpec":
        if self.listen_address is None:
            return self
        check_listen_address(self.listen_address)
        if self.listen != "tcp":
            raise ValueError('listen_address: only with listen = "tcp"')
        return self

    @model_validator(mode="after")
    def _memory_is_limited_by_us(self) -> "ServerSpec":
        if self.memory_bytes is not None and self.failover == "patroni":
            raise ValueError('memory: not with failover = "patroni", which starts the servers')
        return self

    @model_validator(mode="after")
    def _external_is_left_alone(self) -> "ServerSpec":
        if self.connection is None and self.connection_options:
            raise ValueError(
                "connection_options: only with connection; a managed server has settings of its own: [server.settings]"
            )
        if self.connection is not None:
            taken = [
                field.alias or key
                for key, field in type(self).model_fields.items()
                if key not in ("connection", "connection_options")
                and getattr(self, key) != field.get_default(call_default_factory=True)
            ]
            if taken:
                raise ValueError(
                    f"{', '.join(taken)}: not with connection: Plinth does not change a server that it did not start"
                )
        return self
