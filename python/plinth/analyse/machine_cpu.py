"""Who used the CPU of the server's machine in a trial: the run, or other programs."""

from typing import NamedTuple

from plinth.analyse.window import Window

SOURCE = "process_cpu"
TIMES = ("user_s", "system_s")
ENGINE = ("load engine",)
SERVER = (
    *("backends", "short-lived backends", "checkpointer", "background writer", "walwriter", "autovacuum", "walsender"),
    *("walreceiver", "io workers", "logger", "other postgres"),
)
_OTHERS_OF_RUN = ("observer", "rest of run")
_REST = ("rest of host",)
PRESENT = 0.25
"""Share of the cores that other programs use, from which on they may decide what is measured."""
BUSY = 0.8
"""Share of the cores in use, from which on who else uses them matters to the run."""


class MachineCpu(NamedTuple):
    """CPU of the server's machine in a measured phase, in cores.

    `neighbours` is what other programs used, at least: kernel threads, which write pages out and compress for the storage under
    test, have system time alone, so of the rest's system time no more counts than the rest has of user time.
    """

    neighbours: float
    server: float
    used: float
    cores: int

    @property
    def share(self) -> float:
        """The neighbours' share of the CPU in use: of what a process in the run queue waits for, theirs."""
        return self.neighbours / self.used if self.used else 0.0

    @property
    def disturbed(self) -> bool:
        """Whether neighbours held a good part of a machine that had little left."""
        return self.neighbours >= PRESENT * self.cores and self.used >= BUSY * self.cores

    def clause(self) -> str:
        """Return what the neighbours used, for people."""
        return f"{self.neighbours:.2f} of {self.cores} cores"


def machine_cpu(seen: Window, cores: int) -> MachineCpu | None:
    """Return who used the CPU, while the server's processes were read: what they, or a standby that was promoted in their place,
    use afterwards is the rest's. None where they were not read at all."""
    read = seen.samples.get((SOURCE, "backends", TIMES[0]))
    if read is not None and read.t_ns[-1] < seen.end_ns:
        seen = seen.until(int(read.t_ns[-1]))
    server, rest = seen.rates(SOURCE, SERVER, *TIMES), [seen.rates(SOURCE, _REST, time) for time in TIMES]
    if seen.rates(SOURCE, ["backends"], *TIMES) is None or server is None or rest[0] is None or rest[1] is None:
        return None
    user, system = (max(0.0, time or 0.0) for time in rest)
    of_run = server + (seen.rates(SOURCE, (*ENGINE, *_OTHERS_OF_RUN), *TIMES) or 0.0)
    return MachineCpu(user + min(user, system), server, of_run + user + system, cores)


def client_work(seen: Window) -> float | None:
    """Return cores that backends used, those included that came and went between two readings; None where they were not read."""
    living = seen.rates(SOURCE, ["backends"], *TIMES)
    if living is None:
        return None
    ended = seen.rates(SOURCE, ["short-lived backends"], *TIMES)
    return living + (ended or 0.0)


def autovacuum_s(seen: Window) -> float:
    """Return for how many seconds of a measured phase autovacuum workers ran: more than one process of autovacuum, whose launcher
    is always there. 0 where the server's processes were not read."""
    is_working = seen.readings(SOURCE, "autovacuum", "processes") > 1
    return float(is_working.mean()) * (seen.end_ns - seen.begin_ns) / 1e9 if len(is_working) else 0.0
