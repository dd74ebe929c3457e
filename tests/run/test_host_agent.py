"""The agent of a host, asked over a socket as a coordinator asks it."""

import select
import socket
import threading
from collections.abc import Iterator

import pytest

from plinth.fleet.protocol import Link
from plinth.run.hosts.agent import HostAgent
from plinth.run.hosts.calls import Lane
from plinth.run.hosts.protocol import Answer, Request
from plinth.run.undo import UNDO_HANDLERS


@pytest.fixture
def coordinator(state_dir) -> Iterator[Link]:
    ours, theirs = socket.socketpair()
    agent = threading.Thread(
        target=lambda: HostAgent(Link(theirs), "192.0.2.1 50000 192.0.2.11 22", UNDO_HANDLERS).serve()
    )
    agent.start()
    link = Link(ours)
    yield link
    link.socket.shutdown(socket.SHUT_RDWR)
    agent.join(30)
    assert not agent.is_alive(), "it ends with its connection"


def ask(link: Link, request: Request) -> None:
    link.send(request.model_dump_json().encode())


def answer(link: Link) -> Answer:
    return Answer.model_validate_json(link.receive(30).document)


def waiting(number: int, lane: Lane) -> Request:
    """A call that waits a quarter of a second: the doctor watches other processes."""
    arguments = {"storages": [], "asked": {}, "measures_a_server": False, "load_average": None}
    return Request(number=number, kind="call", lane=lane, on=("host",), method="examine", arguments=arguments)


def test_a_call_that_is_cancelled_ends_and_those_of_other_threads_go_on(coordinator: Link) -> None:
    ask(coordinator, waiting(1, "work"))
    ask(coordinator, waiting(2, "watch"))
    ask(coordinator, waiting(3, "work"))
    ask(coordinator, Request(number=4, kind="cancel", cancels=1))
    ask(coordinator, Request(number=5, kind="cancel", cancels=3))
    answers = {one.number: one for one in (answer(coordinator) for _ in range(5))}
    for number in (1, 3):
        error = answers[number].error
        assert error is not None and error.kind == "Interrupted", "one was under way, the other waited for it"
    assert answers[2].error is None and answers[2].result["findings"]


def test_it_says_by_which_address_it_was_reached(coordinator: Link) -> None:
    ask(coordinator, Request(number=1, kind="hello"))
    hello = answer(coordinator).hello
    assert hello is not None and (hello.address, hello.coordinator_address) == ("192.0.2.11", "192.0.2.1")


def test_it_stays_until_the_coordinator_has_its_last_answer(coordinator: Link) -> None:
    ask(coordinator, Request(number=1, kind="end"))
    ask(coordinator, Request(number=2, kind="clock"))  # a sign of life that was on its way
    assert answer(coordinator).kept == ()
    assert select.select([coordinator.socket], [], [], 0.3)[0] == [], "the end of the connection would be readable"


@pytest.mark.parametrize(
    ("on", "method", "arguments", "said"),
    [
        (("host",), "__class__", {}, "has no host.__class__"),
        (("runner",), "run", {}, "has no runner.run"),
        (("storage", "disk"), "facts", {}, "no storage disk on this host"),
        (("host",), "facts", {"path": "/"}, "has no argument path"),
        (("host",), "drop_page_cache", {"paths": [], "runner": "sh"}, "has no argument runner"),
    ],
)
def test_what_it_was_not_made_for_is_refused(coordinator: Link, on, method, arguments, said) -> None:
    ask(coordinator, Request(number=1, kind="call", on=on, method=method, arguments=arguments))
    error = answer(coordinator).error
    assert error is not None and said in error.message
