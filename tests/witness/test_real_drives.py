"""The whole way of a power cut by hand: a witness and a machine under test in network namespaces of their own, a real server
on an emulated disk in the part of the drive, and commands as a user types them."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulated_disks import MIB, ServedDisk, run, served
from plinth.model.disk import IgnoreFlush
from plinth.server.installations.find import find_installation
from plinth.server.shared_memory import Guarded, remove_memory_of
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from plinth.witness.rounds import WitnessFolder
from two_machines import Machine, two_machines
from waiting import wait_until

PLINTH = (sys.executable, "-m", "plinth", "durability")
PORT = 5432
ENOUGH = 300
COMMITS = ("--clients", "4", "--duration", "120s")


class Server:
    """A PostgreSQL of a machine, on the file system of its drive."""

    def __init__(self, machine: Machine, folder: Path, log: Path) -> None:
        self._machine = machine
        self._data = folder / "data"
        self._log = log
        self._owner = server_owner()
        self._bindir = Path(find_installation(18, None, self._owner, Runner()).bindir)
        self._processes: list[subprocess.Popen[str]] = []
        self.conninfo = f"host={machine.address} port={PORT} user=postgres dbname=postgres"

    def init(self) -> None:
        self._data.mkdir()
        os.chown(self._data, self._owner.uid, self._owner.gid)
        Runner().run(
            [f"{self._bindir}/initdb", "-D", str(self._data), "-A", "trust", "-U", "postgres", "--no-sync"],
            owner=self._owner,
        )
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.213.77.0/24 trust\n")

    def start(self) -> None:
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        self._memory = Guarded.at(self._data)
        self._log.touch()
        os.chown(self._log, self._owner.uid, self._owner.gid)
        with self._log.open("a") as log:
            self._processes.append(
                self._machine.start(
                    *(f"{self._bindir}/postgres", "-D", str(self._data), "-p", str(PORT)),
                    *("-c", "listen_addresses=*", "-c", "unix_socket_directories="),
                    user=(self._owner.uid, self._owner.gid),
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )
        ready = [f"{self._bindir}/pg_isready", "-q", "-d", self.conninfo]
        wait_until(lambda: self._machine.start(*ready).wait() == 0, f"the server answers: {self._log}", timeout_s=60)

    def kill(self) -> None:
        """As the end of the machine's power does: all of its processes at once."""
        data = str(self._data)
        for process in self._processes:
            process.kill()
            process.wait()
        wait_until(lambda: not _alive(data, signal.SIGKILL), "the server's processes are gone")
        remove_memory_of(self._memory)  # which a machine would have lost with its power


