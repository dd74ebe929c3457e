"""The process that serves an emulated disk for a run: `plinth disk serve` of a configuration that is checked already.

Without the command line's own imports, which would take longer than all that it does until the disk is there.
"""

import json
import sys

from plinth.cli.printing import print_json
from plinth.model.errors import PlinthError


def main(words: list[str]) -> int:
    """Serve the disk of the JSON after --config until it is unmounted; returns the exit code.

    The other options repeat a part of it, by which the process is found.
    """
    from plinth.storage.devices.disk_process import serve

    try:
        serve(json.loads(words[words.index("--config") + 1]), lambda ready: print_json(json.dumps(ready), flush=True))
    except PlinthError as error:
        from plinth.cli.app import show_error

        show_error(error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # before the disk was there
        sys.exit(130)
