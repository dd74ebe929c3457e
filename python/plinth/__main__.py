"""The command `plinth`, also as `python -m plinth`."""

import signal
import sys

_INTERRUPTED = 130


def main() -> int:
    """Run the command line of this process; returns the exit code.

    Ctrl-C while Python imports what a command needs, or after the command has ended, ends it without a traceback.
    """
    try:
        from plinth.cli import main as run

        return run()
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own end has nothing to undo


if __name__ == "__main__":
    sys.exit(main())
