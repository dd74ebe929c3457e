"""Machines made of files: a good one, and what differs from it; and places as `describe` gives them."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from plinth.doctor import Machine
from plinth.model.base import Gap
from plinth.model.facts import Fact, StackNode, StorageFacts

CPU = "/sys/devices/system/cpu"
CLOCK = "/sys/devices/system/clocksource/clocksource0"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
DMI = "/sys/class/dmi/id"
OWN_PID = 100
DISKSTATS = "   8       0 sda 100 0 8000 50 200 0 16000 90 0 {busy_ms} 140 0 0 0 0 0 0\n"

Files = Mapping[str, str | None]
"""Path -> content; None for a file that is not there, and "<dir>" for one that is there and cannot be read."""
UNREADABLE = "<dir>"
NOTHING: Files = MappingProxyType({})

HUGE_PAGES = "HugePages_Total: {total}\nHugePages_Free: {free}\nHugepagesize: 2048 kB\n"
MEMINFO = (
    "MemTotal: 16000000 kB\nMemAvailable: {available} kB\nSwapTotal: {swap} kB\nSwapFree: {free} kB\n"
    + HUGE_PAGES.format(total=0, free=0)
)


def process(pid: int, name: str, parent: int, ticks: int, state: str = "S") -> dict[str, str | None]:
    """/proc/PID/stat of a process that has used so many ticks of CPU time."""
    return {f"/proc/{pid}/stat": f"{pid} ({name}) {state} {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 5 0 0\n"}


GOOD: Files = {
    f"{CPU}/online": "0-3",
    **{f"{CPU}/cpu{n}/cpufreq/scaling_governor": "performance\n" for n in range(4)},
    f"{CPU}/intel_pstate/no_turbo": "1\n",
    f"{CLOCK}/current_clocksource": "tsc\n",
    f"{CLOCK}/available_clocksource": "tsc hpet acpi_pm\n",
    "/dev/shm/segment": "",
    "/proc/self/cgroup": "0::/\n",
    "/proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
    THP: "always [madvise] never\n",
    "/proc/meminfo": MEMINFO.format(available=12000000, swap=0, free=0),
    "/proc/sys/vm/swappiness": "60",
    "/proc/sys/vm/dirty_background_ratio": "0",
    "/proc/sys/vm/dirty_background_bytes": "268435456",
    "/proc/sys/vm/dirty_ratio": "0",
    "/proc/sys/vm/dirty_bytes": "1073741824",
    "/proc/loadavg": "0.20 0.10 0.10 1/200 300\n",
    "/proc/stat": "cpu  1000 0 500 9000 10 0 10 0 0 0\ncpu0 1 2\n",
    "/proc/diskstats": DISKSTATS.format(busy_ms=1000),
    "/proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu vme tsc\n",
    "/proc/1/cgroup": "0::/init.scope\n",
    f"{DMI}/sys_vendor": "Dell Inc.\n",
    f"{DMI}/product_name": "PowerEdge R750\n",
    "/proc/sys/kernel/osrelease": "6.12.9-amd64\n",
    **process(1, "systemd", 0, 500),
    **process(OWN_PID, "python", 1, 100),
}

LATER: Files = {"/proc/stat": "cpu  1095 0 500 9000 10 0 10 0 0 0\n"}
"""What has changed at the end of the window on a good machine: time has passed."""


def write(root: Path, files: Files) -> None:
    """Put the files below `root`, over what is there."""
    for path, content in files.items():
        place = root / path.lstrip("/")
        if place.is_file():
            place.unlink()
        if content == UNREADABLE:
            place.mkdir(parents=True)
        elif content is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)


def machine(root: Path, files: Files = NOTHING, later: Files = NOTHING) -> Machine:
    """A good machine but for `files`; `later` is what has changed at the end of the window."""
    write(root, {**GOOD, **files})
    later = {**({} if "/proc/stat" in files else LATER), **later}
    return Machine.watched(0, root, OWN_PID, wait=lambda _: write(root, later))


def device(name: str = "sda", kind: str = "disk", **facts: object) -> StackNode:
    """A device with a queue, as good as can be but for `facts`; one that is None is not told."""
    reported = {"rotational": False, "scheduler": "none", "write_cache": "write back", "read_ahead_kb": 128, **facts}
    return StackNode(
        kind=kind,
        name=name,
        facts=tuple(
            Fact(name=fact, value=value, source=f"/sys/block/{name}/queue/{fact}")  # type: ignore[arg-type]
            for fact, value in reported.items()
            if value is not None
        ),
    )


def place(
    *nodes: StackNode,
    path: str = "/tmp",
    filesystem: str = "ext4",
    options: tuple[str, ...] = ("rw", "noatime"),
    free_bytes: int = 50 * 2**30,
    volatile_reason: str | None = None,
    gaps: tuple[Gap, ...] = (),
) -> StorageFacts:
    """A place on /mnt with these layers below its file system."""
    return StorageFacts(
        name="disk",
        kind="directory",
        path=path,
        filesystem=filesystem,
        mount_options=options,
        total_bytes=100 * 2**30,
        free_bytes=free_bytes,
        volatile=volatile_reason is not None,
        volatile_reason=volatile_reason,
        block_devices=tuple(node.name for node in nodes),
        stack=(StackNode(kind="mount", name="/mnt"), StackNode(kind="filesystem", name=filesystem), *nodes),
        gaps=gaps,
    )
