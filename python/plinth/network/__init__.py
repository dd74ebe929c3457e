"""The emulated network: network namespaces, the delay line between them, and how they are undone."""

from typing import TYPE_CHECKING

from plinth.common.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from plinth.network.daemon import NetworkControl, measure_round_trips
    from plinth.network.namespaces import NETWORK_UNDO, NetworkLayout

__getattr__ = lazy_exports(
    __name__,
    {
        "NETWORK_UNDO": "namespaces",
        "NetworkControl": "daemon",
        "NetworkLayout": "namespaces",
        "measure_round_trips": "daemon",
    },
)
__all__ = ["NETWORK_UNDO", "NetworkControl", "NetworkLayout", "measure_round_trips"]
