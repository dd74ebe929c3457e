"""Three machines of a Ray cluster on this one: each has a network, a process table and Ray's folder to itself, and a raylet.

Each is the namespaces of one process, which reads a pipe of ours: it ends when we close the pipe, or end ourselves however that may
be, and the kernel then ends all processes in there, and removes what they have mounted, and the network. Needs root.
"""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_BIN = Path(sys.executable).parent
_NETWORK = "10.120.0"  # seen in the namespaces only
_PORT = 6379
_INIT = 'mount -t tmpfs -o mode=700 tmpfs "$1" && ip link set lo up && echo ready && exec cat >/dev/null'
_START_TIMEOUT_S = 120
_NO_FORK_HANDLERS = {"GRPC_ENABLE_FORK_SUPPORT": "0"}
"""With them Ray's server for drivers of other machines fails to start one's process now and then (ray-project/ray#63202)."""
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
CLIENT_PORT = 10001
"""Of Ray's own server for drivers that are not in the cluster, on the first machine."""


class Machine:
    """A machine of the cluster."""

    def __init__(self, number: int, process: "subprocess.Popen[bytes]", folder: Path) -> None:
        self.name = f"machine{number}"
        self.address = f"{_NETWORK}.{number}"
        self.pid = process.pid
        self.folder = folder
        """Ray's own, as this machine sees it."""

    @property
    def ray_files(self) -> Path:
        """The same folder, as we see it."""
        return Path(f"/proc/{self.pid}/root{self.folder}")

    def argv(self, *argv: str) -> list[str]:
        """The command that runs `argv` there, in our working directory."""
        enter = [f"--net=/proc/{self.pid}/ns/net", f"--mount=/proc/{self.pid}/ns/mnt"]
        enter.append(f"--pid=/proc/{self.pid}/ns/pid_for_children")
        return ["nsenter", *enter, "env", f"--chdir={Path.cwd()}", f"RAY_TMPDIR={self.folder}", *argv]

    def start(self, *argv: str, **options: Any) -> "subprocess.Popen[str]":
        """Start a program there. A signal for it has to go to its process group: nsenter waits between us and it."""
        return subprocess.Popen(self.argv(*argv), text=True, **options)

    def run(self, *argv: str, env: Mapping[str, str] | None = None, timeout_s: float = _START_TIMEOUT_S) -> str:
        """Run a program there to its end: its standard output."""
        done = subprocess.run(
            self.argv(*argv),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env=os.environ | dict(env or {}),
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(argv)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def run_in_front(self, *argv: str) -> int:
        """Run a program there as at a terminal: it gets the signals that end us. Returns its exit code."""
        # In a session of its own: a Ctrl-C would end nsenter, which waits for it, and with it the machines before all is undone.
        process = subprocess.Popen(self.argv(*argv), start_new_session=True)

        def forward(number: int, _: object) -> None:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for pid in map(int, children or (process.pid,)):
                os.kill(pid, number)

        before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            code = process.wait()
            return code if code >= 0 else 128 - code
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def ip(self, *words: str) -> None:
        """ip(8) in its network, by our pids."""
        subprocess.run(["nsenter", f"--net=/proc/{self.pid}/ns/net", "ip", *words], check=True)

    def processes(self, word: str) -> set[int]:
        """Our pids of the programs there that have `word` in the name of their file."""
        namespace = Path(f"/proc/{self.pid}/ns/pid_for_children").readlink()
        found = set()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "ns" / "pid").readlink() == namespace:
                    program = (process / "cmdline").read_bytes().split(b"\0")[0]
                    if word.encode() in program.rpartition(b"/")[2]:
                        found.add(int(process.name))
            except OSError:  # it has ended
                continue
        return found


@contextmanager
def machines(count: int = 3) -> Iterator[list[Machine]]:
    """Machines whose networks a bridge in the first one joins."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plinth-ray-")))
        made = [stack.enter_context(_machine(number, folder)) for number in range(1, count + 1)]
        first = made[0]
        first.ip("link", "add", "net", "type", "bridge")
        for machine in made[1:]:
            cable = machine.name
            first.ip("link", "add", cable, "type", "veth", "peer", "name", "net", "netns", str(machine.pid))
            first.ip("link", "set", cable, "master", "net", "up")
        for machine in made:
            machine.ip("address", "add", f"{machine.address}/24", "dev", "net")
            machine.ip("link", "set", "net", "up")
        yield made


@contextmanager
def in_network(machine: Machine) -> Iterator[None]:
    """This thread, and what it starts meanwhile, is in the machine's network: so a coordinator there sees our files and processes."""
    ours_at, theirs_at = Path("/proc/thread-self/ns/net"), Path(f"/proc/{machine.pid}/ns/net")
    with ours_at.open() as ours, theirs_at.open() as theirs:
        _enter(theirs.fileno())
        try:
            yield
        finally:
            _enter(ours.fileno())


def _enter(network: int) -> None:
    if _libc.setns(network, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def start_ray(cluster: list[Machine]) -> None:
    """A raylet on each machine, the first of which is the head."""
    head, *others = cluster
    start_raylet(
        head, "--head", f"--port={_PORT}", "--include-dashboard=false", f"--ray-client-server-port={CLIENT_PORT}"
    )
    with ThreadPoolExecutor() as at_once:
        list(at_once.map(lambda machine: start_raylet(machine, f"--address={head.address}:{_PORT}"), others))


def start_raylet(machine: Machine, *words: str) -> None:
    """As `ray start` does it on a host; what it starts runs until the machine ends."""
    of_machine = [f"--node-ip-address={machine.address}", f"--node-name={machine.name}", "--num-cpus=1"]
    small = ["--object-store-memory=80000000", "--disable-usage-stats"]
    machine.run(str(_BIN / "ray"), "start", *words, *of_machine, *small, env=_NO_FORK_HANDLERS)


@contextmanager
def _machine(number: int, folder: Path) -> Iterator[Machine]:
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc"]
    process = subprocess.Popen(
        [*unshare, "sh", "-c", _INIT, "machine", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n", "no namespaces can be made; that takes root"
        yield Machine(number, process, folder)
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()
