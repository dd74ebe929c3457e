"""The command serve, which shows bundles in a browser."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plinth.cli.printing import print_plain
from plinth.system.extras import require_package


def serve(
    directory: Annotated[Path, Parameter(help="Where to look. Default: bundles, where runs write to.")] = Path(
        "bundles"
    ),
    /,
    *,
    port: Annotated[int, Parameter(name="--port", help="Port on 127.0.0.1 to listen on; 0 takes a free one.")] = 8432,
) -> int:
    """Show the bundles below a directory in a browser: catalogue, reports, and progress of active runs.

    The printed address has a token, without which nothing is shown; give it to nobody who may not read the bundles. Only this
    machine can connect, and nothing is written into bundles. From another machine: ssh -L 8432:127.0.0.1:8432 HOST. Ctrl-C ends it.

      plinth serve
      plinth serve results --port 0
    """
    for package in ("starlette", "uvicorn"):
        require_package(package, "plinth serve")
    from plinth.serve.server import serve as serve_bundles

    serve_bundles(directory, port, lambda address: print_plain(address, flush=True))
    return 0
