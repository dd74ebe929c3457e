"""The witness and whoever connects to it: what it takes, what it refuses, and what is on its disk then."""

import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emulated_disks import run
from plinth.model.errors import Refused, RunError
from plinth.model.witness import Hello
from plinth.system.framed_tls import Disconnected, PeerTimeout, parsed
from plinth.witness import server, stream
from plinth.witness.credentials import connect_to_witness, witness_credentials
from plinth.witness.protocol import Kind
from plinth.witness.rounds import RoundWriter
from plinth.witness.stream import WitnessConnection
from waiting import wait_until
from witnessing import WitnessHere, answered, asked, header, record, records, round_json

ACKNOWLEDGED = 1


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[WitnessHere]:
    with WitnessHere(tmp_path / "rounds") as witness:
        yield witness


def says(witness: WitnessHere, words: str) -> None:
    wait_until(lambda: any(words in line for line in witness.said))


def known(witness: WitnessHere, number: int = 1) -> list[tuple[int, int, int]]:
    """Client, number and class of what is on its disk."""
    ledger = witness.folder.ledger(witness.folder.rounds()[number - 1])
    return [] if ledger is None else [(int(r["client"]), int(r["number"]), int(r["class"])) for r in ledger.records]


def test_what_is_acknowledged_to_the_load_is_on_the_disk_of_the_witness(witness: WitnessHere):
    load = witness.followed()
    first = records(0, record(0, 0, 1), record(1, 1, 1, ACKNOWLEDGED))
    assert asked(load, Kind.RECORDS, first).kind is Kind.ACK
    assert known(witness) == [(0, 1, 0), (1, 1, 1)]
    # The first is completed, and one follows.
    assert asked(load, Kind.RECORDS, records(0, record(0, 0, 1, 3), record(2, 0, 2))).kind is Kind.ACK
    assert asked(load, Kind.RECORDS, records(1, record(0, 3, 1, ACKNOWLEDGED))).kind is Kind.ACK
    assert known(witness) == [(0, 1, 3), (0, 2, 0), (1, 1, 1), (3, 1, 1)]
    assert round_json(witness.folder.path)["end"] is None
    assert asked(load, Kind.ENDED, b'{"end": "server lost"}').kind is Kind.ACK
    wait_until(lambda: round_json(witness.folder.path)["end"] == "server lost")
    says(witness, "2 acknowledged commits are known")


def test_a_folder_and_its_secrets_are_for_their_owner_only(witness: WitnessHere):
    path = witness.folder.path
    modes = {name: (path / name).stat().st_mode & 0o777 for name in (".", "token", "key.pem", "certificate.pem")}
    assert modes == {".": 0o700, "token": 0o600, "key.pem": 0o600, "certificate.pem": 0o600}
    again = witness_credentials(path, None, None)
    assert again[1:] == witness.credentials[1:], "the next start has the same"


def test_a_wrong_token_begins_nothing(witness: WitnessHere):
    answer = asked(witness.connect(), Kind.HELLO, witness.hello(token="x" * 43))
    assert answer == (Kind.REFUSED, b"the token is not that of this witness")
    assert witness.folder.rounds() == []


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (struct.pack("<BI", Kind.HELLO, 2**20), "1,048,576 bytes"),
        (struct.pack("<BI", 99, 4) + b"abcd", "no message of the kind 99"),
        (struct.pack("<BI", Kind.HELLO, 2) + b"{}", "Field required"),
        (struct.pack("<BI", Kind.HELLO, 4) + b"\xff\xfe\0{", "not what it has to be"),
        (struct.pack("<BI", Kind.RECORDS, 4) + b"\0\0\0\0", "the token is not that"),
        (b"GET / HTTP/1.1\r\n", "no message of the kind 71"),
        (b"\1", "the connection has ended"),
    ],
)
def test_a_peer_without_a_token_gets_nowhere(witness: WitnessHere, sent: bytes, said: str):
    peer = witness.connect()
    peer.socket.send(sent)
    socket.socket.shutdown(peer.socket, socket.SHUT_WR)
    says(witness, said)
    peer.close()
    assert witness.folder.rounds() == []
    assert witness.load(), "and the next is heard"


