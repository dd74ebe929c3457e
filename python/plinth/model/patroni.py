"""Patroni as the cluster manager of failovers: its settings, and how long a failover by it is expected to take."""

from collections.abc import Iterable
from typing import Self

from pydantic import Field, model_validator

from plinth.model.base import Frozen
from plinth.model.units import DurationS, format_duration

PATRONI, ETCD = "patroni", "etcd"
"""The programs."""
_LEAST_TTL_S = 20
_PROMOTE_S = 2.0


def etcd_machines(machines: Iterable[str | None]) -> list[str | None]:
    """Return the machine of each etcd, of the machines of a cluster's nodes: one on each.

    Where that is an even number, one more is on the machine of the run (None), which no fault ends: with one of an even number, as
    many can fail as with one fewer.
    """
    own = list(dict.fromkeys(machines))
    return own if len(own) % 2 else [*own, None]


class PatroniSpec(Frozen):
    """Settings of Patroni, by its own names and with its own defaults."""

    ttl_s: DurationS = Field(
        default=30.0,
        alias="ttl",
        ge=_LEAST_TTL_S,
        description="How long the leader keeps its lock without renewing it. Patroni takes no less than 20 s.",
        examples=["20s"],
    )
    loop_wait_s: DurationS = Field(
        default=10.0,
        alias="loop_wait",
        ge=1,
        description="Time between two looks of each Patroni at its server and at the lock, which the leader renews then.",
        examples=["5s"],
    )
    retry_timeout_s: DurationS = Field(
        default=10.0,
        alias="retry_timeout",
        ge=3,
        description="How long etcd and the server are tried again.",
        examples=["5s"],
    )
    primary_start_timeout_s: DurationS = Field(
        default=300.0,
        alias="primary_start_timeout",
        ge=0,
        description="How long a primary that crashed may take to be started again, by its own Patroni, before a standby is promoted. "
        "0: a standby is promoted at once.",
        examples=["0s"],
    )

    @model_validator(mode="after")
    def _fits_its_ttl(self) -> Self:
        least_s = self.loop_wait_s + 2 * self.retry_timeout_s
        if least_s > self.ttl_s:
            raise ValueError(
                f"ttl: got {format_duration(self.ttl_s)}; Patroni takes no less than loop_wait + 2 * retry_timeout, "
                f"{format_duration(least_s)}"
            )
        for name in ("ttl_s", "loop_wait_s", "retry_timeout_s", "primary_start_timeout_s"):
            if getattr(self, name) % 1:
                raise ValueError(
                    f"{name.removesuffix('_s')}: got {format_duration(getattr(self, name))}; Patroni counts whole seconds"
                )
        return self

    @property
    def expected_s(self) -> tuple[float, float]:
        """The least and the most that a failover takes when a machine fails, by Pigsty's model of it: the lock was renewed up to
        loop_wait ago and lasts for ttl, the standbys look within loop_wait, and the promotion takes up to 2 s."""
        return self.ttl_s - self.loop_wait_s, self.ttl_s + self.loop_wait_s + _PROMOTE_S

    def longest_s(self, *, of_machine: bool) -> float:
        """Return the most that passes until writes go on, of a machine that fails, or of a server that crashes: that is seen within
        loop_wait."""
        return self.expected_s[1] if of_machine else self.loop_wait_s + _PROMOTE_S

    def words(self, version: str = "") -> str:
        """Return what a report says of it; `version` as the running one says."""
        least_s, most_s = self.expected_s
        settings = ", ".join(f"{name.removesuffix('_s')} {getattr(self, name):g} s" for name in type(self).model_fields)
        return f"Patroni {version}{' ' * bool(version)}({settings}; published for the loss of a machine: {least_s:g} to {most_s:g} s)"
