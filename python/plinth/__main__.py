"""The command `plinth`, also as `python -m plinth`."""

import gc
import signal
import sys

_INTERRUPTED = 130
_NEW_OBJECTS = 200_000
"""How many objects are made before the cyclic garbage collector looks at them. The imports of a command make some 200,000,
nearly all of which live to its end: with Python's 700, to visit them again and again takes a tenth of a short command's CPU.
"""


def main() -> int:
    """Run the command line of this process; returns the exit code.

    Ctrl-C while Python imports what a command needs, or after the command has ended, ends it without a traceback.
    """
    gc.set_threshold(_NEW_OBJECTS, 50, 100)
    try:
        from plinth.cli import main as run

        return run()
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        # The kernel frees the memory: to look for cycles in it first takes 50 ms of CPU. DuckDB complains of what is left.
        if "_duckdb" not in sys.modules:
            gc.freeze()
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own end has nothing to undo


if __name__ == "__main__":
    sys.exit(main())
