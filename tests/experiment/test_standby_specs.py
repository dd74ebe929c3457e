"""[server.standby.NAME] in an experiment file, and what synchronous_standby_names demands of them."""

from pathlib import Path

import pytest

from plinth.experiment import read_experiment_text
from plinth.model.errors import ExperimentError
from plinth.model.standby import upstream_first
from plinth.model.synchronous_standby_names import Quorum, quorum_of
from ramdisk_experiment import ramdisk_text

HEAD = ramdisk_text()
FIRST_LINE = HEAD.count("\n")


@pytest.mark.parametrize(
    ("names", "quorum"),
    [
        ("", None),
        ("  ", None),
        ("*", Quorum(1, ("*",))),
        ("a", Quorum(1, ("a",))),
        ("a, b", Quorum(1, ("a", "b"))),
        ("2 (a, b, c)", Quorum(2, ("a", "b", "c"))),
        ("FIRST 1 (a,b)", Quorum(1, ("a", "b"))),
        ("any 2 ( a , b )", Quorum(2, ("a", "b"))),
        ('ANY 1 ("Standby 1", "say ""a""", *)', Quorum(1, ("Standby 1", 'say "a"', "*"))),
        ("first, any1", Quorum(1, ("first", "any1"))),
    ],
)
def test_what_a_commit_waits_for(names: str, quorum: Quorum | None) -> None:
    assert quorum_of(names) == quorum


def test_names_are_compared_as_the_server_does() -> None:
    assert Quorum(1, ("A", "c")).possible(["a", "b"]) == ["a"]
    assert Quorum(1, ("*",)).possible(["a", "b"]) == ["a", "b"]


def test_a_cascade_is_ordered_by_upstream() -> None:
    text = "[server.standby.c]\nstorage='disk'\nupstream='b'\n[server.standby.b]\nstorage='disk'\n"
    server = read_experiment_text(HEAD + text, "x.toml", Path()).experiment.server
    assert list(upstream_first(server.standby)) == ["b", "c"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server.standby.a]\n", "storage"),
        ("[server.standby.a]\nstorage='dsk'\n", "storage 'dsk' is not one of: disk, memory"),
        ("[server.standby.A]\nstorage='disk'\n", "A"),
        ("[server.standby.any]\nstorage='disk'\n", "cannot be the name of a standby"),
        ("[server.standby.primary]\nstorage='disk'\n", "cannot be the name of a standby"),
        ("[server.standby.a]\nstorage='disk'\nupstream='b'\n", "upstream 'b' is not one of: primary, a"),
        ("[server.standby.a]\nstorage='disk'\nupstream='a'\n", "nothing reaches it from the primary: a from a"),
        (
            "[server.standby.a]\nstorage='disk'\nupstream='b'\n[server.standby.b]\nstorage='disk'\nupstream='a'\n",
            "nothing reaches it from the primary: a from b from a",
        ),
        ("[server.standby.a]\nstorage='disk'\nversion=17\n", "version"),
        ("[server.standby.a]\nstorage='disk'\nsettings.hot_standby=false\n", "hot_standby"),
        ("[server.standby.a]\nstorage='disk'\nsettings.Primary_ConnInfo='host=x'\n", "Plinth makes it from upstream"),
        ("[server.standby.a]\nstorage='disk'\nsettings.recovery_target='immediate'\n", "stops following"),
        ("[server]\nstandbys=1\n", "standbys: got 1, but [server.standby] describes 0"),
        ("[server]\nstandbys=-1\n", "standbys"),
        (
            "[server]\nsynchronous_standby_names='a'\nsettings.synchronous_standby_names='b'\n",
            "synchronous_standby_names: given twice",
        ),
        (
            "[server]\nconnection='host=x'\n[server.standby.a]\nstorage='disk'\n",
            "not with connection",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        read_experiment_text(HEAD + text, "x.toml", Path())
    shown = "\n".join(f"{one.where} {one.key} {one.message}" for one in caught.value.problems)
    assert said in shown
    assert any(f"x.toml:{line}" in shown for line in range(FIRST_LINE + 1, FIRST_LINE + 1 + text.count("\n") + 1))