def _alive(data: str, number: int) -> list[int]:
    """The processes whose working directory is the data directory; each gets a signal."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if str((process / "cwd").readlink()) == data:
                found.append(int(process.name))
                os.kill(found[-1], number)
    return found


class Witness:
    """`plinth durability witness` on a machine of its own."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine = machine
        self.folder = folder
        self.process = machine.start(
            *(*PLINTH, "witness", str(folder), "--listen", f"{machine.address}:0", "--silence", "2"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout
        said = "".join(self.process.stdout.readline() for _ in range(4))
        words = re.search(r":(\d+); .*fingerprint (\S+)", said, re.DOTALL)
        assert words, said
        self.options = ("--witness", f"{machine.address}:{words[1]}", "--fingerprint", words[2])

    def knows(self, number: int) -> int:
        """Acknowledged commits of a round."""
        rounds = WitnessFolder(self.folder).rounds()
        ledger = WitnessFolder(self.folder).ledger(rounds[number - 1]) if len(rounds) >= number else None
        return 0 if ledger is None else len(ledger.of_class("acknowledged"))

    def has_ended(self, number: int) -> bool:
        return WitnessFolder(self.folder).rounds()[number - 1].ended_unix_ns is not None

    def end(self) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(20) == 130


class Place:
    """Everything that a test of a real drive needs."""

    def __init__(self, folder: Path, tested: Machine, witness: Witness, disk: ServedDisk) -> None:
        self.tested = tested
        self.witness = witness
        self.disk = disk
        self.server = Server(tested, folder / "filesystem", folder / "log")
        self._folder = folder
        self._rounds = 0

    def install(self) -> None:
        """The server, durable on its drive before anything is tested."""
        with self.disk.filesystem():
            self.server.init()
            self.server.start()
            self.server.kill()
            run("sync", "--file-system", str(self._folder / "filesystem"))
            self.disk.control.flush_now()

    def pull_the_plug(self, flushed_once: bool = False) -> None:
        """A load until its power goes: that of the drive, of all processes, and of the network. `flushed_once`: what the drive
        had taken after a while is durable, regardless of what it reports."""
        self._rounds += 1
        with self.disk.filesystem(made=True):
            self.server.start()
            load = self.tested.start(
                *(*PLINTH, "load", self.server.conninfo, *self.witness.options, *COMMITS),
                *("--token-file", str(self.witness.folder / "token")),
                stderr=subprocess.PIPE,
            )
            self._wait_until_known(ENOUGH, load)
            if flushed_once:
                self.disk.control.flush_now()
                # The witness may lag behind on a busy machine: what it knows now may be durable to the last commit.
                self._wait_until_known(self._committed() + ENOUGH, load)
            self.disk.control.power_cut("drop", seed=self._rounds)
            self.tested.cable("down")
            load.kill()
            load.communicate()
            self.server.kill()
        wait_until(lambda: self.witness.has_ended(self._rounds), "the witness has noticed")
        self.disk.control.power_on()
        self.tested.cable("up")

    def _committed(self) -> int:
        """How many commits the server has."""
        code = "import sys, psycopg; print(psycopg.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])"
        count = "SELECT count(*) FROM plinth_ledger_commits"
        return int(self.tested.run(sys.executable, "-c", code, self.server.conninfo, count))

    def _wait_until_known(self, commits: int, load: subprocess.Popen[str]) -> None:
        def is_known() -> bool:
            assert load.poll() is None, load.communicate()
            return self.witness.knows(self._rounds) > commits

        wait_until(is_known, f"the witness has recorded {commits} commits", timeout_s=60)

    @contextlib.contextmanager
    def recovered(self) -> Iterator[None]:
        """The machine is up again."""
        with self.disk.filesystem(made=True):
            try:
                self.server.start()
                yield
            finally:
                self.server.kill()

    def verify(self, *, code: int) -> dict:
        """What all rounds say after the last one."""
        argv = (*PLINTH, "verify", str(self.witness.folder), self.server.conninfo, "--json")
        return json.loads(self.witness.machine.run(*argv, codes=(code,)))


@pytest.fixture
def place(scratch: Path, state_dir: Path) -> Iterator[Place]:
    with two_machines() as (witness, tested), served(scratch, size_bytes=512 * MIB) as disk:
        heard = Witness(witness, scratch / "rounds")
        try:
            found = Place(scratch, tested, heard, disk)
            found.install()
            yield found
        finally:
            heard.end()


@pytest.mark.long
def test_an_honest_drive_keeps_every_acknowledged_commit_and_each_cut_lowers_the_bound(place: Place):
    place.pull_the_plug()
    again = (*PLINTH, "load", place.server.conninfo, *place.witness.options, *COMMITS)
    with place.recovered():
        # What the next load would empty has to be looked at first.
        place.tested.run(*again, "--token-file", str(place.witness.folder / "token"), codes=(4,))
        first = place.verify(code=0)
        assert place.verify(code=0)["cuts"] == 1, "whoever verifies twice has made one cut"
    place.pull_the_plug()
    with place.recovered():
        both = place.verify(code=0)
    without_server = (*PLINTH, "verify", str(place.witness.folder), "--verdict", "--json")
    assert json.loads(place.witness.machine.run(*without_server)) == both
    assert (first["cuts"], both["cuts"]) == (1, 2)
    assert both["acknowledged"] > first["acknowledged"] > ENOUGH
    assert (both["lost"], both["damaged_cuts"]) == (0, 0)
    assert first["damaged_share_at_most"] == pytest.approx(0.95)
    assert both["damaged_share_at_most"] == pytest.approx(1 - 0.05**0.5)
    assert all(check["not_run"] is None for check in both["rounds"][1]["checks"] if check["name"] != "pg_checksums")
    assert "has not been rebooted since the loads of rounds 1 and 2 began" in both["notes"][0], (
        "its power went here, and not that of its machine"
    )


@pytest.mark.long
def test_a_drive_that_lies_is_found_whether_it_loses_the_last_commits_or_all(place: Place):
    place.disk.control.set_lie(IgnoreFlush())
    place.pull_the_plug(flushed_once=True)
    with place.recovered():
        last = place.verify(code=99)
    assert last["damaged_cuts"] == last["cuts"] == 1
    assert 0 < last["lost"] < last["acknowledged"]
    finding = last["rounds"][0]["ledger"]["findings"][0]
    assert (finding["kind"], finding["commit_class"]) == ("lost commit", "acknowledged")
    assert last["rounds"][0]["lost_time_s"] > 0
    place.disk.control.flush_now()
    place.pull_the_plug()
    with place.recovered():
        both = place.verify(code=99)
    everything = both["rounds"][1]
    assert everything["ledger"]["counts"]["lost commit"] == everything["acknowledged"] > ENOUGH
    assert (both["cuts"], both["damaged_cuts"], both["damaged_share_at_most"]) == (2, 2, 1.0)
