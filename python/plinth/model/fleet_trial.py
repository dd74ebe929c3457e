"""How the machines of a fleet drove a trial together."""

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.totals import Totals

MAX_SKEW_NS = 5_000_000
"""How far apart the machines of a fleet may begin: a trial in which they were further apart is excluded."""
MAX_CLOCK_ERROR_NS = MAX_SKEW_NS // 2
"""A clock that is known less exactly leaves too little of the time within which machines must begin."""
MAX_DRIFT = 200e-6
"""How fast clocks may move against each other, as a share of the time that passes: two quartzes, each 100 ppm wrong."""


class MachineTrial(Frozen):
    """One machine's part of a trial. Times named first_start and clock are by the coordinator's monotonic clock."""

    name: str = Field(description="As the fleet names it.")
    host: str = Field(description="As the machine names itself.")
    cores: int
    clients: int
    threads: int
    clock_offset_ns: int = Field(description="Its monotonic clock minus the coordinator's.")
    clock_error_ns: int = Field(description="The offset is known to within this: half of the shortest round trip.")
    clock_moved_ns: int | None = Field(
        default=None,
        description="How far its clock has moved against the coordinator's at least, from before the start until after the end.",
    )
    first_start_ns: int | None = Field(description="When it served its first client, since the agreed start.")
    measured: Totals = Field(description="Its transactions that ended in the measured phase.")
    latency_p50_ns: int | None = Field(description="Over its own transactions; None where none was done.")
    latency_p99_ns: int | None
    user_cpu_ns: int = Field(description="Of its load engine, in the measured phase.")
    system_cpu_ns: int
    loop_lag_p99_ns: int | None
    engine_busy: float | None = Field(
        ge=0,
        le=1,
        description="Share of their time in which the threads of its engine worked or waited for a CPU, in the measured phase.",
    )
    host_busy: float | None = Field(
        ge=0, le=1, description="Share of all its cores' time that was not idle, in the measured phase."
    )


class FleetTrial(Frozen):
    """How the machines of a fleet drove a trial."""

    address: str
    machines: tuple[MachineTrial, ...]
    skew_ns: int | None = Field(
        description="Between the first and the last machine's first start; None where a machine served no client."
    )
    skew_limit_ns: int = Field(default=MAX_SKEW_NS, description="A trial with a greater skew is excluded.")
    clock_moved_limit_ns: int = Field(
        default=MAX_SKEW_NS,
        description="A trial in which a clock moved further is excluded: the time that passed counts in it.",
    )
    messages: int = Field(description="Sent and received by the coordinator, from connecting to the result.")
    sent_bytes: int
    received_bytes: int

    @property
    def excluded(self) -> str | None:
        """The rule by which the trial is left out of the statistics; None if it is not."""
        if self.skew_ns is None:
            return "fleet start: a machine served no client, so that its start is not known"
        unsure = max(self.machines, key=lambda one: one.clock_error_ns)
        if unsure.clock_error_ns > self.skew_limit_ns // 2:
            return (
                f"fleet clocks: that of {unsure.name} is known to within {unsure.clock_error_ns / 1e6:.1f} ms only, so that it "
                f"is not known whether machines began within {self.skew_limit_ns / 1e6:g} ms"
            )
        moved = max(self.machines, key=lambda one: one.clock_moved_ns or 0)
        if (moved.clock_moved_ns or 0) > self.clock_moved_limit_ns:
            return (
                f"fleet clocks: that of {moved.name} moved by {(moved.clock_moved_ns or 0) / 1e6:.1f} ms against the coordinator's while "
                f"the load ran, so that its seconds are not those of the others; {self.clock_moved_limit_ns / 1e6:.1f} ms are allowed"
            )
        allowed = f"{self.skew_limit_ns / 1e6:g} ms are allowed"
        if self.skew_ns > self.skew_limit_ns:
            return f"fleet start: machines began up to {self.skew_ns / 1e6:.1f} ms after one another; {allowed}"
        latest_ns = max(one.first_start_ns or 0 for one in self.machines)
        if latest_ns > self.skew_limit_ns:
            return f"fleet start: a machine began up to {latest_ns / 1e6:.1f} ms after the agreed start; {allowed}"
        return None

    @property
    def busiest(self) -> MachineTrial | None:
        """The machine whose load engine was busiest; None where that is not known of any."""
        known = [one for one in self.machines if one.engine_busy is not None]
        return max(known, key=lambda one: one.engine_busy or 0.0, default=None)
