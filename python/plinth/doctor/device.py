"""Checks of the block devices below a directory: queue settings, write cache, and I/O by others."""

from collections.abc import Callable, Iterator

from plinth.doctor.check import Check, Observation, set_to
from plinth.doctor.machine import Unreadable
from plinth.doctor.place import Place
from plinth.model.base import Gap
from plinth.model.doctor import Remedy
from plinth.model.facts import StackNode
from plinth.model.figures import percent
from plinth.model.place import EMULATED, MEMORY
from plinth.model.units import format_size

_MIN_READ_AHEAD_KB, _MAX_READ_AHEAD_KB = 16, 1024
_BUSY_NOTE, _BUSY_WARNING = 0.05, 0.20
_EBS = "Amazon Elastic Block Store"
_GOOGLE_DISKS = ("PersistentDisk", "nvme_card-pd")


def _queue(device: StackNode, name: str) -> str:
    return f"/sys/block/{device.name.replace('/', '!')}/queue/{name}"


def _each_device(
    check: Callable[[Place, StackNode], Observation],
) -> Callable[[Place], Iterator[Observation | Gap]]:
    """Apply `check` to every device that has a request queue. A device that cannot be read yields a gap."""

    def check_all(place: Place) -> Iterator[Observation | Gap]:
        devices = place.queues()
        if not devices:
            reasons = [gap.reason for gap in place.facts.gaps if "the devices below" in gap.what]
            in_memory = "it is in memory" if place.nodes(MEMORY) else None
            raise Unreadable(in_memory or "; ".join(reasons) or "no block device is known below it")
        for device in devices:
            try:
                yield _note_if_set(place, device, check(place, device))
            except Unreadable as error:
                yield Gap(what=check.__name__.strip("_").replace("_", " "), reason=str(error))

    return check_all


def _note_if_set(place: Place, device: StackNode, observation: Observation) -> Observation:
    """Reduce a warning about a setting of the top device to a note if the experiment sets it."""
    if device is not place.queues()[0]:
        return observation
    return (
        place.note_if_requested(observation, *(f"{fact.name}={fact.value}" for fact in observation.readings))
        if observation.remedy
        else observation
    )


def _scheduler(place: Place, device: StackNode) -> Observation:
    fact = place.fact(device, "scheduler")
    rotational = place.fact(device, "rotational")
    readings = (fact, rotational)
    if fact.value == "bfq" and not rotational.value:
        remedy = set_to(_queue(device, "scheduler"), "none", fact.value)
        return Observation("warning", f"{device.name}: I/O scheduler bfq, on a non-rotational disk", readings, remedy)
    if fact.value == "none" and rotational.value and device.kind == "disk" and _is_hardware(device):
        remedy = set_to(_queue(device, "scheduler"), "mq-deadline", fact.value)
        return Observation("note", f"{device.name}: no I/O scheduler, on a rotational disk", readings, remedy)
    return Observation("ok", f"{device.name}: I/O scheduler {fact.value}", readings)


def _is_hardware(device: StackNode) -> bool:
    """Return whether it is not a virtio or Xen disk, which reports itself as rotating by default."""
    return not device.name.startswith(("vd", "xvd"))


def _write_cache(place: Place, device: StackNode) -> Observation:
    fact = place.fact(device, "write_cache")
    if fact.value == "write back":
        return Observation("ok", f"{device.name}: write back, so that the kernel sends flushes", (fact,))
    remedy = set_to(
        _queue(device, "write_cache"),
        "write back",
        fact.value,
        "only when the disk has a cache that a power cut empties: smartctl -g wcache, nvme get-feature -f 6",
    )
    saw = f"{device.name}: {fact.value}, so that the kernel sends it no flushes and an fsync waits for writes only"
    return Observation("note", saw, (fact,), remedy)


def _read_ahead(place: Place, device: StackNode) -> Observation:
    fact = place.fact(device, "read_ahead_kb")
    kib = int(fact.value) if isinstance(fact.value, int | str) else 0
    saw = f"{device.name}: read-ahead {kib} KiB"
    if _MIN_READ_AHEAD_KB <= kib <= _MAX_READ_AHEAD_KB:
        return Observation("ok", saw, (fact,))
    what = "sequential scans wait for each page" if kib < _MIN_READ_AHEAD_KB else "more is read than is requested"
    return Observation("note", f"{saw}: {what}", (fact,), set_to(_queue(device, "read_ahead_kb"), 128, kib))


