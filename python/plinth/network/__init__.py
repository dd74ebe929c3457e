"""The emulated network: network namespaces, the delay line between them, and how they are undone."""

from typing import TYPE_CHECKING

from plinth.common.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from plinth.network.control import NetworkControl
    from plinth.network.layout import NetworkLayout
    from plinth.network.round_trips import measure_round_trips
    from plinth.network.undo import NETWORK_UNDO

__getattr__ = lazy_exports(
    __name__,
    {
        "NETWORK_UNDO": "undo",
        "NetworkControl": "control",
        "NetworkLayout": "layout",
        "measure_round_trips": "round_trips",
    },
)
__all__ = ["NETWORK_UNDO", "NetworkControl", "NetworkLayout", "measure_round_trips"]
