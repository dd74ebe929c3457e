"""What a place is, and checks of its file system: what it is, how it is mounted, and what room it has."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from plinth.doctor.check import Check, NotSeen, Seen
from plinth.doctor.machine import Machine, Unreadable
from plinth.model.doctor import Finding, Remedy, Severity
from plinth.model.facts import Fact, StackNode, StorageFacts
from plinth.model.place import MEMORY, NETWORK, RAW, MeaningKind, meanings
from plinth.model.units import format_size
from plinth.system.timeout import call_with_timeout

_MOUNTINFO = "/proc/self/mountinfo"
_LITTLE_BYTES, _LEAST_BYTES = 2**30, 2**28
_LITTLE_SHARE = 0.10


@dataclass(frozen=True)
class Place:
    """A place where a data directory can be stored, as it was described; `made` when Plinth has made it as it was asked to.

    `asked` has the mount options that the experiment gives, and the knobs of its device as "scheduler=none".
    """

    facts: StorageFacts
    machine: Machine
    made: bool
    asked: frozenset[str] = field(default=frozenset())

    @property
    def path(self) -> str:
        """Where it is."""
        return self.facts.path

    def nodes(self, *kinds: str) -> list[StackNode]:
        """The layers of these kinds, the top first."""
        return [node for node in self.facts.stack if node.kind in kinds]

    def queues(self) -> list[StackNode]:
        """The layers that have a queue of requests."""
        return [node for node in self.facts.stack if any(fact.name == "scheduler" for fact in node.facts)]

    def fact(self, node: StackNode, name: str) -> Fact:
        """A fact of a layer. Raises Unreadable with the reason of its gap."""
        for fact in node.facts:
            if fact.name == name and fact.value is not None:
                return fact
        what = f"{node.name}: {name}"
        reasons = [gap.reason for gap in self.facts.gaps if gap.what == what]
        raise Unreadable(f"{what}: {reasons[0] if reasons else 'it is not reported'}")

    @property
    def is_raw(self) -> bool:
        """It has no file system: it is a member of another storage, which is examined by itself."""
        return self.facts.filesystem == RAW

    def option(self, *names: str) -> str | None:
        """The first mount option of these names, as it is written: "data=writeback"."""
        return next((option for option in self.facts.mount_options if option in names), None)

    def options_fact(self) -> Fact:
        """The mount options, and where they were read."""
        return Fact(name="mount_options", value=list(self.facts.mount_options), source=_MOUNTINFO)

    def unless_asked(self, seen: Seen, *options: str) -> Seen:
        """`seen`, but no more than a note and without advice where the experiment gives one of these options."""
        if self.asked.isdisjoint(options):
            return seen
        return Seen("note", f"{seen.saw}; the experiment asks for it", seen.readings)

    def remount(self, options: str, before: str) -> Remedy:
        """Mount it with other options; the undo mounts it as it was."""
        mount = self.facts.stack[0].name
        return Remedy(
            commands=(f"sudo mount -o remount,{options} {mount}",), undo=(f"sudo mount -o remount,{before} {mount}",)
        )


class _Answer(NamedTuple):
    """What is said of a place that means something: how bad it is, where Plinth has made it so, and what to do."""

    severity: Severity
    made: Severity
    advice: str


_ANSWERS: Mapping[MeaningKind, _Answer] = {
    "memory": _Answer("warning", "note", "name a directory on a disk, unless memory is what you compare with"),
    "overlay": _Answer(
        "warning", "warning", "measure on a volume: docker run -v /mnt/nvme0:/data, and plinth doctor /data"
    ),
    "network": _Answer(
        "warning",
        "warning",
        "measure on the server itself, or on a disk of this machine; mount NFS hard, and export it sync",
    ),
    "program": _Answer("warning", "warning", "measure on what is below it"),
}
"""The other meanings have their own checks: place.kept, device.emulated."""


def _filesystem(place: Place) -> Iterator[Seen]:
    kind = place.facts.filesystem
    readings = (Fact(name="filesystem", value=kind, source=_MOUNTINFO),)
    said = [(answer, words) for what, words in meanings(place.facts) if (answer := _ANSWERS.get(what))]
    for answer, words in said:
        severity = answer.made if place.made else answer.severity
        yield Seen(severity, words, readings, None if severity == "note" else Remedy(advice=answer.advice))
    if kind in ("zfs", "btrfs"):
        yield Seen(
            "note",
            f"{kind} writes a changed block to a new place: WAL recycling and full-page writes protect against nothing there",
            readings,
            Remedy(
                advice="compare with wal_recycle=off, wal_init_zero=off; and with full_page_writes=off where a record is never torn"
            ),
        )
    elif not said:
        yield Seen("ok", f"file system: {kind}", readings)


def _kept(place: Place) -> Iterator[Seen]:
    """Whether a flush is honoured, as far as the layers show."""
    facts = place.facts
    if facts.volatile:
        yield Seen(
            "note" if place.made else "warning",
            f"what is flushed there is lost at a power cut: {facts.volatile_reason}",
            (Fact(name="volatile", value=True, source="the layers below, as plinth storage describe shows them"),),
            None if place.made else Remedy(advice="choose a place on a disk, if the figures are to hold for one"),
        )
    if (option := place.option("nobarrier", "barrier=0")) is not None:
        seen = Seen(
            "problem",
            f"mounted {option}: an fsync returns without the device having flushed its cache",
            (place.options_fact(),),
            place.remount("barrier=1" if "=" in option else "barrier", option),
        )
        yield place.unless_asked(seen, "nobarrier", "barrier=0")
    elif not facts.volatile:
        yield Seen("ok", "no layer is known to ignore a flush", (place.options_fact(),))


def _options(place: Place) -> Iterator[Seen]:
    found = False
    for seen in (_access_times(place), _discard(place), _journal(place), _sync(place)):
        if seen is not None:
            found = True
            yield seen
    if not found:
        yield Seen("ok", f"mount options: {','.join(place.facts.mount_options)}", (place.options_fact(),))


def _access_times(place: Place) -> Seen | None:
    if place.facts.filesystem == "zfs" or place.option("noatime") or place.option("relatime"):
        return None  # relatime writes once a day at most
    if place.nodes(MEMORY, NETWORK):
        return None
    before = "strictatime"
    saw = "mounted with access times: each read of a file may write to the disk"
    return place.unless_asked(
        Seen("warning", saw, (place.options_fact(),), place.remount("noatime", before)), before, "atime"
    )


def _discard(place: Place) -> Seen | None:
    option = place.option("discard", "discard=sync")
    if option is None:
        return None
    saw = (
        f"mounted {option}: each deleted file, such as a WAL segment or a dropped table, makes the device trim at once"
    )
    return place.unless_asked(
        Seen("note", saw, (place.options_fact(),), place.remount("nodiscard", option)), "discard", "discard=sync"
    )


def _journal(place: Place) -> Seen | None:
    option = place.option("data=journal", "data=writeback")
    if option is None:
        return None
    if option == "data=journal":
        saw = "mounted data=journal: all data is written twice, first to the journal"
        severity = "warning"
    else:
        saw = "mounted data=writeback: after a crash a file may hold what was on the disk before"
        severity = "note"
    advice = "ext4 takes another data= only when it is mounted anew: change /etc/fstab to data=ordered, umount, mount"
    return place.unless_asked(Seen(severity, saw, (place.options_fact(),), Remedy(advice=advice)), option)


def _sync(place: Place) -> Seen | None:
    if place.option("sync") is None:
        return None
    saw = "mounted sync: each write waits for the disk, also those that PostgreSQL meant to flush later"
    return place.unless_asked(Seen("warning", saw, (place.options_fact(),), place.remount("async", "sync")), "sync")


def _writable(place: Place) -> Iterator[Seen]:
    if place.option("ro") is not None:
        yield Seen(
            "problem",
            f"{place.path} is mounted read-only: no data directory can be stored there",
            (place.options_fact(),),
            place.remount("rw", "ro"),
        )
        return
    try:
        writable = call_with_timeout(lambda: os.access(place.path, os.W_OK | os.X_OK), Path(place.path))
    except OSError as error:
        raise Unreadable(f"{place.path}: {error.strerror}") from error
    readings = (Fact(name="writable", value=writable, source="access(2)"),)
    if writable:
        yield Seen("ok", "this user may write there", readings)
    else:
        remedy = Remedy(advice="choose a directory of this user's, or run as root")
        yield Seen("problem", f"this user may not write to {place.path}", readings, remedy)


def _room(place: Place) -> Iterator[Seen | NotSeen]:
    total, free = place.facts.total_bytes, place.facts.free_bytes
    if total == 0:
        raise Unreadable("statvfs(3) reports no size of this file system")
    share = free / total
    readings = (
        Fact(name="free_bytes", value=free, source="statvfs(3)"),
        Fact(name="total_bytes", value=total, source="statvfs(3)"),
    )
    saw = f"{format_size(free)} of {format_size(total)} are free ({share:.0%})"
    used = f"free some space: du -xh --max-depth=1 {place.path} | sort -h | tail"
    remedy = Remedy(advice=used if total >= 2 * _LITTLE_BYTES else "take a larger file system")
    if free < _LITTLE_BYTES and not place.made:
        yield Seen("problem" if free < _LEAST_BYTES else "warning", saw, readings, remedy)
    elif share < _LITTLE_SHARE:
        yield Seen("warning", saw, readings, remedy)
    else:
        yield Seen("ok", saw, readings)


def unreachable(path: str, message: str, hint: str | None) -> Finding:
    """The finding about a place of which nothing can be learnt."""
    return Finding(
        id="place.reachable",
        about=path,
        severity="problem",
        saw=message,
        readings=(),
        why="Nothing can be measured where nothing can be read.",
        remedy=Remedy(advice=hint) if hint else None,
    )


KEPT = Check(
    "place.kept",
    "whether flushes are honoured",
    "A commit is as safe as the flush below it. A place that does not wait for the disk is faster and proves nothing "
    "about one.",
    _kept,
)
FILE_SYSTEM_CHECKS = (
    Check(
        "place.filesystem",
        "file system",
        "Figures hold for all layers together, the file system among them.",
        _filesystem,
    ),
    Check(
        "place.options",
        "mount options",
        "They add writes that PostgreSQL did not ask for, or leave out those that it counts on.",
        _options,
    ),
    Check("place.writable", "right to write", "Data directories, WAL and probes are written there.", _writable),
    Check(
        "place.room",
        "free space",
        "A trial that fills its file system fails; one that is nearly full spreads files over what gaps are left, and an SSD "
        "without spare blocks erases while it writes.",
        _room,
    ),
)
