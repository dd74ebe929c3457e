"""Hosts on this machine: each has a network, a process table, an sshd and Plinth's state directory to itself. Needs root."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from ray_machines import Machine, machines

_STATE = Path("/var/lib/plinth")


class Hosts(NamedTuple):
    """The machine where a run is started, the hosts that it reaches, and the configuration of ssh by which it does."""

    coordinator: Machine
    hosts: list[Machine]
    ssh_config: Path


@contextmanager
def host_machines(count: int) -> Iterator[Hosts]:
    """So many hosts, and one machine more."""
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    assert sshd is not None, "there has to be Debian's package openssh-server"
    _STATE.mkdir(parents=True, exist_ok=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plinth-hosts-")))
        made = stack.enter_context(machines(count + 1))
        for machine in made:
            machine.run("mount", "-t", "proc", "proc", "/proc")
            machine.run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(_STATE))
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        key = " ".join((folder / "host.pub").read_text().split()[:2])
        coordinator, *hosts = made
        (folder / "known_hosts").write_text("".join(f"{host.address} {key}\n" for host in hosts))
        config = folder / "config"
        config.write_text(
            f"Host *\n  User root\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known_hosts\n"
        )
        for host in hosts:
            _start_sshd(sshd, host, folder)
        yield Hosts(coordinator, hosts, config)


def _start_sshd(sshd: str, host: Machine, folder: Path) -> None:
    """As a daemon, which ends with the machine."""
    config = folder / f"sshd-of-{host.name}"
    config.write_text(
        f"ListenAddress {host.address}\nPort 22\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nMaxStartups 100\n"
    )
    host.run(sshd, "-f", str(config))
