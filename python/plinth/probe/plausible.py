"""Checks whether results of the fsync probe are plausible: does a flush reach durable media?

Three signs speak against it. A flush on a rotating disk waits for the platter: at 15,000 revolutions a minute that makes
250 flushes a second of one writer, and never more than twice that. A flush to any other device is a request that
travels there and back, which takes some microseconds over PCIe alone. And the kernel counts the flushes that it sends
to a device: where it counts far fewer than fsync returned, most of them flushed nothing. A file system may send some of
its own (ext4's ext4lazyinit sends one for each group of inodes that it zeroes, even when mounted with barrier=0), so that
a few do not show that fsync sends any.
"""

import re
from collections.abc import Sequence

from plinth.model.facts import StackNode, StorageFacts
from plinth.model.place import EMULATED, NETWORK
from plinth.model.probe import FsyncResult, Plausibility
from plinth.model.units import format_duration
from plinth.probe.place import devices

MOST_FLUSHES_OF_ROTATING_PER_S = 500.0
SHORTEST_FLUSH_NS = 5_000
FEWEST_OPS = 10
"""Minimum number of operations for a verdict."""
FEWEST_FLUSHES_OF_AN_FSYNC = 0.5
"""Minimum flushes per fsync of one writer. Each fsync sends at least one; fewer than half come from other sources."""
_VIRTUAL = re.compile(r"(x?vd)[a-z]+")


def judge(facts: StorageFacts, results: Sequence[FsyncResult], flush_device: str | None) -> Plausibility:
    """Return the verdict on a directory from its facts and the results."""
    if facts.volatile:
        reason = facts.volatile_reason or "it forgets"
        return Plausibility(verdict="volatile", reasons=(f"a power cut loses what was flushed: {reason}",))
    alone = [result for result in results if _is_durable(result) and result.case.writers == 1]
    if not alone:
        reason = f"fewer than {FEWEST_OPS} durable writes of one writer were measured, of any method"
        return Plausibility(verdict="unknown", reasons=(reason,))
    fastest = min(alone, key=_median_ns)
    warnings = [*_too_fast(facts, fastest), *_not_flushed(facts, alone, flush_device)]
    if warnings:
        return Plausibility(verdict="suspicious", reasons=tuple(warnings))
    if unknown := _reasons_for_doubt(facts, fastest, flush_device):
        return Plausibility(verdict="unknown", reasons=unknown)
    return Plausibility(verdict="plausible", reasons=(_plausible_reason(fastest, alone, flush_device),))


def _is_durable(result: FsyncResult) -> bool:
    return result.case.method != "none" and result.figure is not None and result.figure.ops >= FEWEST_OPS


def _median_ns(result: FsyncResult) -> int:
    assert result.figure is not None, "only cases with a figure are looked at"
    return result.figure.median_ns


def _too_fast(facts: StorageFacts, fastest: FsyncResult) -> list[str]:
    median_ns = _median_ns(fastest)
    took = format_duration(median_ns / 1e9)
    if median_ns < SHORTEST_FLUSH_NS:
        return [
            f"a durable write took {median_ns / 1e3:.3g} us ({fastest.case.label}), less than a request needs to travel to "
            "any device and back: a cache answers, which is protected (battery, capacitors), or lies"
        ]
    return [
        f"{node.name} is a rotating disk, and a durable write took {took} ({fastest.case.label}), "
        f"{1e9 / median_ns:,.0f} a second: no platter turns so fast. A cache answers, which is protected (battery, "
        "flash), or lies"
        for node in _rotating(facts)
        if 1e9 / median_ns > MOST_FLUSHES_OF_ROTATING_PER_S and not _is_virtual(node)
    ]


def _not_flushed(facts: StorageFacts, alone: Sequence[FsyncResult], flush_device: str | None) -> list[str]:
    counted = [
        result
        for result in alone
        if result.case.method in ("fdatasync", "fsync")
        and result.device_flushes is not None
        and result.figure is not None
    ]
    seen = sum(result.device_flushes or 0 for result in counted)
    ops = sum(result.figure.ops for result in counted if result.figure is not None)
    if seen >= FEWEST_FLUSHES_OF_AN_FSYNC * ops:
        return []
    flushes = f"only {seen:,} flush{'es' if seen > 1 else ''}" if seen else "no flush"
    said = f"fsync and fdatasync returned {ops:,} times, and {flush_device} was sent {flushes}"
    cache = next((_fact(node, "write_cache") for node in devices(facts) if node.name == flush_device), None)
    if cache == "write through":
        why = "its queue/write_cache is write through: the kernel takes it to have no volatile cache. Lost is what a cache holds "
        return [f"{said}: {why}that is there all the same and not protected"]
    off = [option for option in facts.mount_options if option in ("nobarrier", "barrier=0")]
    if off:
        return [f"{said}: {facts.filesystem} is mounted with {off[0]}. A power cut loses what a volatile cache holds"]
    return [f"{said}: what lies above it answers, and is protected, or lies"]


def _reasons_for_doubt(facts: StorageFacts, fastest: FsyncResult, flush_device: str | None) -> tuple[str, ...]:
    if any(node.kind == NETWORK for node in facts.stack):
        return ("another machine answers; whether it keeps what it acknowledges is seen there only",)
    rate = 1e9 / _median_ns(fastest)
    for node in _rotating(facts):
        if rate > MOST_FLUSHES_OF_ROTATING_PER_S:
            return (
                f"{node.name} is a virtual disk that reports itself as rotating, as most do regardless of what backs them; at {rate:,.0f} "
                "durable writes a second it is none, and whether its host keeps what it acknowledges is seen there only",
            )
    if flush_device is None and not any(node.kind == EMULATED for node in facts.stack):
        return ("no device below it counts flushes, so that it cannot be seen whether any was sent",)
    return ()


def _plausible_reason(fastest: FsyncResult, alone: Sequence[FsyncResult], flush_device: str | None) -> str:
    took = format_duration(_median_ns(fastest) / 1e9)
    said = f"a durable write takes {took} at best ({fastest.case.label}), which a device can do"
    seen = sum(result.device_flushes or 0 for result in alone)
    return f"{said}; {flush_device} counted {seen:,} flushes" if flush_device else said


def _rotating(facts: StorageFacts) -> list[StackNode]:
    return [node for node in devices(facts) if _fact(node, "rotational") is True]


def _is_virtual(node: StackNode) -> bool:
    """Return whether it is a virtio or Xen disk, which is reported as rotational unless the host overrides it."""
    return _VIRTUAL.fullmatch(node.name) is not None


def _fact(node: StackNode, name: str) -> object:
    return next((fact.value for fact in node.facts if fact.name == name), None)
