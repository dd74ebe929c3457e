"""Checks of the block devices under a place: how their queue is set, what they cache, and whether they are at rest."""

from collections.abc import Callable, Iterator

from plinth.doctor.check import Check, NotSeen, Seen, set_to
from plinth.doctor.machine import Unreadable
from plinth.doctor.place import Place
from plinth.model.doctor import Remedy
from plinth.model.facts import StackNode
from plinth.model.place import EMULATED, MEMORY
from plinth.model.units import format_size

_LEAST_READ_AHEAD_KB, _MOST_READ_AHEAD_KB = 16, 1024
_BUSY_NOTE, _BUSY_WARNING = 0.05, 0.20
_EBS = "Amazon Elastic Block Store"
_GOOGLE_DISKS = ("PersistentDisk", "nvme_card-pd")


def _queue(device: StackNode, name: str) -> str:
    return f"/sys/block/{device.name.replace('/', '!')}/queue/{name}"


def _each(look: Callable[[Place, StackNode], Seen]) -> Callable[[Place], Iterator[Seen | NotSeen]]:
    """A check of every device with a queue: what one does not report is a gap, and the others are still examined."""

    def look_at_all(place: Place) -> Iterator[Seen | NotSeen]:
        devices = place.queues()
        if not devices:
            reasons = [gap.reason for gap in place.facts.gaps if "the devices below" in gap.what]
            in_memory = "it is in memory" if place.nodes(MEMORY) else None
            raise Unreadable(in_memory or "; ".join(reasons) or "no block device is known below it")
        for device in devices:
            try:
                yield _unless_set(place, device, look(place, device))
            except Unreadable as error:
                yield NotSeen(look.__name__.strip("_").replace("_", " "), str(error))

    return look_at_all


def _unless_set(place: Place, device: StackNode, seen: Seen) -> Seen:
    """Nothing is said against a knob that the experiment sets; it does so of the storage's own device, the top one."""
    if device is not place.queues()[0]:
        return seen
    return place.unless_asked(seen, *(f"{fact.name}={fact.value}" for fact in seen.readings)) if seen.remedy else seen


def _scheduler(place: Place, device: StackNode) -> Seen:
    fact = place.fact(device, "scheduler")
    rotational = place.fact(device, "rotational")
    readings = (fact, rotational)
    if fact.value == "bfq" and not rotational.value:
        remedy = set_to(_queue(device, "scheduler"), "none", fact.value)
        return Seen("warning", f"{device.name}: I/O scheduler bfq, on a disk that does not turn", readings, remedy)
    if fact.value == "none" and rotational.value and device.kind == "disk" and _is_hardware(place, device):
        remedy = set_to(_queue(device, "scheduler"), "mq-deadline", fact.value)
        return Seen("note", f"{device.name}: no I/O scheduler, on a disk that turns", readings, remedy)
    return Seen("ok", f"{device.name}: I/O scheduler {fact.value}", readings)


def _is_hardware(place: Place, device: StackNode) -> bool:
    """A virtio disk reports itself as rotating unless it is configured otherwise."""
    return not device.name.startswith(("vd", "xvd"))


def _write_cache(place: Place, device: StackNode) -> Seen:
    fact = place.fact(device, "write_cache")
    if fact.value == "write back":
        return Seen("ok", f"{device.name}: write back, so that the kernel sends flushes", (fact,))
    remedy = set_to(
        _queue(device, "write_cache"),
        "write back",
        fact.value,
        "only when the disk has a cache that a power cut empties: smartctl -g wcache, nvme get-feature -f 6",
    )
    saw = f"{device.name}: {fact.value}, so that the kernel sends it no flushes and an fsync waits for writes only"
    return Seen("note", saw, (fact,), remedy)


def _read_ahead(place: Place, device: StackNode) -> Seen:
    fact = place.fact(device, "read_ahead_kb")
    kib = int(fact.value) if isinstance(fact.value, int | str) else 0
    saw = f"{device.name}: read-ahead {kib} KiB"
    if _LEAST_READ_AHEAD_KB <= kib <= _MOST_READ_AHEAD_KB:
        return Seen("ok", saw, (fact,))
    what = "sequential scans wait for each page" if kib < _LEAST_READ_AHEAD_KB else "more is read than is asked for"
    return Seen("note", f"{saw}: {what}", (fact,), set_to(_queue(device, "read_ahead_kb"), 128, kib))


