"""Runs false_host.py where an experiment has a host: with an ssh of the tests that starts it on this machine."""

import json
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from plinth import __version__
from plinth.model.host import HostSpec
from plinth.run.hosts.link import HostLink
from plinth.run.hosts.protocol import PROTOCOL_VERSION
from plinth.system.runner import Runner

Lies = Mapping[str, list[dict[str, Any]]]
HELLO = {
    "protocol": PROTOCOL_VERSION,
    "plinth": __version__,
    "python": platform.python_version(),
    "host": "false",
    "boot_id": "00000000-0000-0000-0000-000000000000",
    "address": "127.0.0.1",
    "coordinator_address": "127.0.0.1",
}
_SSH = """\
#!/bin/sh
# What follows the destination is for a shell there, which is one here.
while [ "$1" != -- ]; do shift; done
exec /bin/sh -c "$3"
"""


class FalseHost(NamedTuple):
    """A host whose agent is false: the folder with the ssh that leads to it, and its command."""

    programs: Path
    command: Path

    @property
    def spec(self) -> HostSpec:
        """Its table of an experiment."""
        return HostSpec.model_validate({"address": "ssh://db1", "command": str(self.command), "lease": 5})

    def link(self) -> HostLink:
        """The coordinator's end; `programs` has to be in the PATH."""
        return HostLink("db1", self.spec, Runner(), None)


def false_host(folder: Path, lies: Lies, first: list[dict[str, Any]] | None = None) -> FalseHost:
    """A host that tells these lies, and does `first` before it has been asked anything."""
    programs = folder / "programs"
    programs.mkdir()
    (programs / "ssh").write_text(_SSH)
    script = folder / "script.json"
    script.write_text(json.dumps({"hello": HELLO, "lies": lies, "first": first or []}))
    command = folder / "plinth"
    agent = Path(__file__).with_name("false_host.py")
    command.write_text(f"#!/bin/sh\nexec {sys.executable} -I -S {agent} {script}\n")
    for program in (programs / "ssh", command):
        program.chmod(0o755)
    return FalseHost(programs, command)


def result(document: object) -> list[dict[str, Any]]:
    """An answer to a call with this result."""
    return [{"send": {"number": "NUMBER", "result": document}}]


def error(**fields: object) -> list[dict[str, Any]]:
    """An answer to a call that says that it failed."""
    return [{"send": {"number": "NUMBER", "error": fields}}]
