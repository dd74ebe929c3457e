"""What would spoil a measurement on this machine or at a place, each with how to mend it. Nothing is changed."""

from plinth.doctor.examine import MACHINE_CHECKS, PLACE_CHECKS, Described, examine
from plinth.doctor.machine import Machine
from plinth.doctor.noise import WORKS, Slot, measure_slots
from plinth.doctor.place import unreachable

__all__ = [
    "MACHINE_CHECKS",
    "PLACE_CHECKS",
    "WORKS",
    "Described",
    "Machine",
    "Slot",
    "examine",
    "measure_slots",
    "unreachable",
]