def test_a_peer_that_speaks_no_tls_is_sent_away(witness: WitnessHere):
    with witness.plain() as peer:
        peer.sendall(b"\0" * 1000)
        says(witness, "no TLS")


def test_a_peer_that_sends_slowly_is_sent_away_and_holds_nobody_up(
    witness: WitnessHere, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(server, "HELLO_TIMEOUT_S", 0.5)
    slow = witness.connect()
    slow.socket.send(struct.pack("<BI", Kind.HELLO, 1000) + b"{")
    load = witness.load()
    says(witness, "nothing came in time")
    load.close()
    slow.close()


def test_there_are_few_connections_without_a_token(witness: WitnessHere, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "_MAX_CONNECTIONS", 2)
    peers = [witness.connect() for _ in range(2)]
    with pytest.raises(RunError, match=r"cannot connect|no TLS"):
        witness.connect()
    for peer in peers:
        peer.close()


def test_one_load_at_a_time_and_the_first_is_not_disturbed(witness: WitnessHere):
    first = witness.followed()
    second = asked(witness.connect(), Kind.HELLO, witness.hello())
    assert second.kind is Kind.REFUSED
    assert b"another load" in second.payload
    assert asked(first, Kind.RECORDS, records(0, record(0, 0, 1, ACKNOWLEDGED))).kind is Kind.ACK


def test_a_connection_that_breaks_within_a_message_keeps_what_came_before(witness: WitnessHere):
    load = witness.followed()
    asked(load, Kind.RECORDS, records(0, record(0, 0, 1, ACKNOWLEDGED)))
    load.socket.send(struct.pack("<BI", Kind.RECORDS, 84) + records(0, record(1, 0, 2)))
    load.close()
    wait_until(lambda: round_json(witness.folder.path)["end"] == "disconnected")
    assert known(witness) == [(0, 1, 1)]


def test_a_load_that_falls_silent_has_ended(tmp_path: Path):
    with WitnessHere(tmp_path / "rounds", silence_s=0.5) as witness:
        load = witness.followed()
        asked(load, Kind.RECORDS, records(0, record(0, 0, 1, ACKNOWLEDGED)))
        wait_until(lambda: round_json(witness.folder.path)["end"] == "silent")
        assert known(witness) == [(0, 1, 1)]


def test_a_round_in_which_the_power_may_have_gone_is_not_forgotten_by_the_next_load(witness: WitnessHere):
    load = witness.followed()
    asked(load, Kind.RECORDS, records(0, record(0, 0, 1, ACKNOWLEDGED)))
    load.close()
    wait_until(lambda: round_json(witness.folder.path)["end"] == "disconnected" and witness.is_free())
    answer = asked(witness.connect(), Kind.HELLO, witness.hello())
    assert answer.kind is Kind.REFUSED
    assert b"round 1 was not verified yet" in answer.payload


def test_a_round_without_commits_blocks_no_other(witness: WitnessHere):
    witness.load().close()
    wait_until(lambda: round_json(witness.folder.path)["end"] == "disconnected" and witness.is_free())
    witness.load().close()
    assert [one.number for one in witness.folder.rounds()] == [1, 2]


BAD = {
    "a hole": records(0, record(2, 0, 2)),
    "two at once": records(0, record(1, 0, 2), record(1, 0, 3)),
    "no number": records(0, record(1, 0, 0)),
    "a number beyond bigint": records(0, record(1, 0, 2**63)),
    "an unknown class": records(0, record(1, 0, 2, 200)),
    "an unknown client": records(0, record(1, 4, 2)),
    "an unknown thread": records(2, record(0, 0, 2)),
    "half a record": records(0, record(1, 0, 2)[:-1]),
    "half a thread": b"\0\0",
}


@pytest.mark.parametrize("what", BAD)
def test_records_that_cannot_be_end_the_round_and_are_not_written(witness: WitnessHere, what: str):
    load = witness.followed()
    asked(load, Kind.RECORDS, records(0, record(0, 0, 1, ACKNOWLEDGED)))
    assert asked(load, Kind.RECORDS, BAD[what]).kind is Kind.REFUSED
    wait_until(lambda: round_json(witness.folder.path)["end"] == "witness ended")
    assert known(witness) == [(0, 1, 1)]


@pytest.mark.parametrize(
    "payload",
    [header(0, of=1), header(0, threads=3), header(0, magic=b"PLINTHLX"), header(0)[:-1], header(7), b""],
    ids=["of another thread", "of another load", "no magic", "short", "unknown thread", "empty"],
)
def test_headers_that_cannot_be_are_refused(witness: WitnessHere, payload: bytes):
    load = witness.load()
    assert asked(load, Kind.HEADER, payload).kind is Kind.REFUSED
    assert [entry.name for entry in (witness.folder.path / "0001").iterdir()] == ["round.json"]


def test_records_before_the_headers_of_all_threads_are_refused(witness: WitnessHere):
    load = witness.load()
    assert asked(load, Kind.HEADER, header(0)).kind is Kind.ACK
    assert asked(load, Kind.RECORDS, records(0, record(0, 0, 1))).kind is Kind.REFUSED


@pytest.mark.parametrize("kind", [Kind.HELLO, Kind.WELCOME, Kind.ACK, Kind.REFUSED])
def test_messages_out_of_place_are_refused(witness: WitnessHere, kind: Kind):
    assert asked(witness.load(), kind, b"").kind is Kind.REFUSED


def test_a_round_cannot_fill_the_disk_of_the_witness(tmp_path: Path):
    with WitnessHere(tmp_path / "rounds", max_round_bytes=64) as witness:
        load = witness.followed()
        assert asked(load, Kind.RECORDS, records(0, record(0, 0, 1), record(1, 0, 2))).kind is Kind.ACK
        assert asked(load, Kind.RECORDS, records(0, record(0, 0, 1, 1))).kind is Kind.ACK, "a known one takes no room"
        answer = asked(load, Kind.RECORDS, records(1, record(0, 1, 1)))
        assert answer.kind is Kind.REFUSED
        assert b"--max-size" in answer.payload
        assert len(known(witness)) == 2


def test_a_full_disk_of_the_witness_ends_the_round_and_the_load_learns_why(scratch: Path):
    small = scratch / "small"
    small.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=128k", "plinth-test", str(small))
    try:
        fill(small / "rounds")
    finally:
        run("umount", "--lazy", str(small))  # the folder is held open until it is forgotten


@pytest.mark.parametrize("free_pages", [0, 1])
def test_a_load_that_finds_the_disk_of_the_witness_full_learns_why_and_leaves_nothing(scratch: Path, free_pages: int):
    """Without a page there is no room for the round, with one there is none for its lock."""
    small = scratch / "small"
    small.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=128k", "plinth-test", str(small))
    try:
        with WitnessHere(small / "rounds") as witness:
            filler = small / "filler"
            room = os.statvfs(small)
            filler.write_bytes(bytes((room.f_bavail - free_pages) * room.f_frsize))
            for _ in range(2):
                answer = asked(witness.connect(), Kind.HELLO, witness.hello())
                assert answer.kind is Kind.REFUSED
                assert b"no space left" in answer.payload
            assert [entry.name for entry in witness.folder.path.iterdir() if entry.is_dir()] == []
            filler.unlink()
            load = witness.load()
            assert [one.number for one in witness.folder.rounds()] == [1]
            load.close()
            wait_until(lambda: round_json(witness.folder.path)["end"] == "disconnected")
    finally:
        run("umount", "--lazy", str(small))  # the folder is held open until it is forgotten


def fill(path: Path) -> None:
    with WitnessHere(path) as witness:
        load = witness.followed()
        number = 0
        while (answer := asked(load, Kind.RECORDS, records(0, *batch(number)))).kind is Kind.ACK:
            number += BATCH
        assert answer.kind is Kind.REFUSED
        assert b"no space left" in answer.payload
        assert number <= len(known(witness)) < number + BATCH
        assert number > 0
        wait_until(lambda: not witness.folder.is_running(witness.folder.rounds()[0]))


BATCH = 500


def batch(first: int) -> list[bytes]:
    return [record(number, 0, number + 1, ACKNOWLEDGED) for number in range(first, first + BATCH)]


def test_a_witness_that_ends_says_so_in_its_round(tmp_path: Path):
    with WitnessHere(tmp_path / "rounds") as witness:
        load = witness.followed()
        asked(load, Kind.RECORDS, records(0, record(0, 0, 1, ACKNOWLEDGED)))
    assert round_json(witness.folder.path)["end"] == "witness ended"
    with pytest.raises(Disconnected):
        load.send(Kind.RECORDS, records(0))
        answered(load)


def test_a_folder_has_one_witness(witness: WitnessHere):
    with pytest.raises(Refused, match="another Plinth is working in this directory"):
        with server.serving(witness.folder.path, witness.credentials, server.listening("127.0.0.1", 0), print):
            pass


def test_the_token_is_sent_to_nobody_but_the_witness(tmp_path: Path):
    """Whoever is in between has a certificate of his own, and gets to see a handshake only."""
    with WitnessHere(tmp_path / "rounds") as witness, WitnessHere(tmp_path / "between") as between:
        with pytest.raises(RunError, match="this is another witness"):
            connect_to_witness("127.0.0.1", between.port, witness.credentials.fingerprint, 20)
        hello = parsed(Hello, witness.hello())
        with pytest.raises(RunError, match="this is another witness"):
            WitnessConnection("127.0.0.1", between.port, witness.credentials.fingerprint, hello)
        says(between, "the connection has ended")
        assert not any("token" in line for line in between.said)


def test_a_witness_that_does_not_answer_any_more_is_named(witness: WitnessHere, monkeypatch: pytest.MonkeyPatch):
    hello = parsed(Hello, witness.hello())
    load = WitnessConnection("127.0.0.1", witness.port, witness.credentials.fingerprint, hello)
    monkeypatch.setattr(stream, "ANSWER_TIMEOUT_S", 0.2)
    monkeypatch.setattr(RoundWriter, "records", lambda writer, payload: wait_until(lambda: round_is_over.is_set()))
    round_is_over = threading.Event()
    with pytest.raises(PeerTimeout) as silent:
        load.send(Kind.RECORDS, struct.pack("<I", 0))
    round_is_over.set()
    assert silent.value.where == f"the witness at 127.0.0.1:{witness.port}"
    assert "see what the witness says" in (silent.value.hint or "")
    load.close()


def changed(**keys: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "round.json").write_text(json.dumps(round_json(folder.parent) | keys))

    return change


def without_a_ledger(folder: Path) -> None:
    (folder / "1.ledger").unlink()


def with_a_fifo(folder: Path) -> None:
    without_a_ledger(folder)
    os.mkfifo(folder / "1.ledger")


def with_a_link(folder: Path) -> None:
    (folder / "1.ledger").rename(folder / "moved")
    (folder / "1.ledger").symlink_to("moved")


ALTERED = {
    "no JSON": (lambda folder: (folder / "round.json").write_text("{"), "writes: Invalid JSON"),
    "another version": (changed(schema_version=7), "schema_version: Input should be 1"),
    "a further key": (changed(more=1), "more: Extra inputs"),
    "the number of another round": (changed(number=3), "of round 3, but it is in the folder of round 1"),
    "too few clients": (changed(clients=2), "has a client 3, and round.json says that there were 2"),
    "endless threads": (changed(threads=10**8), "threads: Input should be less"),
    "no ledger of a thread": (without_a_ledger, "has 1 files; the load had 2 threads"),
    "a FIFO": (with_a_fifo, "it is a FIFO"),
    "a link": (with_a_link, "it is a symbolic link"),
}


@pytest.mark.parametrize("what", ALTERED)
def test_rounds_that_were_altered_are_refused(witness: WitnessHere, what: str):
    load = witness.followed()
    asked(load, Kind.RECORDS, records(0, record(0, 3, 1, ACKNOWLEDGED)))
    load.close()
    wait_until(lambda: round_json(witness.folder.path)["end"] == "disconnected")
    alter, said = ALTERED[what]
    alter(witness.folder.path / "0001")
    with pytest.raises(RunError, match=said):
        known(witness)
