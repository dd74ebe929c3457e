"""The process that a load by a driver is run in: `python -m plinth.drivers SOCKET`, where what to do is told."""

import socket
import sys
from multiprocessing.connection import Connection

from plinth.drivers.foreman import Foreman
from plinth.drivers.messages import Order


def main(path: str) -> int:
    """Do what is told through the socket at `path`."""
    with socket.socket(socket.AF_UNIX) as conductor:
        conductor.connect(path)
        pipe = Connection(conductor.detach())
    try:
        Foreman(pipe, Order.model_validate_json(pipe.recv_bytes())).work()
    except (EOFError, BrokenPipeError):  # who has started this is gone; the clients go with it
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
