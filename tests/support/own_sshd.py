"""An sshd of the tests on a loopback port, with its own keys, and names of hosts that all lead to it."""

import getpass
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from waiting import wait_until


class Sshd(NamedTuple):
    """A running sshd: the client's configuration that leads to it, and a folder with an ssh that reads it as the user's own."""

    programs: Path
    config: Path
    known_hosts: Path
    port: int


@contextmanager
def own_sshd(folder: Path, hosts: Sequence[str], user: str | None = None) -> Iterator[Sshd]:
    """sshd in the foreground, as who runs the tests, and with root's right where that is root. Who runs the tests logs in, or `user`."""
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    assert program is not None, "the tests need Debian's package openssh-server"
    folder.mkdir(mode=0o755)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    if getpass.getuser() == "root":
        Path("/run/sshd").mkdir(exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
        f"PidFile {folder}/pid\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nMaxStartups 100\n"
    )
    known_hosts = folder / "known_hosts"
    key = " ".join((folder / "host.pub").read_text().split()[:2])
    known_hosts.write_text(f"[127.0.0.1]:{port} {key}\n")
    config = folder / "config"
    config.write_text(
        f"Host {' '.join(hosts)}\n  HostName 127.0.0.1\n  Port {port}\n  User {user or getpass.getuser()}\n"
        f"  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {known_hosts}\n"
    )
    # OpenSSH takes the user's home from the system, not from HOME.
    programs = folder / "programs"
    programs.mkdir()
    ssh = programs / "ssh"
    ssh.write_text(
        f'#!/bin/sh\ncase "$1" in -F) ;; *) set -- -F {config} "$@" ;; esac\nexec {shutil.which("ssh")} "$@"\n'
    )
    ssh.chmod(0o755)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "-D", "-e", "-f", folder / "sshd_config"], stderr=log)
        try:
            wait_until(lambda: _listens(port))
            yield Sshd(programs, config, known_hosts, port)
        finally:
            process.terminate()
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
