"""Hosts that are this machine: names that an sshd of the tests answers to, each with a state directory of its own."""

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from own_sshd import Sshd


class HostHere(NamedTuple):
    """A host: how an experiment names it, and where its agent keeps its state."""

    name: str
    sshd: Sshd
    command: Path
    state: Path

    @property
    def keys(self) -> Mapping[str, str]:
        """The keys of its table."""
        return {
            "address": f"ssh://{self.name}",
            "command": str(self.command),
            "listen_address": "127.0.0.1",
            "lease": "5s",
        }

    @property
    def toml(self) -> str:
        """The table of an experiment."""
        return f"[host.{self.name}]\n" + "".join(f'{key} = "{value}"\n' for key, value in self.keys.items())

    @property
    def environment(self) -> Mapping[str, str]:
        """With which the user's own ssh finds it."""
        return {"PATH": f"{self.sshd.programs}:{os.environ['PATH']}"}

    def agents(self) -> list[int]:
        """The pids of its agents."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended
                is_agent = b"host-agent" in (folder / "cmdline").read_bytes().split(b"\0")
                if is_agent and bytes(self.state) in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return found

    def left(self) -> list[str]:
        """What there is below its state directory, but for what stays for the next run."""
        kept = ("cache", "journal", "work", "hosts")
        return sorted(
            str(path.relative_to(self.state))
            for path in self.state.rglob("*")
            if path.relative_to(self.state).parts[0] != "cache" and str(path.relative_to(self.state)) not in kept
        )


def host_here(name: str, sshd: Sshd, folder: Path) -> HostHere:
    """A host of this name, below `folder`, which every user may enter."""
    state = folder / f"state-of-{name}"
    command = folder / f"plinth-of-{name}"
    plinth = Path(sys.executable).with_name("plinth")
    command.write_text(f'#!/bin/sh\nPLINTH_STATE_DIR={state}\nexport PLINTH_STATE_DIR\nexec {plinth} "$@"\n')
    command.chmod(0o755)
    return HostHere(name, sshd, command, state)
