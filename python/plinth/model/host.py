"""Hosts: other machines, on which storages and servers of an experiment are."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Literal, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from plinth.model.base import Frozen
from plinth.model.fleet import RAY_ADDRESS, check_command, is_option
from plinth.model.units import DurationS

_SSH = re.compile(
    r"ssh://(?:(?P<user>[A-Za-z0-9._-]+)@)?(?P<host>[A-Za-z0-9._%-]+|\[[A-Za-z0-9:.%]+\])(?::(?P<port>[0-9]{1,5}))?"
)


def check_listen_address(text: str) -> None:
    """Raise ValueError for what is no numeric address of one machine."""
    try:
        address = ip_address(text)
    except ValueError:
        raise ValueError(f"listen_address: got {text!r}; a numeric address is needed") from None
    if address.is_unspecified or address.is_multicast:
        raise ValueError(f"listen_address: got {text}; one address of this machine is needed")


class SshAddress(NamedTuple):
    """Where OpenSSH connects: [USER@]HOST, and the port, if it is not that of the configuration."""

    destination: str
    port: int | None


_ONLY_BY_SSH: Mapping[str, str] = {
    "command": "an agent on Ray runs what is installed under Ray's own Python",
    "become": "an agent on Ray runs as the user of Ray's processes there",
}


class HostSpec(Frozen):
    """Another machine, reached by OpenSSH: keys, known_hosts and jumps are those of the user's own configuration. Or a machine of a Ray
    cluster."""

    address: str = Field(
        description="ssh://[USER@]HOST[:PORT]; HOST may be a name of the OpenSSH configuration. It must be in known_hosts. With Ray "
        '"auto", the cluster that this machine belongs to, or "ray://HOST:PORT", another, by its Ray Client server.',
        examples=["ssh://bench@db1"],
        json_schema_extra={"pattern": "^(ssh://.+|auto|ray://.+:[0-9]+)$"},
    )
    node: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9._:-]+$",
        description="With Ray: the name or the address of the machine, as `ray list nodes` shows it.",
        examples=["192.0.2.12"],
    )
    command: str = Field(
        default="plinth",
        description="The command there: a path where it is not in the PATH.",
        examples=["/opt/plinth/bin/plinth"],
    )
    become: Literal["sudo"] | None = Field(
        default=None,
        description="sudo: the command there is run as root by `sudo -n`, which must not ask for a password. Default: as who logs in.",
    )
    listen_address: str | None = Field(
        default=None,
        description="An address of the host, on which its servers listen, with a random password. Clients and standbys connect there.",
        examples=["192.0.2.11"],
    )
    lease_s: DurationS = Field(
        default=60.0,
        alias="lease",
        ge=5,
        le=3600,
        description="How long the host waits for a coordinator that is cut off before it undoes what the run has made there.",
        examples=["2min"],
    )

    @field_validator("address")
    @classmethod
    def _address_is_ssh(cls, address: str) -> str:
        if RAY_ADDRESS.fullmatch(address):
            return address
        match = _SSH.fullmatch(address)
        if match is None or any(is_option(word) for word in (match["user"] or "", match["host"])):
            raise ValueError(
                'allowed: "ssh://[USER@]HOST[:PORT]", such as "ssh://bench@db1"; "auto" or "ray://HOST:PORT" with node for a machine '
                "of a Ray cluster"
            )
        if match["port"] is not None and not 0 < int(match["port"]) < 65536:
            raise ValueError(f"port: got {match['port']}, allowed is 1 to 65535")
        return address

    @field_validator("listen_address")
    @classmethod
    def _listens_on_one_address(cls, address: str | None) -> str | None:
        if address is not None:
            check_listen_address(address)
        return address

    @field_validator("command")
    @classmethod
    def _command_is_a_path(cls, command: str) -> str:
        check_command(command)
        return command

    @model_validator(mode="after")
    def _keys_are_of_its_kind(self) -> Self:
        if self.is_on_ray and self.node is None:
            raise ValueError(
                f'node: with address = "{self.address}" it has to be said which machine of the Ray cluster it is'
            )
        if not self.is_on_ray and self.node is not None:
            raise ValueError(f"node: got {self.node!r}; with ssh the address names the machine: leave it out")
        for key, reason in _ONLY_BY_SSH.items():
            if self.is_on_ray and getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"{key}: {reason}: leave it out")
        return self

    @property
    def is_on_ray(self) -> bool:
        """Whether Ray starts the agent."""
        return RAY_ADDRESS.fullmatch(self.address) is not None

    @property
    def remote_command(self) -> str:
        """The command there, with what makes it root."""
        return self.command if self.become is None else f"{self.become} -n -- {self.command}"

    @property
    def ssh(self) -> SshAddress:
        """Where OpenSSH connects."""
        match = _SSH.fullmatch(self.address)
        assert match is not None, "it was checked"
        host = match["host"].strip("[]")
        destination = host if match["user"] is None else f"{match['user']}@{host}"
        return SshAddress(destination, None if match["port"] is None else int(match["port"]))
