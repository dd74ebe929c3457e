"""`make try-fleet`: a Ray cluster of three machines, which are network namespaces of this one, and a run by all of them.

The managed server and the coordinator are on the first machine. Everything is gone at the end, also after Ctrl-C; the bundle stays.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from ray_machines import Machine, machines, start_ray

_EXPERIMENT = """\
spec = 1
name = "try-fleet"
question = "What do three machines do together to one server?"

[storage.memory]
kind = "tmpfs"
size = "1GiB"

[server]
listen = "tcp"
listen_address = "{address}"

[dataset]
kind = "tpcb"
scale = 1

[workload]
builtin = "select-only"
clients = 6
rate = 600

[matrix]
storage = ["memory"]

[measure]
warmup = "1s"
duration = "4s"
repeats = 3
aa = false
probe = "0s"

[fleet]
executor = "ray"
machines = 3
"""
_NO_ROOT = "error: only root can make network namespaces\nhint: sudo make try-fleet\n"
_LACKING, _INTERRUPTED = 5, 130


def main() -> int:
    """Make the machines, start Ray, run; the exit code is that of the run."""
    if os.geteuid() != 0:
        sys.stderr.write(_NO_ROOT)
        return _LACKING
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with machines() as made:
            print(f"three machines: {', '.join(f'{one.name} {one.address}' for one in made)}", flush=True)
            start_ray(made)
            print("a raylet on each", flush=True)
            return _run(made[0])
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(first: Machine) -> int:
    plinth = str(Path(sys.executable).with_name("plinth"))
    with tempfile.TemporaryDirectory(prefix="plinth-try-") as folder:
        experiment = Path(folder) / "try-fleet.toml"
        experiment.write_text(_EXPERIMENT.format(address=first.address))
        subprocess.run(first.argv(plinth, "fleet", "check", str(experiment)), check=True)
        return first.run_in_front(plinth, "run", str(experiment))


if __name__ == "__main__":
    sys.exit(main())
