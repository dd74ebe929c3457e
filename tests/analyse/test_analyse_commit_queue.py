"""Commits of clients that share flushes, simulated: what follows by arithmetic, and the order of the levels of synchronous_commit."""

import pytest

from plinth.analyse.commit_queue import LOCAL, Clients, Remote, Waits, commit_median_ns, flush_behind

MS = 1e6
FLUSH_NS = 1.4 * MS
ONE, MANY = Clients(1, 0.45 * MS), Clients(8, 0.45 * MS)


def commit_ms(
    clients: Clients, waits: Waits, round_trip_ms: float, there_ms: float, flush_ns: float = FLUSH_NS
) -> float:
    return commit_median_ns(clients, flush_ns, Remote(waits, round_trip_ms * MS, there_ms * MS)) / MS


def test_the_parts_of_one_client_follow_one_another() -> None:
    assert commit_median_ns(ONE, FLUSH_NS, LOCAL) == pytest.approx(FLUSH_NS, rel=0.03)
    assert commit_ms(ONE, "on", 2, 3) == pytest.approx(1.4 + 2 + 3, rel=0.03)
    assert commit_ms(ONE, "remote_apply", 2, 3) == pytest.approx(1.4 + 2 + 3, rel=0.03)
    assert commit_ms(ONE, "remote_write", 4, 1) == pytest.approx(1.4 + 4, rel=0.03), "its flush has ended meanwhile"


def test_a_written_commit_waits_for_the_flush_of_the_one_before() -> None:
    """The standby writes nothing while it flushes, so that even one client gets no more than one commit a flush through."""
    assert commit_ms(ONE, "remote_write", 0, 10) == pytest.approx(10 - 0.45, rel=0.05)


def test_many_clients_wait_for_a_flush_under_way_and_for_their_own() -> None:
    """Two groups take turns: a client comes `think` after its last commit, and is answered two flushes after that."""
    assert commit_median_ns(MANY, FLUSH_NS, LOCAL) == pytest.approx(2 * FLUSH_NS - MANY.think_ns, rel=0.05)
    slow_ms = commit_ms(MANY, "on", 0, 30)
    assert slow_ms == pytest.approx(2 * 30, rel=0.1), "so it is where the standby's flush is the slow one"


def test_over_a_distance_they_wait_less_for_each_other() -> None:
    local_ms = commit_median_ns(MANY, FLUSH_NS, LOCAL) / MS
    far_ms = commit_ms(MANY, "remote_write", 40, 0)
    assert 40 + 1.4 * 0.9 < far_ms < 40 + local_ms - 0.5


@pytest.mark.parametrize("round_trip_ms", [0.05, 2, 10])
def test_each_level_waits_for_more_than_the_one_before(round_trip_ms: float) -> None:
    levels: tuple[Waits, ...] = ("local", "remote_write", "on", "remote_apply")
    took_ms = [commit_ms(MANY, waits, round_trip_ms, 1.4) for waits in levels]
    assert took_ms == sorted(took_ms) and len(set(took_ms)) == len(took_ms), took_ms


@pytest.mark.parametrize("clients", [ONE, MANY, Clients(32, 0.0), Clients(4, 9 * MS)])
def test_the_flush_that_is_behind_a_commit_is_found(clients: Clients) -> None:
    commit_ns = commit_median_ns(clients, FLUSH_NS, LOCAL)
    assert flush_behind(clients, commit_ns) == pytest.approx(FLUSH_NS, rel=0.03)
