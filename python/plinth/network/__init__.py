"""The emulated network: network namespaces, the delay line between them, and how they are undone."""

from plinth.network.control import NetworkControl as NetworkControl
from plinth.network.layout import NetworkLayout as NetworkLayout
from plinth.network.undo import NETWORK_UNDO as NETWORK_UNDO
