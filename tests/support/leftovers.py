"""What storages leave on a machine: everything that a test must find as it was before."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from plinth.system.mounts import mounts
from waiting import wait_until

# Not read_ahead_kb: the kernel computes it for each file that is attached.
_KNOBS = ("scheduler", "write_cache", "nr_requests", "wbt_lat_usec")


class Found(NamedTuple):
    """What has `mark`, a part of every path and label of the test's own."""

    mounts: list[str]
    loops: list[str]
    processes: list[str]
    files: list[str]


def found(mark: Path) -> Found:
    """What there is of a test whose files are all below `mark`."""
    return Found(
        mounts=[f"{mount.source} on {mount.point}" for mount in mounts() if _within(mount.point, mark)],
        loops=[loop["name"] for loop in _loops() if _within(loop["back-file"], mark)],
        processes=[line for line in map(_command, Path("/proc").glob("[0-9]*")) if str(mark) in line],
        files=sorted(str(path) for path in mark.rglob("*") if _is_ours(path.relative_to(mark))),
    )


@contextmanager
def nothing_left(mark: Path) -> Iterator[None]:
    """What is within leaves nothing behind: mounts, loop devices, zram, pools, arrays, processes, files, knobs."""
    before, knobs, nameless = found(mark), _knobs(), _nameless()
    yield
    after = found(mark)
    differing = {
        what: {"before": was, "after": is_}
        for what, was, is_ in zip(Found._fields, before, after, strict=True)
        if was != is_
    }
    assert not differing, differing
    # Runs of other tests make such things too, and undo them; the longest takes a minute.
    new = _nameless() - nameless
    with contextlib.suppress(AssertionError):
        wait_until(lambda: not _nameless() & new, timeout_s=180)
    assert not _nameless() & new
    with contextlib.suppress(AssertionError):  # the kernel sets them back once it has detached a device, by and by
        wait_until(lambda: not _changed(knobs), timeout_s=5)
    assert not _changed(knobs), f"knobs of block devices outlive what was attached to them: {_changed(knobs)}"


def _nameless() -> set[str]:
    """What shows no path or label of whoever made it: zram devices, btrfs file systems, arrays. None comes back by the same name."""
    devices = [folder for kind in ("zram*", "md*", "dm-*") for folder in Path("/sys/block").glob(kind)]
    names = {entry.name for entry in Path("/sys/fs/btrfs").glob("*-*")}
    for device in devices:
        with contextlib.suppress(FileNotFoundError):  # it has just ended
            names.add(f"{device.name}, disk {(device / 'diskseq').read_text().strip()}")
    return names


def _changed(knobs: dict[str, str]) -> dict[str, str]:
    """Knobs with another value than before. The kernel itself turns the cache of a device on when a file is first attached to it."""
    return {
        knob: value
        for knob, value in _knobs().items()
        if knobs.get(knob, value) != value and (Path(knob).name, value) != ("write_cache", "write back")
    }


def _is_ours(path: Path) -> bool:
    """Whether it is a journal, or lies in a folder with a label of ours."""
    return path.parent.name == "journal" or any(part.startswith("plinth-") for part in path.parts)


def _within(path: str, mark: Path) -> bool:
    return Path(path.removesuffix(" (deleted)")).is_relative_to(mark)


def _loops() -> list[dict[str, str]]:
    listed = subprocess.run(["losetup", "--json", "--list"], check=True, capture_output=True, text=True).stdout
    return json.loads(listed)["loopdevices"] if listed.strip() else []


def _command(process: Path) -> str:
    if process.name == str(os.getpid()):
        return ""
    try:
        return (process / "cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""  # it has ended


def _knobs() -> dict[str, str]:
    """The knobs of loop devices that nobody uses now: those of others change as those please."""
    values = {}
    for queue in Path("/sys/block").glob("loop*/queue"):
        if (queue.parent / "loop/backing_file").exists():
            continue
        for knob in _KNOBS:
            try:
                values[str(queue / knob)] = (queue / knob).read_text().strip()
            except OSError:
                continue  # a knob that this device has not
    return values
