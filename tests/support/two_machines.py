"""Two network namespaces with a cable between them, which can be pulled."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from emulated_disks import run


class Machine:
    """A network namespace with one address."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address

    def start(self, *argv: str, user: tuple[int, int] | None = None, **options: Any) -> subprocess.Popen[str]:
        """Start a program there, as root or as a user and group."""
        ids = [] if user is None else [f"--setuid={user[0]}", f"--setgid={user[1]}"]
        enter = ["nsenter", f"--net=/run/netns/{self.name}", *ids]
        return subprocess.Popen([*enter, *argv], text=True, **options)

    def run(self, *argv: str, codes: Sequence[int] = (0,)) -> str:
        """Run a program there to its end: its standard output."""
        process = self.start(*argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, errors = process.communicate(timeout=120)
        assert process.returncode in codes, f"{' '.join(argv)}: {process.returncode}\n{out}{errors}"
        return out

    def cable(self, state: str) -> None:
        """up or down."""
        run("ip", "-n", self.name, "link", "set", "cable", state)


@contextmanager
def two_machines() -> Iterator[tuple[Machine, Machine]]:
    """They are removed at the end, and the cable with them."""
    names = [f"plinth-test-{os.getpid()}-{one}" for one in ("a", "b")]
    machines = [Machine(name, f"10.213.77.{place}") for place, name in enumerate(names, start=1)]
    made: list[Machine] = []
    try:
        for machine in machines:
            run("ip", "netns", "add", machine.name)
            made.append(machine)
        first, second = machines
        veth = ("type", "veth", "peer", "name", "cable", "netns", second.name)
        run("ip", "-n", first.name, "link", "add", "cable", *veth)
        for machine in machines:
            run("ip", "-n", machine.name, "address", "add", f"{machine.address}/24", "dev", "cable")
            run("ip", "-n", machine.name, "link", "set", "lo", "up")
            machine.cable("up")
        yield first, second
    finally:
        for machine in made:
            run("ip", "netns", "delete", machine.name)
