"""How the agent of a host is started: by ssh, or by Ray. Either gives a connection to a running agent."""

import shlex
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from plinth.fleet.executors.executor import Started
from plinth.fleet.executors.ssh import ssh_command, unreached
from plinth.fleet.protocol import Link
from plinth.model.errors import PlinthError
from plinth.model.host import HostSpec
from plinth.system.log_file import end_in_memory, log_in_memory
from plinth.system.process import wait_or_kill
from plinth.system.runner import Runner

_END_TIMEOUT_S = 30.0
_SAID_BYTES = 64 * 1024


@contextmanager
def started_agent(name: str, spec: HostSpec, runner: Runner, ssh_config: Path | None) -> Iterator[Started]:
    """Run the agent of host `name` until the context ends. `ssh_config` is the configuration of ssh that the command line names.

    Raises RunError, or MissingCapability, with the key of the host.
    """
    with _on_ray(name, spec, runner) if spec.is_on_ray else _by_ssh(name, spec, runner, ssh_config) as started:
        yield started


@contextmanager
def _by_ssh(name: str, spec: HostSpec, runner: Runner, ssh_config: Path | None) -> Iterator[Started]:
    runner.require("ssh")
    port = [] if spec.ssh.port is None else ["-p", str(spec.ssh.port)]
    config = [] if ssh_config is None else ["-F", str(ssh_config)]
    ssh, destination = ["ssh", *config, *port], spec.ssh.destination
    # sudo drops SSH_CONNECTION from the environment.
    remote = f'exec {spec.remote_command} host-agent "$SSH_CONNECTION"'
    with end_in_memory(_SAID_BYTES) as log:
        ours, theirs = socket.socketpair()
        link = Link(ours)
        with theirs:
            child = runner.spawn_connected(ssh_command(ssh, destination, remote), theirs, log=log)
        to_try = shlex.join([*ssh, destination, f"{spec.remote_command} --version"])
        why = partial(unreached, shlex.join(ssh), destination, child, log, f"host.{name}.address")
        try:
            yield Started(name, link, partial(log.tail, _SAID_BYTES), to_try, why)
        finally:
            link.close()
            wait_or_kill([child], _END_TIMEOUT_S)


@contextmanager
def _on_ray(name: str, spec: HostSpec, runner: Runner) -> Iterator[Started]:
    from plinth.fleet.executors.ray import host_agent_on_ray

    assert spec.node is not None, "it was checked"
    with log_in_memory() as log, ExitStack() as stack:
        try:
            started = stack.enter_context(host_agent_on_ray(spec.address, spec.node, runner, log))
        except PlinthError as error:
            error.where = f"host.{name}.address"
            raise
        yield started
