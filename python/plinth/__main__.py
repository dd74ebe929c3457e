"""The command `plinth`, also as `python -m plinth`."""

import gc
import os
import signal
import sys

_INTERRUPTED = 130
_MISSING = 5
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
        return _run()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except MemoryError:  # not even the modules that would say more could be imported
        os.write(2, b"error: not enough memory for this command\n")
        return _MISSING
    finally:
        # The kernel frees the memory: to look for cycles in it first takes 50 ms of CPU. DuckDB complains of what is left.
        if "_duckdb" not in sys.modules:
            gc.freeze()
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own end has nothing to undo


def _run() -> int:
    from plinth.cli.memory_limit import is_lack_of_memory, show_lack_of_memory, watch_memory_limit

    try:
        watch_memory_limit(next(iter(sys.argv[1:]), None))
        from plinth.cli import main as run

        return run()
    except Exception as error:
        if not is_lack_of_memory(error):
            raise
        return show_lack_of_memory(error)


if __name__ == "__main__":
    sys.exit(main())
