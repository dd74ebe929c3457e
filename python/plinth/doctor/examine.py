"""Runs all checks of a machine and of its directories as one examination."""

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
RAW_CHECKS = (place.FLUSH_CHECK, *device.CHECKS)
PLACE_CHECKS = (*place.FILE_SYSTEM_CHECKS, *RAW_CHECKS)


class ExaminedPlace(NamedTuple):
    """A directory or device to examine: the facts of its storage; `made` if Plinth created it for an experiment.

    `asked` holds the mount options that the experiment sets, and the settings of its device as "scheduler=none".
    """

    facts: StorageFacts
    made: bool = False
    asked: frozenset[str] = frozenset()


def examine(machine: Machine, places: Sequence[ExaminedPlace], unreachable: Sequence[Finding] = ()) -> Examination:
    """Run every check on `machine` and on each place. `unreachable` holds findings about places that cannot be read."""
    found: list[Finding | Gap] = list(unreachable)
    for check in MACHINE_CHECKS:
        found += check.examine(machine, MACHINE)
    for facts, made, asked in places:
        subject = Place(facts, machine, made, asked)
        for check in RAW_CHECKS if subject.is_raw else PLACE_CHECKS:
            found += check.examine(subject, facts.name if made else facts.path)
    return Examination(
        taken_unix_ns=time.time_ns(),
        places=tuple(place.facts.path for place in places),
        findings=tuple(one for one in found if isinstance(one, Finding)),
        gaps=tuple(one for one in found if isinstance(one, Gap)),
    )