def _other_use(place: Place, device: StackNode) -> Observation:
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
    saw = f"{device.name}: busy {percent(share, 0)} of the time: {format_size(moved[0])} read, {format_size(moved[1])} written"
    if share < _BUSY_NOTE:
        return Observation("ok", saw, readings)
    remedy = Remedy(advice="find the process (sudo iotop -oPa), and wait until it has ended")
    return Observation("warning" if share >= _BUSY_WARNING else "note", saw, readings, remedy)


def _loop(place: Place) -> Iterator[Observation | Gap]:
    loops = place.nodes("loop")
    if not loops:
        yield Observation("ok", "no loop device below", ())
    for device in loops:
        try:
            fact = place.fact(device, "direct_io")
        except Unreadable as error:
            yield Gap(what=f"direct I/O of {device.name}", reason=str(error))
            continue
        if fact.value:
            yield Observation("ok", f"{device.name}: bypasses the page cache (direct I/O)", (fact,))
        else:
            node = f"/dev/{device.name}"
            remedy = Remedy(
                commands=(f"sudo losetup --direct-io=on {node}",), undo=(f"sudo losetup --direct-io=off {node}",)
            )
            observation = Observation(
                "note", f"{device.name}: its file is cached a second time, below the file system", (fact,), remedy
            )
            yield place.note_if_requested(observation, "direct_io=False")


def _emulated(place: Place) -> Iterator[Observation]:
    disks = place.nodes(EMULATED)
    if not disks:
        yield Observation("ok", "no emulated disk below", ())
    for disk in disks:
        yield Observation("note", f"{disk.name}: an emulated disk, whose speed is configured, not measured", disk.facts)


def _cloud_volume(place: Place) -> Iterator[Observation]:
    found = False
    for device in place.nodes("disk"):
        model = next((fact for fact in device.facts if fact.name == "model"), None)
        if model is None or str(model.value) not in (_EBS, *_GOOGLE_DISKS):
            continue
        found = True
        if model.value == _EBS:
            saw = f"{device.name}: a volume of Amazon EBS, whose type cannot be read from here: gp2 below 1,000 GiB, st1 and sc1 depend on burst credits"
            ask = "aws ec2 describe-volumes; CloudWatch: BurstBalance"
        else:
            saw = f"{device.name}: a persistent disk of Google, whose limits grow with its size"
            ask = "gcloud compute disks describe DISK"
        yield Observation("note", saw, (model,), Remedy(advice=f"to see its type and limits: {ask}"))
    if not found:
        yield Observation("ok", "no cloud volume with credits is recognised", ())


CHECKS = (
    Check(
        "device.scheduler",
        "I/O scheduler",
        "A scheduler orders and delays requests. On an SSD it costs more than it gains; on a rotational disk it saves seeks.",
        _each_device(_scheduler),
    ),
    Check(
        "device.write_cache",
        "write cache",
        "This setting decides whether the kernel sends a flush to the device on fsync. write through is correct for a device "
        "without a volatile cache; on any other it loses commits.",
        _each_device(_write_cache),
    ),
    Check(
        "device.read_ahead",
        "read-ahead",
        "Read-ahead limits the speed of sequential scans; too much of it slows random reads.",
        _each_device(_read_ahead),
    ),
    Check(
        "device.at_rest",
        "other use of the device",
        "I/O by others delays requests, and differs from trial to trial.",
        _each_device(_other_use),
    ),
    Check(
        "device.loop",
        "loop devices",
        "Without direct I/O each page is cached twice, which leaves less memory for the server.",
        _loop,
    ),
    Check(
        "device.emulated",
        "emulated disks",
        "The figures are those of the configured model, as long as the machine is fast enough to emulate it.",
        _emulated,
    ),
    Check(
        "device.cloud_volume",
        "cloud volumes",
        "A volume with burst credits is fast until they are spent: a short trial measures the burst, a long one the baseline.",
        _cloud_volume,
    ),
)
