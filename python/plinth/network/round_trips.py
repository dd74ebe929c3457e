"""Round trips between nodes of an emulated network, as ping measures them."""

from pathlib import Path

from plinth import _native
from plinth.model.network import NodePlace
from plinth.network.server import as_plinth_error


def measure_round_trips(
    sender: NodePlace, receiver: NodePlace, count: int, pause_s: float, timeout_s: float
) -> tuple[int | None, ...]:
    """So many round trips in ns, with pauses between; None for each that took longer than `timeout_s`, or was lost.

    Raises a PlinthError when no packets can be sent.
    """
    try:
        return tuple(_native.network_round_trips(sender.namespace, receiver.address, count, pause_s, timeout_s))
    except _native.NetworkError as error:
        raise as_plinth_error(error, Path(sender.namespace)) from error
