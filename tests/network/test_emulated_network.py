"""An emulated network between real network namespaces: made through the journal, measured, changed, killed, undone."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

import emulated_networks
from emulated_networks import NODES, TIMEOUT_S, MadeNetwork
from plinth.model.errors import MissingCapability, Refused, RunError, UsageError
from plinth.model.network import Direction, LinkAsked, LinkChanges, LinkSettings, all_directions, both_directions
from plinth.network.namespaces import NetworkLayout, delete_namespace, network_daemons
from plinth.run.undo import UNDO_HANDLERS
from plinth.system.journal import Journal
from plinth.system.paths import work_dir
from plinth.system.process import all_exit
from plinth.system.runner import Runner


def changes(**given: object) -> LinkChanges:
    """As people write them."""
    return LinkChanges.model_validate(given)


@pytest.fixture(autouse=True)
def own_state(state_dir: Path) -> None:
    """Journals and networks of these tests are in a place of their own."""


@pytest.fixture
def made(request: pytest.FixtureRequest) -> Iterator[MadeNetwork]:
    network = MadeNetwork(f"net-{os.getpid()}-{abs(hash(request.node.name)) % 10**6}")
    try:
        yield network
    finally:
        kept = network.journal.undo_all(network.runner)
        network.journal.close()
        assert kept == ()
        assert network.left() == []


def test_a_round_trip_takes_the_delays_of_both_directions_and_each_link_has_its_own(made: MadeNetwork):
    made.control.change(dict.fromkeys(all_directions(NODES), changes(delay="2ms")))
    made.control.change({Direction("primary", "b"): changes(delay="30ms")})
    near, far = made.round_trips("primary", "a"), made.round_trips("b", "primary")
    assert all(took is not None and took >= 4_000_000 for took in near), near
    assert all(took is not None and took >= 32_000_000 for took in far), far
    link = made.control.status().link(Direction("primary", "a"))
    assert link.settings.delay_ns == 2_000_000
    assert link.counters.delivered >= 5


def test_a_partition_stops_packets_one_way_or_both_and_healing_lets_them_pass_again(made: MadeNetwork):
    cut, healed = changes(partitioned=True), changes(partitioned=False)
    assert None not in made.round_trips("primary", "a")
    made.control.change({Direction("a", "primary"): cut})
    assert set(made.round_trips("primary", "a", 2, 0.05)) == {None}
    counters = {way: made.control.status().link(way).counters for way in both_directions("primary", "a")}
    assert counters[Direction("a", "primary")].partitioned >= 2  # the replies
    assert counters[Direction("primary", "a")].partitioned == 0
    assert None not in made.round_trips("primary", "b")
    made.control.change(dict.fromkeys(both_directions("primary", "a"), healed))
    assert None not in made.round_trips("primary", "a")


def test_all_packets_of_a_link_are_lost_if_asked_for(made: MadeNetwork):
    made.control.change({Direction("primary", "a"): changes(loss="100%")})
    assert set(made.round_trips("primary", "a", 2, 0.05)) == {None}
    assert made.control.status().link(Direction("primary", "a")).counters.lost >= 2


_RECEIVE = """
import socket, sys
with socket.create_server((sys.argv[1], 5000)) as server:
    print("listening", flush=True)
    connection = server.accept()[0]
    received = 0
    while chunk := connection.recv(65536):
        received += len(chunk)
    print(received)
