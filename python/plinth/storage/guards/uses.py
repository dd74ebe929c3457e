"""Who uses a block device: mounts of every namespace, swap, loop devices, btrfs, and processes that have it open or mapped.

The kernel's own claim (O_EXCL) already covers mounts, swap and arrays, wherever they are; what is found here says by
whom, and adds what makes no claim: a loop device that it backs, and processes, as far as /proc shows them (proc(5),
proc_pid_fdinfo(5), proc_pid_map_files(5)). Each thread is examined, since it may have a separate table of open files
(unshare(2), CLONE_FILES), and a leader that has ended (a zombie) has none while its threads run. A mapping outlives the
descriptor that it was made from, and so does a file registered with io_uring. What it cannot find: docs/concepts/guards.md.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from plinth.storage.devices.block_device import device_number
from plinth.storage.devices.loop_device import backing_of
from plinth.system.mounts import read_mounts
from plinth.system.namespaces import FIRST_PID_NAMESPACE

PROC = Path("/proc")
Numbers = Mapping[str, str]
"""Device number ("major:minor") to kernel name: of a disk and each of its partitions."""
_RING = "anon_inode:[io_uring]"
_REGISTERED = re.compile(r"^ *\d+: (.+)$", re.MULTILINE)
_IN_FLIGHT = re.compile(r"^scm_fds:\s*([1-9]\d*)$", re.MULTILINE)
_MAPPING = re.compile(r"(?P<range>\S+) \S+ \S+ (?P<file>\S+ [1-9]\d*) *(?P<path>.*)")
"""A line of /proc/PID/maps that is about a file: its range of addresses, its device and inode, its path."""


class Use(NamedTuple):
    """One use of `device` (a kernel name), and by whom or what, for people."""

    device: str
    by: str


class NotExamined(NamedTuple):
    """A place where users might be that we could not look at, and why."""

    what: str
    reason: str


def mounts_everywhere(numbers: Numbers, proc: Path = PROC) -> tuple[list[Use], list[NotExamined]]:
    """Return the mounts of these devices in every mount namespace that a process is in."""
    found: list[Use] = []
    unseen: list[NotExamined] = []
    seen: set[str] = set()
    ours = str((proc / "self/ns/mnt").readlink())
    for folder in processes(proc):
        try:
            namespace = str((folder / "ns/mnt").readlink())
            if namespace in seen:
                continue
            mounts = read_mounts(folder / "mountinfo")
        except OSError as error:
            if not is_gone(error):
                unseen.append(NotExamined(f"mounts of {who(folder)}", error.strerror or str(error)))
            continue
        seen.add(namespace)
        for mount in mounts:
            # btrfs numbers its mounts itself: there only the source names the device.
            if name := numbers.get(mount.device) or named(mount.source, numbers):
                where = "" if namespace == ours else f" in the mount namespace of {who(folder)}"
                found.append(Use(name, f"{mount.filesystem} on {mount.point}{where}"))
    return found, unseen


def swaps(numbers: Numbers, proc: Path = PROC) -> list[Use]:
    """Return swap areas on these devices."""
    return [Use(name, "swap") for path in swap_areas(proc) if (name := named(str(path), numbers))]


def swap_areas(proc: Path = PROC) -> list[Path]:
    """Return devices and files that the kernel swaps to, as in /proc/swaps."""
    try:
        lines = (proc / "swaps").read_text().splitlines()[1:]
    except FileNotFoundError:
        return []  # a kernel without swap
    return [Path(line.split()[0].encode().decode("unicode_escape")) for line in lines]


def loops_on(numbers: Numbers, sysfs: Path) -> tuple[list[Use], list[NotExamined]]:
    """Return loop devices that these devices back: they make no claim on them, and any mount namespace may have made them."""
    found: list[Use] = []
    unseen: list[NotExamined] = []
    for folder in sorted((sysfs / "block").glob("loop*")):
        if not (folder / "loop").is_dir():
            continue  # nothing is attached
        try:
            backing = _loop_backing_number(Path("/dev") / folder.name)
        except OSError as error:
            unseen.append(NotExamined(f"what backs {folder.name}", error.strerror or str(error)))
            continue
        if backing is not None and (name := numbers.get(backing)):
            found.append(Use(name, f"loop device {folder.name}"))
    return found, unseen


def btrfs_on(numbers: Numbers, sysfs: Path) -> list[Use]:
    """Return mounted btrfs file systems that have these devices as members; the mount table names one member only."""
    return [
        Use(name, f"btrfs {link.parents[1].name}")
        for link in (sysfs / "fs/btrfs").glob("*/devices/*")
        if (name := _number_in(link, numbers))
    ]


def outside_processes(proc: Path = PROC) -> list[NotExamined]:
    """Return that /proc may not show all processes, as in a container; nothing where it shows all."""
    if str((proc / "self/ns/pid").readlink()) == FIRST_PID_NAMESPACE:
        return []
    return [NotExamined("processes outside this container", "its /proc does not show them")]


def processes(proc: Path) -> Iterator[Path]:
    """Return folders of processes, the oldest first."""
    return iter(sorted((path for path in proc.iterdir() if path.name.isdigit()), key=lambda path: int(path.name)))


def is_gone(error: OSError) -> bool:
    """Whether the process ended while we looked; a zombie has no files and no namespace any more."""
    return error.errno in (errno.ENOENT, errno.ESRCH, errno.EINVAL)


def who(folder: Path) -> str:
    """Return words for a process, given as /proc/PID."""
    try:
        return f"process {folder.name} ({(folder / 'comm').read_text(errors='replace').strip()})"
    except OSError:
        return f"process {folder.name}"


def named(path: str, numbers: Numbers) -> str | None:
    """Return the device that a path of the kernel's means; in other namespaces the same path may not be there."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return path.removeprefix("/dev/") if path.removeprefix("/dev/") in numbers.values() else None
    return numbers.get(device_number(found.st_rdev)) if stat.S_ISBLK(found.st_mode) else None


