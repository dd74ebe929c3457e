"""All checks of a machine and of places, in one examination."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from plinth.doctor import cpu, device, memory, neighbours, place, virtual
from plinth.doctor.machine import Machine
from plinth.doctor.place import Place
from plinth.model.base import Gap
from plinth.model.doctor import MACHINE, Examination, Finding
from plinth.model.facts import StorageFacts

MACHINE_CHECKS = (*cpu.CHECKS, *memory.CHECKS, *neighbours.CHECKS, *virtual.CHECKS)
RAW_CHECKS = (place.KEPT, *device.CHECKS)
PLACE_CHECKS = (*place.FILE_SYSTEM_CHECKS, *RAW_CHECKS)


class Described(NamedTuple):
    """A place to examine: the facts of its storage; `made` when Plinth has made it as an experiment asks.

    `asked` has the mount options that the experiment gives, and the knobs of its device as "scheduler=none".
    """

    facts: StorageFacts
    made: bool = False
    asked: frozenset[str] = frozenset()


def examine(machine: Machine, places: Sequence[Described], unreachable: Sequence[Finding] = ()) -> Examination:
    """Every check of `machine` and of each place. `unreachable` are findings about places that nothing is known of."""
    found: list[Finding | Gap] = list(unreachable)
    for check in MACHINE_CHECKS:
        found += check.examine(machine, MACHINE)
    for facts, made, asked in places:
        subject = Place(facts, machine, made, asked)
        for check in RAW_CHECKS if subject.is_raw else PLACE_CHECKS:
            found += check.examine(subject, facts.name if made else facts.path)
    return Examination(
        taken_unix_ns=time.time_ns(),
        places=tuple(described.facts.path for described in places),
        findings=tuple(one for one in found if isinstance(one, Finding)),
        gaps=tuple(one for one in found if isinstance(one, Gap)),
    )
