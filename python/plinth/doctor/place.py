"""A directory or device to examine, and checks of its file system: type, mount options, permissions, free space."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from plinth.doctor.check import Check, Observation
from plinth.doctor.machine import Machine, Unreadable
from plinth.model.base import Gap
from plinth.model.doctor import Finding, Remedy, Severity
from plinth.model.facts import Fact, StackNode, StorageFacts
from plinth.model.figures import percent
from plinth.model.place import MEMORY, NETWORK, RAW, MeaningKind, meanings
from plinth.model.units import format_size
from plinth.system.directory import sync_refusal
from plinth.system.timeout import call_with_timeout

_MOUNTINFO = "/proc/self/mountinfo"
_LOW_BYTES, _CRITICAL_BYTES = 2**30, 2**28
_LOW_SHARE = 0.10


@dataclass(frozen=True)
class Place:
    """A place where a data directory can be stored; `made` if Plinth created it for an experiment.

    `asked` holds the mount options that the experiment sets, and the settings of its device as "scheduler=none".
    """

    facts: StorageFacts
    machine: Machine
    made: bool
    asked: frozenset[str] = field(default=frozenset())

    @property
    def path(self) -> str:
        """The path that was examined."""
        return self.facts.path

    def nodes(self, *kinds: str) -> list[StackNode]:
        """Return the layers of these kinds, from the top."""
        return [node for node in self.facts.stack if node.kind in kinds]

    def queues(self) -> list[StackNode]:
        """Return the layers that have a request queue."""
        return [node for node in self.facts.stack if any(fact.name == "scheduler" for fact in node.facts)]

    def fact(self, node: StackNode, name: str) -> Fact:
        """Return a fact of a layer. Raises Unreadable with the reason of its gap."""
        for fact in node.facts:
            if fact.name == name and fact.value is not None:
                return fact
        what = f"{node.name}: {name}"
        reasons = [gap.reason for gap in self.facts.gaps if gap.what == what]
        raise Unreadable(f"{what}: {reasons[0] if reasons else 'it is not reported'}")

    @property
    def is_raw(self) -> bool:
        """Whether it has no file system: it is a member of another storage, which is examined separately."""
        return self.facts.filesystem == RAW

    def option(self, *names: str) -> str | None:
        """Return the first mount option among `names`, such as "data=writeback"; None if none is set."""
        return next((option for option in self.facts.mount_options if option in names), None)

    def options_fact(self) -> Fact:
        """Return the mount options as a fact."""
        return Fact(name="mount_options", value=list(self.facts.mount_options), source=_MOUNTINFO)

    def note_if_requested(self, observation: Observation, *options: str) -> Observation:
        """Return `observation`, or a note without remedy if the experiment sets one of these options."""
        if self.asked.isdisjoint(options):
            return observation
        return Observation("note", f"{observation.saw}; the experiment asks for it", observation.readings)

    def remount(self, options: str, before: str) -> Remedy:
        """Return a remedy that remounts with `options`; its undo remounts with `before`."""
        mount = self.facts.stack[0].name
        return Remedy(
            commands=(f"sudo mount -o remount,{options} {mount}",), undo=(f"sudo mount -o remount,{before} {mount}",)
        )


class _Judgement(NamedTuple):
    """Severity and advice for a kind of place; `made` is the severity where Plinth created it."""

    severity: Severity
    made: Severity
    advice: str


_JUDGEMENTS: Mapping[MeaningKind, _Judgement] = {
    "memory": _Judgement("warning", "note", "name a directory on a disk, unless memory is what you compare with"),
    "overlay": _Judgement(
        "warning", "warning", "measure on a volume: docker run -v /mnt/nvme0:/data, and plinth doctor /data"
    ),
    "network": _Judgement(
        "warning",
        "warning",
        "measure on the server itself, or on a disk of this machine; mount NFS hard, and export it sync",
    ),
    "program": _Judgement("warning", "warning", "measure on the file system below it"),
}
"""The other meanings have their own checks: place.kept, device.emulated."""


def _filesystem(place: Place) -> Iterator[Observation]:
    kind = place.facts.filesystem
    readings = (Fact(name="filesystem", value=kind, source=_MOUNTINFO),)
    said = [(answer, words) for what, words in meanings(place.facts) if (answer := _JUDGEMENTS.get(what))]
    for answer, words in said:
        severity = answer.made if place.made else answer.severity
        yield Observation(severity, words, readings, None if severity == "note" else Remedy(advice=answer.advice))
    if kind in ("zfs", "btrfs"):
        yield Observation(
            "note",
            f"{kind} is copy-on-write: it writes a changed block to a new location, so recycling WAL files gains nothing, and full-page writes may be unnecessary",
            readings,
            Remedy(
                advice="compare with wal_recycle=off, wal_init_zero=off; and with full_page_writes=off where pages are never torn"
            ),
        )
    elif not said:
        yield Observation("ok", f"file system: {kind}", readings)


def _flushes_honoured(place: Place) -> Iterator[Observation]:
    """Check whether flushes are honoured, as far as the layers report it."""
    facts = place.facts
    if facts.volatile:
        yield Observation(
            "note" if place.made else "warning",
            f"flushed data is lost in a power failure: {facts.volatile_reason}",
            (Fact(name="volatile", value=True, source="the layers below, as plinth storage describe shows them"),),
            None if place.made else Remedy(advice="choose a place on a disk, if the figures are to hold for one"),
        )
    if (option := place.option("nobarrier", "barrier=0")) is not None:
        observation = Observation(
            "problem",
            f"mounted {option}: an fsync returns without the device having flushed its cache",
            (place.options_fact(),),
            place.remount("barrier=1" if "=" in option else "barrier", option),
        )
        yield place.note_if_requested(observation, "nobarrier", "barrier=0")
    elif not facts.volatile:
        yield Observation("ok", "no layer is known to ignore a flush", (place.options_fact(),))


def _options(place: Place) -> Iterator[Observation]:
    found = False
    for observation in (_access_times(place), _discard(place), _journal(place), _sync(place)):
        if observation is not None:
            found = True
            yield observation
    if not found:
        yield Observation("ok", f"mount options: {','.join(place.facts.mount_options)}", (place.options_fact(),))


def _access_times(place: Place) -> Observation | None:
    if place.facts.filesystem == "zfs" or place.option("noatime") or place.option("relatime"):
        return None  # relatime writes once a day at most
    if place.nodes(MEMORY, NETWORK):
        return None
    before = "strictatime"
    saw = "mounted with access times: each read of a file may write to the disk"
    return place.note_if_requested(
        Observation("warning", saw, (place.options_fact(),), place.remount("noatime", before)), before, "atime"
    )


def _discard(place: Place) -> Observation | None:
    option = place.option("discard", "discard=sync")
    if option is None:
        return None
    saw = (
        f"mounted {option}: each deleted file, such as a WAL segment or a dropped table, makes the device trim at once"
    )
    return place.note_if_requested(
        Observation("note", saw, (place.options_fact(),), place.remount("nodiscard", option)), "discard", "discard=sync"
    )


def _journal(place: Place) -> Observation | None:
    option = place.option("data=journal", "data=writeback")
    if option is None:
        return None
    if option == "data=journal":
        saw = "mounted data=journal: all data is written twice, first to the journal"
        severity = "warning"
    else:
        saw = "mounted data=writeback: after a crash a file may contain stale data of the disk"
        severity = "note"
    advice = "ext4 cannot change data= on a remount: change /etc/fstab to data=ordered, umount, mount"
    return place.note_if_requested(Observation(severity, saw, (place.options_fact(),), Remedy(advice=advice)), option)


def _sync(place: Place) -> Observation | None:
    if place.option("sync") is None:
        return None
    saw = "mounted sync: each write waits for the disk, also those that PostgreSQL would flush later"
    return place.note_if_requested(
        Observation("warning", saw, (place.options_fact(),), place.remount("async", "sync")), "sync"
    )


def _writable(place: Place) -> Iterator[Observation]:
    if place.option("ro") is not None:
        yield Observation(
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
        yield Observation("ok", "this user may write there", readings)
    else:
        remedy = Remedy(advice="choose a directory that this user owns, or run as root")
        yield Observation("problem", f"this user may not write to {place.path}", readings, remedy)


def _directory_sync(place: Place) -> Iterator[Observation]:
    path = Path(place.path)
    try:
        refusal = call_with_timeout(lambda: sync_refusal(path), path)
    except OSError as error:
        raise Unreadable(f"{place.path}: {error.strerror}") from error
    readings = (Fact(name="directory_sync", value=refusal or "done", source="fsync(2)"),)
    if refusal is None:
        yield Observation("ok", "its file system syncs directories", readings)
        return
    saw = f"its file system refuses to sync a directory ({refusal}): PostgreSQL does not run there"
    yield Observation("problem", saw, readings, Remedy(advice="choose a directory on another file system"))


def _free_space(place: Place) -> Iterator[Observation | Gap]:
    total, free = place.facts.total_bytes, place.facts.free_bytes
    if total == 0:
        raise Unreadable("statvfs(3) reports no size of this file system")
    share = free / total
    readings = (
        Fact(name="free_bytes", value=free, source="statvfs(3)"),
        Fact(name="total_bytes", value=total, source="statvfs(3)"),
    )
    saw = f"{format_size(free)} of {format_size(total)} are free ({percent(share, 0)})"
    used = f"free some space: du -xh --max-depth=1 {place.path} | sort -h | tail"
    remedy = Remedy(advice=used if total >= 2 * _LOW_BYTES else "use a larger file system")
    if free < _LOW_BYTES and not place.made:
        yield Observation("problem" if free < _CRITICAL_BYTES else "warning", saw, readings, remedy)
    elif share < _LOW_SHARE:
        yield Observation("warning", saw, readings, remedy)
    else:
        yield Observation("ok", saw, readings)


def unreachable(path: str, message: str, hint: str | None) -> Finding:
    """Return the finding about a place that cannot be read."""
    return Finding(
        id="place.reachable",
        about=path,
        severity="problem",
        saw=message,
        readings=(),
        why="Nothing can be measured where nothing can be read.",
        remedy=Remedy(advice=hint) if hint else None,
    )


FLUSH_CHECK = Check(
    "place.kept",
    "whether flushes are honoured",
    "A commit is only as durable as the flush below it. Storage that ignores flushes is faster, and its figures do not "
    "hold for a disk.",
    _flushes_honoured,
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
        "They can add writes that PostgreSQL did not request, or omit writes that it relies on.",
        _options,
    ),
    Check("place.writable", "right to write", "Data directories, WAL and probes are written there.", _writable),
    Check(
        "place.directory_sync",
        "sync of directories",
        "PostgreSQL syncs a directory after it has made or renamed a file in it, and stops where that fails.",
        _directory_sync,
    ),
    Check(
        "place.room",
        "free space",
        "A trial that fills its file system fails; one that is nearly full fragments files, and an SSD without spare blocks "
        "has to erase blocks while it writes.",
        _free_space,
    ),
)
