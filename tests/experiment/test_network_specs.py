"""[network] in an experiment file: what links are asked to be like, and what is refused with its line."""

from pathlib import Path

import pytest

from plinth.experiment import read_experiment_text
from plinth.model.action import NetworkAction
from plinth.model.errors import ExperimentError
from plinth.model.network import Direction, LinkSettings, NetworkSpec, directions_of, link_sentences
from ramdisk_experiment import ramdisk_text

HEAD = ramdisk_text()
FIRST_LINE = HEAD.count("\n")
STANDBY = "[server.standby.a]\nstorage='disk'\n"


def test_all_links_one_link_and_one_direction() -> None:
    text = "[network]\ndelay='1ms'\nloss='0.5%'\n[network.link.primary-to-b]\ndelay='7ms'\n[network.link.b-primary]\ndelay='3ms'\n"
    standbys = STANDBY + "[server.standby.b]\nstorage='disk'\n"
    network = read_experiment_text(HEAD + standbys + text, "x.toml", Path()).experiment.network
    assert network is not None
    found = network.settings(["primary", "a", "b"])
    assert {tuple(way): one.delay_ns // 10**6 for way, one in found.items()} == {
        ("primary", "a"): 1,
        ("a", "primary"): 1,
        ("primary", "b"): 7,
        ("b", "primary"): 3,
        ("a", "b"): 1,
        ("b", "a"): 1,
    }
    assert {one.loss for one in found.values()} == {0.005}
    assert link_sentences(found) == [
        "between a and primary, between a and b delay 1 ms, loss 0.5 %",
        "primary to b delay 7 ms, loss 0.5 %",
        "b to primary delay 3 ms, loss 0.5 %",
    ]


def test_links_of_nodes_that_a_topology_lacks_are_left_out() -> None:
    network = NetworkSpec.model_validate({"link": {"primary-b": {"delay": "9ms"}}})
    assert network.settings(["primary"]) == {}
    assert all(one == LinkSettings() for one in network.settings(["primary", "a"]).values())


@pytest.mark.parametrize(("link", "ways"), [("a-b", [("a", "b"), ("b", "a")]), ("a-to-b", [("a", "b")])])
def test_the_name_of_a_link_says_its_directions(link: str, ways: list[tuple[str, str]]) -> None:
    assert [tuple(way) for way in directions_of(link)] == ways


def test_an_action_changes_the_links_that_it_names() -> None:
    action = NetworkAction.model_validate({"do": "network", "at": "2s", "link": "primary-to-a", "partitioned": True})
    changes = action.changes(["primary", "a", "b"])
    assert list(changes) == [Direction("primary", "a")]
    assert changes[Direction("primary", "a")].model_dump(exclude_none=True) == {"partitioned": True}
    assert action.title() == "network: primary-to-a: partitioned at 2 s"
    of_all = NetworkAction.model_validate({"do": "network", "at": "2s", "delay": "5ms"})
    assert len(of_all.changes(["primary", "a", "b"])) == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[network]\ndelay='1ms'\n", "there are no standbys that a network could join to the primary"),
        (STANDBY + "[network]\ndely='1ms'\n", "dely"),
        (STANDBY + "[network]\ndelay='2min'\n", "unknown unit 'min'"),
        (STANDBY + "[network]\ndelay='61s'\n", "delay: got 1 min 01 s; allowed is at most 60 s"),
        (STANDBY + "[network]\nloss='101%'\n", "at most 100 %"),
        (STANDBY + "[network]\nrate=10\n", "allowed is 1 kbit/s or more"),
        (STANDBY + "[network]\nqueue='1kB'\n", "the longest packet"),
        (STANDBY + "[network.link.primary-b]\ndelay='1ms'\n", "'b' is not one of: primary, a"),
        (STANDBY + "[network.link.primary]\ndelay='1ms'\n", "expected two nodes"),
        (STANDBY + "[network.link.a-a]\ndelay='1ms'\n", "expected two nodes"),
        (STANDBY + "[[measure.action]]\ndo='network'\nat='1s'\ndelay='1ms'\n", "there is no [network]"),
        (STANDBY + "[network]\n[[measure.action]]\ndo='network'\nat='1s'\n", "nothing to change"),
        (
            STANDBY + "[network]\n[[measure.action]]\ndo='network'\nat='1s'\nlink='primary-b'\npartitioned=true\n",
            "'b' is not one of: primary, a",
        ),
        (STANDBY + "[network]\n[server]\nlisten='tcp'\n", "clients reach them by their sockets only"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        read_experiment_text(HEAD + text, "x.toml", Path())
    shown = "\n".join(f"{one.where} {one.key} {one.message}" for one in caught.value.problems)
    assert said in shown
    assert any(f"x.toml:{line}" in shown for line in range(FIRST_LINE + 1, FIRST_LINE + 1 + text.count("\n") + 1))


@pytest.mark.parametrize(
    ("factor", "levels", "said"),
    [
        ("network.delay", "['0ms', '1min']", "unknown unit 'min'"),
        ("network.link.primary-c.delay", "['0ms', '1ms']", "'c' is not one of: primary, a"),
        ("network.speed", "[1, 2]", "speed"),
    ],
)
def test_a_factor_of_the_network_is_checked(factor: str, levels: str, said: str) -> None:
    text = ramdisk_text(matrix=f'"{factor}" = {levels}\n') + STANDBY
    with pytest.raises(ExperimentError) as caught:
        read_experiment_text(text, "x.toml", Path())
    assert said in "\n".join(f"{one.where} {one.key} {one.message}" for one in caught.value.problems)
