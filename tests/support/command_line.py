"""The command line from outside: a command that is run to its end, and the modules that it imports."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from prepared_plinth import run_prepared

SLOW = {"numpy", "duckdb", "scipy", "psycopg", "sqlalchemy", "jsonschema", "asyncio"}
"""Each takes as long to import as all the rest of a command."""
_PROGRAM = (
    "import sys, plinth.cli; code = plinth.cli.main(sys.argv[1:]); print(*sys.modules, file=sys.stderr); sys.exit(code)"
)


def plinth(*words: object, cwd: Path | None = None, **environment: str) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", **environment}
    return run_prepared(words, cwd, env)


def loaded_by(*words: object, environment: Mapping[str, str] | None = None) -> set[str]:
    """Return the modules that a command line imports until it ends."""
    argv = [sys.executable, "-c", _PROGRAM, *map(str, words)]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())
