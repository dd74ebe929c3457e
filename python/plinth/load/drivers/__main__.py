"""The coordinator process of a load by a driver: `python -m plinth.load.drivers FD` reads its task from the pipe FD."""

import os
import sys
from multiprocessing.connection import Connection

from plinth.load.drivers.coordinator import Coordinator
from plinth.load.drivers.messages import Order


def main(number: int) -> int:
    """Run the load whose configuration is read from the pipe with this descriptor."""
    os.set_inheritable(number, False)
    pipe = Connection(number)
    try:
        Coordinator(pipe, Order.model_validate_json(pipe.recv_bytes())).work()
    except (EOFError, BrokenPipeError):  # the parent has ended; the clients end with this process
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
