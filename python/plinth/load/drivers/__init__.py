"""Loads by Python drivers, psycopg and SQLAlchemy, with one process for each connection.

load.py         the load as the conductor sees it: start, poll, stop, take the result
__main__.py     the process that it starts, and coordinator.py what that does: one process a client, their reports merged
client.py       one client's transactions; sessions.py: how each driver runs a statement
aggregates.py   the clients' reports as series, histograms and totals
check.py        what drivers need and do not take
"""

from typing import TYPE_CHECKING

from plinth.common.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from plinth.load.drivers.check import check_driver
    from plinth.load.drivers.load import DriverLoad

__getattr__ = lazy_exports(__name__, {"DriverLoad": "load", "check_driver": "check"})
__all__ = ["DriverLoad", "check_driver"]
