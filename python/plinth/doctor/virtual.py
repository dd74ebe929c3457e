"""Checks of hypervisor, container, cloud and kernel version."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from plinth.doctor.check import Check, Observation
from plinth.doctor.machine import Machine, Unreadable
from plinth.model.doctor import Remedy, Severity
from plinth.model.facts import Fact
from plinth.model.units import format_decimal_size
from plinth.system.cgroup import IoLimit, io_limits

_DMI = "/sys/class/dmi/id"
_CPUINFO = "/proc/cpuinfo"
_CONTAINER_MARKS = {"/run/.containerenv": "podman", "/.dockerenv": "docker"}
_CONTAINER_GROUPS = re.compile(r"\b(docker|kubepods|lxc|libpod|containerd)\b")
_RELEASE = "/proc/sys/kernel/osrelease"


class Cloud(NamedTuple):
    """A cloud provider, recognised by the DMI string `key`.

    `bursting` matches burstable instance types, where DMI names the type. `credits` describes which resources have burst
    credits, and `ask` is the command that shows them.
    """

    name: str
    key: str
    says: re.Pattern[str]
    bursting: re.Pattern[str] | None
    credits: str
    ask: str


# Sources: the providers' documentation on burstable instances and disk performance, and on how to identify an instance.
CLOUDS = (
    Cloud(
        "Amazon EC2",
        "sys_vendor",
        re.compile("Amazon EC2"),
        re.compile(r"t\d\w*\."),
        "T instances have CPU credits; gp2 volumes below 1,000 GiB, st1 and sc1 have I/O credits, and smaller "
        "instances reach their EBS bandwidth for 30 minutes a day only",
        "aws ec2 describe-volumes --filters Name=attachment.instance-id,Values=INSTANCE --query 'Volumes[].VolumeType'; "
        "CloudWatch: CPUCreditBalance, BurstBalance",
    ),
    Cloud(
        "Microsoft Azure",
        "chassis_asset_tag",
        re.compile("7783-7084-3265-9085-8269-3286-77"),
        None,
        "B sizes have CPU credits; premium SSDs of 512 GiB and less, standard SSDs and the machine's own I/O limit may burst on credits",
        "curl -s -H Metadata:true 'http://169.254.169.254/metadata/instance/compute/vmSize?api-version=2021-02-01&format=text'",
    ),
    Cloud(
        "Google Compute Engine",
        "product_name",
        re.compile("Google Compute Engine"),
        None,
        "shared-core types (e2-micro, e2-small, e2-medium, f1, g1) burst; a persistent disk's limits grow with its size and with "
        "the number of processors",
        "curl -s -H Metadata-Flavor:Google http://metadata.google.internal/computeMetadata/v1/instance/machine-type",
    ),
    Cloud(
        "Alibaba Cloud",
        "sys_vendor",
        re.compile("Alibaba Cloud"),
        None,
        "t5 and t6 instances have CPU credits; ESSD AutoPL disks may burst",
        "curl -s http://100.100.100.200/latest/meta-data/instance/instance-type",
    ),
)


def _hypervisor(machine: Machine) -> Iterator[Observation]:
    flags = re.search(r"^flags\s*:(.*)$", machine.text(_CPUINFO), re.MULTILINE)
    if machine.exists("/sys/hypervisor/type"):
        hypervisor, source = machine.text("/sys/hypervisor/type"), "/sys/hypervisor/type"
    elif flags is None:
        raise Unreadable(f"{_CPUINFO} has no flags, which show a hypervisor on x86 only")
    elif "hypervisor" not in flags[1].split():
        yield Observation("ok", "no hypervisor detected", (machine.fact("hypervisor", False, _CPUINFO),))
        return
    else:
        hypervisor, source = _product(machine)
    saw = f"this is a virtual machine ({hypervisor})"
    yield Observation("note", saw, (machine.fact("hypervisor", hypervisor, source),))


def _product(machine: Machine) -> tuple[str, str]:
    try:
        parts = [machine.text(f"{_DMI}/{name}") for name in ("sys_vendor", "product_name")]
    except Unreadable as error:
        return f"vendor unknown: {error}", f"{_CPUINFO}, flag hypervisor"
    return " ".join(parts), f"{_DMI}/sys_vendor, product_name"


def _container(machine: Machine) -> Iterator[Observation]:
    kind, source = _container_found(machine)
    if kind is None:
        yield Observation("ok", "no container detected", (machine.fact("container", False, source),))
        return
    advice = "measure on a volume, not on the container's own file system, and without limits of CPU time"
    yield Observation(
        "note", f"this is a container ({kind})", (machine.fact("container", kind, source),), Remedy(advice=advice)
    )


def _container_found(machine: Machine) -> tuple[str | None, str]:
    for mark, kind in _CONTAINER_MARKS.items():
        if machine.exists(mark):
            return kind, mark
    groups = machine.text("/proc/1/cgroup")
    found = _CONTAINER_GROUPS.search(groups)
    return (found[1] if found else None), "/proc/1/cgroup"


def _io_limit(machine: Machine) -> Iterator[Observation]:
    try:
        limits = io_limits(machine.root)
    except (OSError, ValueError) as error:
        raise Unreadable(f"control groups: {machine.reason(error)}") from error
    if not limits:
        yield Observation("ok", "no control group limits I/O", ())
        return
    names = {limit.device: _device_name(machine, limit.device) for limit in limits}
    readings = tuple(
        machine.fact(f"{names[limit.device]}: {limit.what} a second", limit.per_s, machine.host_path(limit.source))
        for limit in limits
    )
    each = [f"{names[limit.device]} to {_rate(limit)}" for limit in limits]
    advice = (
        "measure without it (docker: --device-read-bps and its like), or say it with the figures: they are the limit's"
    )
    yield Observation("warning", f"a control group limits {', '.join(each)}", readings, Remedy(advice=advice))


def _rate(limit: IoLimit) -> str:
    if limit.what.startswith("bytes"):
        return f"{format_decimal_size(limit.per_s)}/s {limit.what.removeprefix('bytes ')}"
    return f"{limit.per_s:,} {limit.what}/s"


def _device_name(machine: Machine, device: str) -> str:
    try:
        return machine.link(f"/sys/dev/block/{device}").rpartition("/")[2]
    except Unreadable:  # it is not there any more, or not in this container
        return f"device {device}"


def _credits(machine: Machine) -> Iterator[Observation]:
    for cloud in CLOUDS:
        path = f"{_DMI}/{cloud.key}"
        if machine.exists(path) and cloud.says.search(machine.text(path)):
            yield _in_cloud(machine, cloud)
            return
    vendor = machine.text(f"{_DMI}/sys_vendor")
    facts = (machine.fact("sys_vendor", vendor, f"{_DMI}/sys_vendor"),)
    yield Observation("ok", f"no cloud with burst credits is recognised ({vendor})", facts)


def _in_cloud(machine: Machine, cloud: Cloud) -> Observation:
    readings: list[Fact] = [machine.fact("cloud", cloud.name, f"{_DMI}/{cloud.key}")]
    instance, severity = "", "note"
    if cloud.bursting is not None:
        product = machine.text(f"{_DMI}/product_name")
        readings.append(machine.fact("instance_type", product, f"{_DMI}/product_name"))
        instance = f" ({product})"
        severity: Severity = "warning" if cloud.bursting.match(product) else "note"
    advice = f"measure longer than the credits last, or on a type without them; to see type and credits: {cloud.ask}"
    return Observation(
        severity,
        f"this is {cloud.name}{instance}: {cloud.credits}",
        tuple(readings),
        Remedy(advice=advice),
    )


def _kernel(machine: Machine) -> Iterator[Observation]:
    release = machine.text(_RELEASE)
    match = re.match(r"(\d+)\.(\d+)", release)
    if match is None:
        raise Unreadable(f"{_RELEASE}: no version in {release!r}")
    version = (int(match[1]), int(match[2]))
    readings = (machine.fact("kernel", release, _RELEASE),)
    advice = Remedy(advice="run a newer kernel")
    if version < (4, 13):
        saw = f"Linux {release}: a write that failed in the background may be reported to no fsync (fixed in 4.13)"
        yield Observation("warning", saw, readings, advice)
    if version < (5, 5):
        saw = f"Linux {release} does not count the flushes of devices (5.5 and later do)"
        yield Observation("note", saw, readings, advice)
    else:
        yield Observation("ok", f"Linux {release}", readings)


CHECKS = (
    Check(
        "virtual.hypervisor",
        "hypervisor",
        "The host controls frequency, caches and the underlying disk; a flush may end in its page cache. Figures hold for "
        "this machine on this host, and noisy neighbours can affect results.",
        _hypervisor,
    ),
    Check(
        "virtual.container",
        "container",
        "A container's own file system is an overlay, and its limits stop processes that use too much.",
        _container,
    ),
    Check(
        "virtual.io_limit",
        "limit of I/O",
        "The kernel holds requests back that are beyond the limit: what is measured then is the limit, not the device.",
        _io_limit,
    ),
    Check(
        "virtual.credits",
        "burst credits",
        "A resource with burst credits is fast until they are spent: a short trial measures the burst, a long one the baseline.",
        _credits,
    ),
    Check(
        "kernel.version",
        "kernel",
        "Older kernels report fewer errors and statistics of block devices.",
        _kernel,
    ),
)
