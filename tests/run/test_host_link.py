"""The coordinator's end of the connection to a host, where the agent has ended before a request is sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plinth.fleet.executors.executor import Started
from plinth.model.errors import RunError
from plinth.model.host import HostSpec
from plinth.run.hosts import link
from plinth.run.hosts.starting import started_agent
from plinth.system.runner import Runner


@contextmanager
def ended_agent(name: str, spec: HostSpec, runner: Runner, ssh_config: Path | None) -> Iterator[Started]:
    with started_agent(name, spec, runner, ssh_config) as started:
        assert started.unreached() is not None, "it waits for the end of ssh"
        yield started


def test_what_ssh_has_printed_is_said_although_the_first_request_cannot_be_sent(monkeypatch) -> None:
    monkeypatch.setattr(link, "started_agent", ended_agent)
    monkeypatch.setattr(link.HostLink, "_receive", lambda self: None)  # the request fails before the end is received
    with pytest.raises(RunError, match=r"no agent could be started on nosuch.invalid: .*nosuch.invalid") as failed:
        link.HostLink("db1", HostSpec(address="ssh://nosuch.invalid"), Runner(), None).__enter__()
    assert failed.value.where == "host.db1.address" and failed.value.hint
