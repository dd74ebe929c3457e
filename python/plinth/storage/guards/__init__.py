"""Guards of everything that destroys: what is found is read once (`state`), judged by pure rules (`decide`), and held
to until the command that writes has ended (`hold`). What is refused and why: docs/concepts/guards.md."""

from plinth.storage.guards.decide import Reason, RequestedDevice, reasons_against
from plinth.storage.guards.hold import DeviceGuard, held_devices
from plinth.storage.guards.state import DeviceState, read_state

__all__ = [
    "DeviceGuard",
    "DeviceState",
    "Reason",
    "RequestedDevice",
    "held_devices",
    "read_state",
    "reasons_against",
]