def _at_rest(place: Place, device: StackNode) -> Seen:
    before, after = place.machine.before, place.machine.after
    if reason := before.disks_unreadable or after.disks_unreadable:
        raise Unreadable(reason)
    if device.name not in before.disks or device.name not in after.disks:
        raise Unreadable(f"{device.name}: not in /proc/diskstats")
    start, end = before.disks[device.name], after.disks[device.name]
    window_s = after.at_s - before.at_s
    share = min(1.0, (end.busy_s - start.busy_s) / window_s)
    moved = (end.read_bytes - start.read_bytes, end.written_bytes - start.written_bytes)
    readings = (place.machine.fact("busy_share", round(share, 4), f"/proc/diskstats, over {window_s:.2g} s"),)
    saw = f"{device.name}: busy {share:.0%} of the time: {format_size(moved[0])} read, {format_size(moved[1])} written"
    if share < _BUSY_NOTE:
        return Seen("ok", saw, readings)
    remedy = Remedy(advice="find who it is (sudo iotop -oPa), and let it end")
    return Seen("warning" if share >= _BUSY_WARNING else "note", saw, readings, remedy)


def _loop(place: Place) -> Iterator[Seen | NotSeen]:
    loops = place.nodes("loop")
    if not loops:
        yield Seen("ok", "no loop device below", ())
    for device in loops:
        try:
            fact = place.fact(device, "direct_io")
        except Unreadable as error:
            yield NotSeen(f"direct I/O of {device.name}", str(error))
            continue
        if fact.value:
            yield Seen("ok", f"{device.name}: past the page cache (direct I/O)", (fact,))
        else:
            node = f"/dev/{device.name}"
            remedy = Remedy(
                commands=(f"sudo losetup --direct-io=on {node}",), undo=(f"sudo losetup --direct-io=off {node}",)
            )
            seen = Seen(
                "note", f"{device.name}: its file is cached a second time, below the file system", (fact,), remedy
            )
            yield place.unless_asked(seen, "direct_io=False")


def _emulated(place: Place) -> Iterator[Seen]:
    disks = place.nodes(EMULATED)
    if not disks:
        yield Seen("ok", "no emulated disk below", ())
    for disk in disks:
        yield Seen("note", f"{disk.name}: an emulated disk, whose speed was chosen, not found", disk.facts)


def _cloud_volume(place: Place) -> Iterator[Seen]:
    found = False
    for device in place.nodes("disk"):
        model = next((fact for fact in device.facts if fact.name == "model"), None)
        if model is None or str(model.value) not in (_EBS, *_GOOGLE_DISKS):
            continue
        found = True
        if model.value == _EBS:
            saw = f"{device.name}: a volume of Amazon EBS, whose type cannot be read from here: gp2 below 1,000 GiB, st1 and sc1 live on credits"
            ask = "aws ec2 describe-volumes; CloudWatch: BurstBalance"
        else:
            saw = f"{device.name}: a persistent disk of Google, whose limits grow with its size"
            ask = "gcloud compute disks describe DISK"
        yield Seen("note", saw, (model,), Remedy(advice=f"to see what it has: {ask}"))
    if not found:
        yield Seen("ok", "no cloud volume with credits is recognised", ())


CHECKS = (
    Check(
        "device.scheduler",
        "I/O scheduler",
        "A scheduler orders and delays requests. On an SSD it costs more than it gives; on a disk that turns it saves seeks.",
        _each(_scheduler),
    ),
    Check(
        "device.write_cache",
        "write cache",
        "What the kernel believes of the device's cache decides whether an fsync makes it flush. It is right for a device "
        "without volatile cache, and loses commits on any other.",
        _each(_write_cache),
    ),
    Check(
        "device.read_ahead",
        "read-ahead",
        "Scans are as fast as read-ahead lets them be, and random reads pay for what is read in vain.",
        _each(_read_ahead),
    ),
    Check(
        "device.at_rest",
        "other use of the device",
        "What others read and write there makes requests wait, and not the same in each trial.",
        _each(_at_rest),
    ),
    Check("device.loop", "loop devices", "A page that is cached twice takes memory from what is measured.", _loop),
    Check(
        "device.emulated",
        "emulated disks",
        "Its figures are those of its physics, as far as the machine is fast enough.",
        _emulated,
    ),
    Check(
        "device.cloud_volume",
        "cloud volumes",
        "What lives on credits is fast until they are spent: a short trial measures the burst, a long one the fall.",
        _cloud_volume,
    ),
)
