"""The browser check of a report: a real Chromium opens the file without network, and looks at everything in it."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "web" / "e2e" / "check.mjs"


def node() -> str:
    """Node from the machine, or from the wheel that the build has installed."""
    found = shutil.which("node") or shutil.which("node", path=str(ROOT / ".venv" / "bin"))
    assert found, "these tests need Node.js"
    return found


def check_report(file: Path, only: str | None = None, max_ready_ms: int | None = None) -> tuple[int, dict[str, Any]]:
    """Exit code and findings of the check: of all views, on screens and on paper, unless it is to look at one alone."""
    words = [] if only is None else ["--only", only]
    words += [] if max_ready_ms is None else ["--max-ready-ms", str(max_ready_ms)]
    done = subprocess.run([node(), str(CHECK), str(file), *words], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)
