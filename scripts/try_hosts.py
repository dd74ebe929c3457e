"""`make try-hosts`: a primary and two standbys on hosts of their own, which are namespaces of this machine, and the load from a fourth.

Everything is gone at the end, also after Ctrl-C; the bundle stays.
"""

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
"""
_NO_ROOT = "error: only root can make network namespaces\nhint: sudo make try-hosts\n"
_LACKING, _INTERRUPTED = 5, 130


def main() -> int:
    """Make the hosts, check them, run; the exit code is that of the run."""
    if os.geteuid() != 0:
        sys.stderr.write(_NO_ROOT)
        return _LACKING
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with host_machines(3) as made:
            print(f"three hosts: {', '.join(one.address for one in made.hosts)}; load from {made.coordinator.address}")
            return _run(made)
    except KeyboardInterrupt:
        return _INTERRUPTED


def experiment_text(made: Hosts) -> str:
    """Return the experiment with its hosts."""
    plinth = Path(sys.executable).with_name("plinth")
    tables = (
        f'\n[host.db{number}]\naddress = "ssh://{host.address}"\ncommand = "{plinth}"\nlease = "10s"\n'
        for number, host in enumerate(made.hosts, 1)
    )
    return _EXPERIMENT + "".join(tables)


def _run(made: Hosts) -> int:
    plinth = str(Path(sys.executable).with_name("plinth"))
    config = ("--ssh-config", str(made.ssh_config))
    with tempfile.TemporaryDirectory(prefix="plinth-try-") as folder:
        experiment = Path(folder) / "try-hosts.toml"
        experiment.write_text(experiment_text(made))
        subprocess.run(made.coordinator.argv(plinth, "host", "check", str(experiment), *config), check=True)
        return made.coordinator.run_in_front(plinth, "run", str(experiment), *config)


if __name__ == "__main__":
    sys.exit(main())
