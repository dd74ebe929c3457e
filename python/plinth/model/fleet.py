"""A fleet: the machines that drive a load together, as an experiment asks for them."""

import re
from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from plinth.model.base import Frozen

MAX_MACHINES = 1000
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+@)?[A-Za-z0-9._:%\[\]-]+")
_COMMAND = re.compile(r"[A-Za-z0-9_.~/+-]+")
RAY_ADDRESS = re.compile(r"auto|ray://[A-Za-z0-9._:%\[\]-]+:[0-9]{1,5}")


def is_option(word: str) -> bool:
    """Return whether a program such as a ProxyCommand of the user's would take a user or a host for one of its options."""
    return word.startswith("-")


def check_command(command: str) -> None:
    """Raise ValueError for a command of another machine that is more than a path."""
    if not _COMMAND.fullmatch(command):
        raise ValueError(f"got {command!r}; the path of plinth alone is allowed, without arguments")


class FleetSpec(Frozen):
    """More than one load machine: clients and rate of the workload are totals, which are split over the machines."""

    not_of_this_kind: ClassVar[Mapping[str, tuple[str, str]]] = {
        "ssh_config": (
            "a configuration of ssh starts commands (ProxyCommand, Match exec), with the rights of who runs the experiment",
            "use your own ~/.ssh/config, or name another with --ssh-config FILE on the command line",
        )
    }
    executor: Literal["local", "ssh", "ray"] = Field(
        description='What starts the agents: "local" starts processes on this machine, "ssh" uses the hosts, by OpenSSH, and "ray" uses '
        "machines of a Ray cluster.",
        examples=["ssh", "ray"],
    )
    ray_address: str = Field(
        default="auto",
        description='The Ray cluster: "auto" is the one that this machine belongs to, "ray://HOST:PORT" another, by its Ray Client server.',
        examples=["ray://head:10001"],
        json_schema_extra={"pattern": "^(auto|ray://.+:[0-9]+)$"},
    )
    machines: int | None = Field(
        default=None,
        ge=1,
        le=MAX_MACHINES,
        description="How many machines drive the load. Default: with ssh all hosts, otherwise 1. With Ray it has to be given.",
        examples=[3],
    )
    hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts, with ssh: names of the OpenSSH configuration, or [USER@]HOST. Each must be in known_hosts.",
        examples=[["client1", "client2"]],
    )
    command: str = Field(
        default="plinth",
        description="The command on the hosts, with ssh: a path where it is not in their PATH.",
        examples=["/opt/plinth/bin/plinth"],
    )

    @property
    def is_remote(self) -> bool:
        """Whether machines may be others than this one."""
        return self.executor != "local"

    @property
    def number_of_machines(self) -> int:
        """How many machines drive the load."""
        return self.machines or (len(self.hosts) if self.executor == "ssh" else 1)

    @field_validator("ray_address")
    @classmethod
    def _ray_address_is_known(cls, address: str) -> str:
        if not RAY_ADDRESS.fullmatch(address):
            raise ValueError('allowed: "auto" for the Ray cluster of this machine, "ray://HOST:PORT" for another')
        return address

    @field_validator("hosts")
    @classmethod
    def _hosts_are_names(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [host for host in hosts if not _HOST.fullmatch(host) or any(map(is_option, host.split("@")))]:
            raise ValueError(f"{wrong[0]!r} is no host; names look like client1 or bench@client1")
        if len(set(hosts)) < len(hosts):
            raise ValueError("a host is named twice; each drives its part of the load once")
        return hosts

    @field_validator("command")
    @classmethod
    def _command_is_a_path(cls, command: str) -> str:
        check_command(command)
        return command

    @model_validator(mode="after")
    def _keys_go_with_the_executor(self) -> "FleetSpec":
        for key, executor in (("hosts", "ssh"), ("command", "ssh"), ("ray_address", "ray")):
            if self.executor != executor and getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f'{key}: only with executor = "{executor}"')
        if self.executor == "ssh":
            if not self.hosts:
                raise ValueError('executor = "ssh" needs hosts')
            if self.machines is not None and self.machines > len(self.hosts):
                raise ValueError(f"machines: got {self.machines}, but there are {len(self.hosts)} hosts")
        if self.executor == "ray" and self.machines is None:
            raise ValueError('executor = "ray" needs machines: how many of the cluster drive the load')
        return self
