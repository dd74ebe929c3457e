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


def check_report(file: Path) -> tuple[int, dict[str, Any]]:
    """Exit code and findings of the check."""
    done = subprocess.run([node(), str(CHECK), str(file)], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)
