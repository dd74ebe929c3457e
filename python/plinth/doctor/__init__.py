"""Checks for conditions that distort measurements on this machine or in a directory, with remedies. Nothing is changed."""

from plinth.doctor.examine import MACHINE_CHECKS, PLACE_CHECKS, ExaminedPlace, examine
from plinth.doctor.fixed_work import WORKS, Slot, measure_slots
from plinth.doctor.machine import Machine
from plinth.doctor.place import unreachable

__all__ = [
    "MACHINE_CHECKS",
    "PLACE_CHECKS",
    "WORKS",
    "ExaminedPlace",
    "Machine",
    "Slot",
    "examine",
    "measure_slots",
    "unreachable",
]
