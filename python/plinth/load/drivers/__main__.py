"""The process that a load by a driver is run in: `python -m plinth.load.drivers FD`, which reads its task from the pipe FD."""

import os
import sys
from multiprocessing.connection import Connection

from plinth.load.drivers.coordinator import Coordinator
from plinth.load.drivers.messages import Order


def main(number: int) -> int:
    """Run the load whose configuration comes through the pipe with this number."""
    os.set_inheritable(number, False)
    pipe = Connection(number)
    try:
        Coordinator(pipe, Order.model_validate_json(pipe.recv_bytes())).work()
    except (EOFError, BrokenPipeError):  # who has started this is gone; the clients go with it
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