"""
_SEND = """
import socket, sys, time
began = time.monotonic()
with socket.create_connection((sys.argv[1], 5000)) as connection:
    connection.sendall(bytes(int(sys.argv[2])))
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)
print(time.monotonic() - began)
"""


def test_tcp_arrives_whole_and_no_faster_than_the_rate_even_with_loss(made: MadeNetwork):
    size_bytes, rate = 1_000_000, 20_000_000
    made.control.change(dict.fromkeys(all_directions(NODES), changes(rate="20Mbit/s", loss="0.5%", delay="1ms")))
    receiver = _in_namespace(made, "a", _RECEIVE, made.places["a"].address)
    assert receiver.stdout is not None
    assert receiver.stdout.readline() == "listening\n"
    sender = _in_namespace(made, "primary", _SEND, made.places["a"].address, str(size_bytes))
    took_s = float(sender.communicate(timeout=60)[0])
    assert int(receiver.communicate(timeout=60)[0]) == size_bytes
    assert took_s >= size_bytes * 8 / rate
    assert made.control.status().link(Direction("primary", "a")).counters.lost > 0


def _in_namespace(made: MadeNetwork, node: str, program: str, *words: str) -> "subprocess.Popen[str]":
    enter = ("nsenter", f"--net={made.places[node].namespace}")
    return subprocess.Popen([*enter, sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True)


def test_a_killed_daemon_is_an_error_and_all_is_undone_nevertheless(made: MadeNetwork):
    (daemon,) = network_daemons(made.control.path, made.layout.label)
    pidfd = os.pidfd_open(daemon)
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    assert all_exit([pidfd], TIMEOUT_S)
    os.close(pidfd)
    with pytest.raises(RunError, match="emulated network's daemon is not running"):
        made.control.status()
    assert set(made.round_trips("primary", "a", 1, 0.05)) == {None}


_RUN = """
import os, sys
sys.path.insert(0, sys.argv[1])
from emulated_networks import MadeNetwork
made = MadeNetwork(sys.argv[2])
print(made.journal.path, flush=True)
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_process_made_is_undone_from_its_journal():
    run_id = f"net-killed-{os.getpid()}"
    words = [sys.executable, "-c", _RUN, str(Path(emulated_networks.__file__).parent), run_id]
    killed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    layout = NetworkLayout(f"plinth-{run_id}", work_dir() / f"plinth-{run_id}-network", NODES)
    assert network_daemons(layout.control.path, layout.label)
    assert all(Path(place.namespace).exists() for place in layout.places)
    journal = Journal.take_over(Path(killed.stdout.strip()), UNDO_HANDLERS)
    assert journal is not None
    assert journal.undo_all(Runner()) == ()
    journal.close()
    assert not network_daemons(layout.control.path, layout.label)
    assert not any(Path(place.namespace).exists() for place in layout.places)
    assert not layout.folder.exists()


def test_a_foreign_namespace_is_not_deleted():
    for path in (Path("/run/netns/blue"), Path("/run/netns/plinth-r10-a"), Path("/etc/plinth-r1-a")):
        with pytest.raises(Refused, match="does not have our label"):
            delete_namespace(path, "plinth-r1", Runner())


def test_values_that_no_link_can_have_are_refused_and_nothing_is_changed(made: MadeNetwork):
    ways = both_directions("primary", "a")
    wrong = {ways[0]: changes(delay="1ms"), ways[1]: changes(delay=10**12)}
    with pytest.raises(UsageError, match=r"link from a to primary: delay_ns: got 1000000000000"):
        made.control.change(wrong)
    with pytest.raises(UsageError, match='no node "nobody"; there are primary, a, b'):
        made.control.change({Direction("primary", "nobody"): changes(delay="1ms")})
    assert made.control.status().link(ways[0]).settings.delay_ns == 0


def test_links_that_nothing_was_asked_of_are_as_the_defaults_say(made: MadeNetwork):
    assert all(link.settings == LinkSettings() for link in made.control.status().links)


def test_an_experiment_may_ask_for_just_what_a_link_can_have(made: MadeNetwork):
    way = Direction("primary", "a")
    limits = [("delay", 60 * 10**9, 1), ("jitter", 60 * 10**9, 1), ("rate", 1000, -1), ("queue", 65_535, -1)]
    for key, allowed, beyond in limits:
        made.control.change({way: LinkAsked.model_validate({key: allowed})})
        with pytest.raises(ValidationError):
            LinkAsked.model_validate({key: allowed + beyond})
        with pytest.raises(UsageError):
            made.control.change({way: changes(**{key: allowed + beyond})})


def test_without_root_it_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MissingCapability, match="only root can make network namespaces"):
        NetworkLayout("plinth-r1", tmp_path, NODES).check(Runner())


def test_the_command_changes_links_and_shows_them(made: MadeNetwork):
    def said(*words: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "plinth", "network", *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    control = str(made.control.path)
    shown = said("set", control, "delay=5ms", "rate=100Mbit/s", "--from", "primary", "--to", "a").stdout
    assert "primary to a: delay 5 ms, rate 100 Mbit/s\n" in shown
    assert "a to primary: delay 0 us\n" in shown
    assert json.loads(said("status", control, "--json").stdout)["links"][0]["settings"]["delay_ns"] == 5_000_000
    assert "late: p50" in said("status", control).stdout
    wrong = said("set", control, "dely=5ms")
    assert wrong.returncode == 2
    assert "unknown key 'dely'" in wrong.stderr
    assert "delay" in wrong.stderr
    nobody = said("set", control, "delay=5ms", "--from", "x")
    assert "no node 'x'; there are primary, a, b" in nobody.stderr
