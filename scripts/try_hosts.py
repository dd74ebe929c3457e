"""`make try-hosts`: a primary and two standbys on hosts of their own, which are namespaces of this machine, and the load from a fourth.

    python scripts/try_hosts.py [EXPERIMENT] [--set KEY=VALUE]... [OPTION...]

EXPERIMENT, whose hosts are called db1, db2 and db3, is run in place of the one in this file; other options are those of `plinth run`.
Everything is gone at the end, also after Ctrl-C; the bundle stays.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from host_machines import Hosts, host_machines

_EXPERIMENT = """\
spec = 1
name = "try-hosts"
question = "What do two standbys on other hosts cost a commit?"

[storage.primary]
host = "db1"
kind = "emulated"
profile = "nvme"
size = "1GiB"

[storage.first]
host = "db2"
kind = "emulated"
profile = "nvme"
size = "1GiB"

[storage.second]
host = "db3"
kind = "emulated"
profile = "nvme"
size = "1GiB"

[server]
storage = "primary"
synchronous_standby_names = "ANY 1 (a, b)"

[server.standby.a]
storage = "first"

[server.standby.b]
storage = "second"

[dataset]
kind = "tpcb"
scale = 1

[workload]
builtin = "tpcb-like"
clients = 4

[matrix]
server.settings.synchronous_commit = ["local", "remote_write"]

[measure]
warmup = "1s"
duration = "4s"
repeats = 3
aa = false
probe = "0s"

[host.db1]
address = "ssh://db1"

[host.db2]
address = "ssh://db2"

[host.db3]
address = "ssh://db3"
"""
_NO_ROOT = "error: only root can make network namespaces\nhint: sudo make try-hosts\n"
_LACKING, _INTERRUPTED = 5, 130


def main() -> int:
    """Make the hosts, check them, run; the exit code is that of the run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", metavar="EXPERIMENT", nargs="?", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as of plinth run")
    asked, options = parser.parse_known_args()
    if os.geteuid() != 0:
        sys.stderr.write(_NO_ROOT)
        return _LACKING
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with host_machines(3) as made:
            print(f"three hosts: {', '.join(one.address for one in made.hosts)}; load from {made.coordinator.address}")
            if asked.experiment is not None:
                return _run(made, asked.experiment, asked.set, options)
            with tempfile.TemporaryDirectory(prefix="plinth-try-") as folder:
                experiment = Path(folder) / "try-hosts.toml"
                experiment.write_text(_EXPERIMENT)
                return _run(made, experiment, asked.set, options)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(made: Hosts, experiment: Path, sets: list[str], options: list[str]) -> int:
    plinth = str(Path(sys.executable).with_name("plinth"))
    of_hosts = (
        f"host.db{number}.{key}"
        for number, host in enumerate(made.hosts, 1)
        for key in (f"address=ssh://{host.address}", f"command={plinth}", "lease=10s")
    )
    both = (str(experiment), *(f"--set={one}" for one in (*of_hosts, *sets)), "--ssh-config", str(made.ssh_config))
    subprocess.run(made.coordinator.argv(plinth, "host", "check", *both), check=True)
    return made.coordinator.run_in_front(plinth, "run", *both, *options)


if __name__ == "__main__":
    sys.exit(main())
