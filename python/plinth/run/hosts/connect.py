"""The connections to the hosts of a run."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from plinth.model.errors import PlinthError, together
from plinth.model.host import HostSpec
from plinth.run.host import Host, Hosts
from plinth.run.interrupt import InterruptGuard
from plinth.run.local_host import HOST, ONLY_THIS
from plinth.system.runner import Runner


@contextmanager
def connected_hosts(specs: Mapping[str, HostSpec], ssh_config: Path | None = None) -> Iterator[Hosts]:
    """Yield the machines of a run, with an agent on each of `specs` until the context ends; what agents have made is undone then.

    `ssh_config` is the configuration of ssh that the command line names. Raises all that keeps agents from being started at once.
    """
    if not specs:
        yield ONLY_THIS
        return
    with ExitStack() as stack:
        with InterruptGuard(lambda _: None):
            hosts, errors = start_agents(stack, specs, ssh_config)
        if errors:
            raise together("the hosts of the experiment cannot be reached", [*errors.values()])
        yield hosts


def start_agents(
    stack: ExitStack, specs: Mapping[str, HostSpec], ssh_config: Path | None
) -> tuple[Hosts, dict[str, PlinthError]]:
    """Start an agent on each of `specs`, which ends with `stack`; return the machines, and why there is none on the others."""
    from plinth.run.hosts.link import HostLink
    from plinth.run.hosts.remote_host import RemoteHost

    hosts: dict[str | None, Host] = {None: HOST}
    errors: dict[str, PlinthError] = {}
    for name, spec in specs.items():
        try:
            hosts[name] = RemoteHost(stack.enter_context(HostLink(name, spec, Runner(), ssh_config)), spec)
        except PlinthError as error:
            errors[name] = error
    return hosts, errors
