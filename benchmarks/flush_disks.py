"""Real runs on emulated disks that differ in nothing but the time of a flush, for benchmarks of what Plinth concludes from runs."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FLUSH_MS = 10.0
"""A flush of the slower disk. One client commits about 100 times a second there, regardless of what else the machine does."""
PLINTH = (sys.executable, "-m", "plinth")
_STORAGE = """\
[storage.{name}]
kind = "emulated"
profile = "sata-ssd"
size = "512MiB"
physics = {{ flush_latency = "{flush_ms}ms", spread = {spread} }}

"""
_EXPERIMENT = """\
spec = 1
name = "flushes"
question = "Is the disk whose flush takes less time faster?"

{storages}[dataset]
kind = "none"

[workload]
builtin = "ledger"
clients = 1

[matrix]
storage = {names}

[measure]
warmup = "500ms"
duration = "1s"
fresh_server = false
aa = false
probe = 0
{measure}
"""


def measured(flush_ms: Mapping[str, float], spread: float, measure: str, bundle: Path) -> None:
    """Measure a storage for each of `flush_ms`, with `measure` as further lines of that table, into `bundle`.

    `spread` is that of the logarithm of a flush's time. Raises RuntimeError with all that was printed if the run failed.
    """
    storages = (_STORAGE.format(name=name, flush_ms=ms, spread=spread) for name, ms in flush_ms.items())
    file = bundle.with_suffix(".toml")
    file.write_text(_EXPERIMENT.format(storages="".join(storages), names=json.dumps(list(flush_ms)), measure=measure))
    command = [*PLINTH, "run", str(file), "--bundle", str(bundle), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (os.EX_OK, 3):  # 3: measured, and nothing could be decided
        raise RuntimeError(f"exit code {done.returncode} of {' '.join(command)}\n{done.stdout}{done.stderr}")


def printed(*arguments: str | Path) -> dict[str, Any]:
    """Return the JSON that a command of Plinth prints."""
    return json.loads(subprocess.check_output([*PLINTH, *map(str, arguments), "--json"]))
