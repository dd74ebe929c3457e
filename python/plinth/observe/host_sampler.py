"""What is read of a host while a load runs: processors, memory, block devices, and the processes of the run."""

from pydantic import Field

from plinth.model.base import Frozen
from plinth.observe.arrays import MdArrays, Pool, Zfs
from plinth.observe.diskstats import Devices
from plinth.observe.host import HostActivity, HostCpu, HostMemory, HostStat
from plinth.observe.process_sources import ProcessCpu, ProcessDelay, ProcessIo
from plinth.observe.processes import Processes
from plinth.observe.sampler import LocalSampler, Sampler
from plinth.observe.source import Source

SOURCES = tuple(
    one.name for one in (HostCpu, HostMemory, HostActivity, Devices, MdArrays, Zfs, ProcessCpu, ProcessDelay, ProcessIo)
)
"""The names of what is read of a host."""


class HostRequest(Frozen):
    """What is to be read of a host, and when."""

    t0_ns: int = Field(description="Ticks are at whole intervals from here, by its monotonic clock.")
    interval_s: float
    devices: tuple[str, ...] = Field(description="Kernel names as in /proc/diskstats; none: all real ones.")
    pools: tuple[Pool, ...] = Field(default=(), description="ZFS pools among the storages.")
    postmaster_pid: int | None = None
    other_servers: tuple[int, ...] = Field(default=(), description="The postmasters of other nodes.")
    own_backends: tuple[int, ...] = Field(default=(), description="The backends of the observer's own sessions.")


def host_sampler(request: HostRequest, listed: Processes) -> Sampler:
    """Return what reads this host; `listed` are the processes of the run on it."""
    stat = HostStat()
    sources: list[Source] = [
        HostCpu(stat),
        HostMemory(),
        HostActivity(stat),
        Devices(request.devices),
        MdArrays(request.devices),
        Zfs(request.pools),
        ProcessCpu(listed, stat),
        ProcessDelay(listed),
        ProcessIo(listed),
    ]
    return LocalSampler("the host", sources, t0_ns=request.t0_ns, interval_s=request.interval_s)
