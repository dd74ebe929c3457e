"""Loads by Plinth in a process of their own (loading_once.py), for whose CPU and memory nothing else counts."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from plinth.server.server import LocalServer


def loaded(cluster: LocalServer, dataset: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of one load; the server is stopped and started when the loader asks. Raises SystemExit when it fails."""
    argv = [sys.executable, str(Path(__file__).with_name("loading_once.py"))]
    asked = {"connection": cluster.connection.for_engine(), "dataset": dataset}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as child:
        assert child.stdin is not None and child.stdout is not None
        print(json.dumps(asked), file=child.stdin)
        for line in child.stdout:
            match line.strip():
                case "stop":
                    cluster.shutdown()
                case "start":
                    cluster.start(cluster.settings)
                case figures:
                    return json.loads(figures)
            print(file=child.stdin)
    raise SystemExit(f"the load of {dataset} failed")
