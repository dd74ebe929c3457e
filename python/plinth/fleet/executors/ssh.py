"""Agents on hosts by OpenSSH: the user's own keys, agent, known_hosts and configuration."""

import shlex
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from plinth.fleet.executors.executor import Started
from plinth.fleet.protocol import AGENT_END_TIMEOUT_S, Link
from plinth.model.errors import RunError
from plinth.model.fleet import FleetSpec
from plinth.system.log_file import LogFile, end_in_memory
from plinth.system.process import Child, wait_or_kill
from plinth.system.runner import Runner

_OPTIONS = {
    "BatchMode": "yes",  # nothing is asked at the terminal
    "StrictHostKeyChecking": "yes",
    "NoHostAuthenticationForLocalhost": "no",
    "ConnectTimeout": "15",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "2",
    "ControlMaster": "no",  # a connection that exists already is used, and none is left behind
    "ClearAllForwardings": "yes",
    "PermitLocalCommand": "no",
    "RemoteCommand": "none",
    "LogLevel": "ERROR",
}
SSH_FAILED = 255
"""The exit code of ssh itself; others are those of the command on the host."""
_FAILURE_TIMEOUT_S = 2.0
"""How long ssh may take to end once it has closed the connection."""
_MOST_BYTES = 64 * 1024
_HINTS = {
    "REMOTE HOST IDENTIFICATION HAS CHANGED": "the host's key is not the one in known_hosts: find out why before you replace it",
    "Host key verification failed": "run `{ssh} {host}` once, and compare the key that it shows with the host's own",
    "Permission denied": "a key of yours must be in authorized_keys there; nothing is asked at the terminal",
    "Could not resolve hostname": "use a name that this machine can look up, or a Host of the OpenSSH configuration",
    "Connection refused": "start sshd there, and let its port through the firewall",
    "timed out": "see whether the host runs, and let the port of its sshd through the firewall",
}
"""What to do about an error of ssh, by words of it."""


class SshExecutor:
    """Starts `plinth agent` on each host; the connection is its standard input and output, within ssh."""

    def __init__(self, fleet: FleetSpec, runner: Runner, log: LogFile, config: Path | None = None) -> None:
        runner.require("ssh")
        self._fleet = fleet
        self._runner = runner
        self._log = log
        self._config = config

    @contextmanager
    def agents(self) -> Iterator[list[Started]]:
        """Run the agents until the context ends; they end with their connections."""
        started: list[Started] = []
        children: list[Child] = []
        with ExitStack() as stack:
            try:
                for host in self._fleet.hosts[: self._fleet.number_of_machines]:
                    log = stack.enter_context(end_in_memory(_MOST_BYTES))
                    ours, theirs = socket.socketpair()
                    link = Link(ours)
                    stack.callback(link.close)
                    with theirs:
                        command = ssh_command(self._ssh, host, f"exec {self._fleet.command} agent")
                        child = self._runner.spawn_connected(command, theirs, log=log)
                    children.append(child)
                    said = partial(log.tail, _MOST_BYTES)
                    to_try = shlex.join([*self._ssh, host, self._fleet.command, "--version"])
                    why = partial(unreached, shlex.join(self._ssh), host, child, log)
                    started.append(Started(host, link, said, to_try, why))
                yield started
            finally:
                for one in started:
                    one.link.close()
                wait_or_kill(children, AGENT_END_TIMEOUT_S)
                self._keep("".join(one.said() for one in started))

    @property
    def _ssh(self) -> list[str]:
        """The command as a user types it: with the configuration that hosts are looked up in."""
        return ["ssh"] if self._config is None else ["ssh", "-F", str(self._config)]

    def _keep(self, said: str) -> None:
        if said:
            with self._log.to_append() as file:
                file.write(said.encode(errors="replace"))


def ssh_command(ssh: Sequence[str], destination: str, remote: str) -> list[str]:
    """Return the command that runs `remote` there, with its standard streams; `ssh` begins it, as a user types it."""
    options = [word for name, value in _OPTIONS.items() for word in ("-o", f"{name}={value}")]
    return [*ssh, *options, "-T", "-a", "-x", "--", destination, remote]


def unreached(ssh: str, host: str, child: Child, log: LogFile, where: str = "fleet.hosts") -> RunError | None:
    """Return why ssh did not reach the host; None if it did, or has not ended. `where` is the key of the experiment that names it."""
    if child.exit_code(_FAILURE_TIMEOUT_S) != SSH_FAILED:
        return None
    lines = [line.strip() for line in log.tail(_MOST_BYTES).splitlines() if line.strip()]
    text = "\n".join(lines)
    hint = next((hint for words, hint in _HINTS.items() if words in text), None)
    return RunError(
        f"no agent could be started on {host}: {lines[-1] if lines else 'ssh says nothing'}",
        where=where,
        hint=None if hint is None else hint.format(ssh=ssh, host=host),
        details=lines[:-1],
    )
