"""The names and types that tests of fleets share."""

from collections.abc import Callable

from plinth.fleet import FleetLoad
from plinth.load import LoadConfig

HOSTS = ("client1", "client2", "client3")
MakeFleet = Callable[..., FleetLoad]
MakeConfig = Callable[..., LoadConfig]