def _number_in(link: Path, numbers: Numbers) -> str | None:
    try:
        return numbers.get((link / "dev").read_text().strip())
    except OSError:
        return None  # a member that is missing, which btrfs lists too


def _loop_backing_number(device: Path) -> str | None:
    """Return the number of the block device that backs a loop device; None when it is a file, or nothing."""
    fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        backing = backing_of(fd)
    finally:
        os.close(fd)
    return None if backing is None or backing.block_device is None else device_number(backing.block_device)


def opened_by(numbers: Numbers, proc: Path = PROC) -> tuple[list[Use], list[NotExamined]]:
    """Return the processes, other than this one, that have these devices open, mapped, or registered with io_uring."""
    look = _ProcessScan(numbers, proc)
    for folder in processes(proc):
        if folder.name != str(os.getpid()):
            look.at(folder)
    return list(look.found), list(look.unseen)


class _ProcessScan:
    """One scan of all processes."""

    def __init__(self, numbers: Numbers, proc: Path) -> None:
        self.found: dict[Use, None] = {}
        self.unseen: dict[NotExamined, None] = {}
        self._numbers = numbers
        self._proc = proc
        self._mapped: dict[tuple[str, str], str | None] = {}
        """The mappings that were examined; most are of the same libraries."""

    def at(self, process: Path) -> None:
        with self._noting_errors(f"threads of {who(process)}"):
            threads = [int(thread.name) for thread in (process / "task").iterdir()]
            for thread in threads:
                with self._noting_errors(f"open files of {who(process)}"):
                    self._open_files(process, process / "task" / str(thread))
            with self._noting_errors(f"mappings of {who(process)}"):
                # The memory is shared by all of them, and reached by each that lives.
                next((True for thread in threads if self._mappings(process, self._proc / str(thread))), None)

    def _open_files(self, process: Path, thread: Path) -> None:
        for link in (thread / "fd").iterdir():
            with _closed_meanwhile():
                target = link.stat()
                if stat.S_ISBLK(target.st_mode):
                    self._use(self._numbers.get(device_number(target.st_rdev)), process, "")
                elif stat.S_ISSOCK(target.st_mode):
                    if _IN_FLIGHT.search((thread / "fdinfo" / link.name).read_text()):
                        on_their_way = f"files that are on their way to {who(process)}"
                        self.unseen[NotExamined(on_their_way, "/proc shows no more than their number")] = None
                elif str(link.readlink()) == _RING:
                    for path in _REGISTERED.findall((thread / "fdinfo" / link.name).read_text(errors="replace")):
                        self._use(named(path, self._numbers), process, ", registered with io_uring")

    def _mappings(self, process: Path, thread: Path) -> bool:
        """Look at what a thread has mapped; whether it has any memory, which an ended one has not."""
        lines = (thread / "maps").read_text(errors="replace").splitlines()
        for line in lines:
            if not (mapping := _MAPPING.fullmatch(line)):
                continue  # memory without a file
            file = (mapping["file"], mapping["path"])
            if file not in self._mapped:
                try:
                    # Its path may lead elsewhere by now, and the device in `maps` is that of the node and not the node's own.
                    target = (thread / "map_files" / _as_named(mapping["range"])).stat()
                except FileNotFoundError:
                    continue  # unmapped meanwhile
                is_block = stat.S_ISBLK(target.st_mode)
                self._mapped[file] = self._numbers.get(device_number(target.st_rdev)) if is_block else None
            self._use(self._mapped[file], process, ", mapped into its memory")
        return bool(lines)

    def _use(self, name: str | None, process: Path, how: str) -> None:
        if name is not None:
            self.found[Use(name, f"{who(process)}{how}")] = None

    @contextmanager
    def _noting_errors(self, what: str) -> Iterator[None]:
        """Note what cannot be examined; a process that has ended meanwhile need not be."""
        try:
            yield
        except OSError as error:
            if not is_gone(error):
                self.unseen[NotExamined(what, error.strerror or str(error))] = None


@contextmanager
def _closed_meanwhile() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise


def _as_named(addresses: str) -> str:
    """Return a range as map_files names it: without the zeros in front that `maps` may have."""
    return "-".join(f"{int(address, 16):x}" for address in addresses.split("-"))
