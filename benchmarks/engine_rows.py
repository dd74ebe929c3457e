"""What the load engine and pgbench are compared at, and what is aimed for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Engine = Literal["pgbench", "plinth"]
Figure = Literal["tps", "user_us", "system_us", "cpu_us", "switches", "latency_mean_us", "peak_memory_mib"]

FIGURES: dict[Figure, str] = {
    "tps": "tps",
    "user_us": "user CPU/tx (us)",
    "system_us": "system CPU/tx (us)",
    "cpu_us": "CPU/tx (us)",
    "switches": "context switches/tx",
    "latency_mean_us": "mean latency (us)",
    "peak_memory_mib": "peak resident memory (MiB)",
}


@dataclass(frozen=True)
class Aim:
    """What Plinth's figure is to be as a multiple of pgbench's."""

    figure: Figure
    at_most: float | None = None
    at_least: float | None = None

    def __str__(self) -> str:
        bound = f"<= {self.at_most:.2f}" if self.at_most is not None else f">= {self.at_least:.2f}"
        return f"{FIGURES[self.figure]} {bound}"

    def is_reached(self, ratio: float) -> bool:
        """Return whether this ratio is one that was aimed for."""
        return (self.at_most is None or ratio <= self.at_most) and (self.at_least is None or ratio >= self.at_least)


@dataclass(frozen=True)
class Row:
    """One kind of work: a built-in script of pgbench, or a file of ours."""

    name: str
    script: str
    protocol: str
    clients: int
    aims: tuple[Aim, ...]
    threads: int = 2

    def source_file(self) -> Path | None:
        """Return the script, unless it is built in."""
        file = Path(__file__).parent / "scripts" / f"{self.script}.sql"
        return file if file.is_file() else None


def _aims(cpu: float, tps: float, *more: Aim) -> tuple[Aim, ...]:
    return (Aim("cpu_us", at_most=cpu), *more, Aim("tps", at_least=tps))


ROWS = (
    Row("select-only-8", "select-only", "prepared", 8, _aims(0.60, 1.15, Aim("user_us", at_most=0.20))),
    Row("select-only-64", "select-only", "prepared", 64, _aims(0.60, 1.10)),
    Row("select-only-simple-8", "select-only", "simple", 8, _aims(0.70, 1.05)),
    Row("tpcb-like-8", "tpcb-like", "prepared", 8, _aims(0.60, 1.05)),
    Row("pipeline-of-10-8", "pipeline-of-10", "prepared", 8, _aims(0.60, 1.10)),
    Row("connections-1000", "select-only", "prepared", 1_000, _aims(0.60, 1.05, Aim("peak_memory_mib", at_most=1.0))),
)


@dataclass(frozen=True)
class Run:
    """One run of one of the two; CPU in microseconds per transaction, and the client's context switches."""

    engine: Engine
    tps: float
    transactions: int
    user_us: float
    system_us: float
    switches: float
    latency_mean_us: float
    peak_memory_mib: float

    @property
    def cpu_us(self) -> float:
        """Return user and system together."""
        return self.user_us + self.system_us
