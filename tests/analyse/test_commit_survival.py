"""What commits survive with standbys, by synchronous_commit, and what a grade rests on."""

from dataclasses import replace

import pytest

from analyse_bundles import bundle, server_facts, storage_facts
from plinth.analyse import analyse
from plinth.analyse.commit_survival import survival_of
from plinth.model.plan import PlannedNode
from plinth.model.safety import Safety, SafetyBasis, SafetyGrade
from plinth.model.server_spec import ServerSpec


@pytest.mark.parametrize(
    ("level", "names", "power", "primary"),
    [
        ("on", "FIRST 1 (a)", "survives on its own storage", "is on a, flushed there"),
        (True, "FIRST 1 (a)", "survives on its own storage", "flushed there"),
        ("remote_apply", "ANY 1 (a, b)", "survives on its own storage", "is on 1 of a, b, flushed and replayed"),
        (
            "remote_write",
            "FIRST 1 (a)",
            "survives on its own storage",
            "unless that standby's machine loses its power, too",
        ),
        ("local", "FIRST 1 (a)", "survives on its own storage", "synchronous_commit = local waits for no standby"),
        ("off", "FIRST 1 (a)", "last moments do not survive", "synchronous_commit = off waits for no standby"),
        ("on", "", "survives on its own storage", "synchronous_standby_names names no standby"),
        ("on", "FIRST 2 (a, c)", "survives on its own storage", "no commit is acknowledged"),
    ],
)
def test_each_level_survives_what_it_waits_for(level: str | bool, names: str, power: str, primary: str) -> None:
    found = survival_of({"synchronous_commit": level, "synchronous_standby_names": names}, ["a", "b"])
    assert found is not None
    assert power in found.power_loss
    assert primary in found.primary_loss


@pytest.mark.parametrize(
    ("names", "losing", "said"),
    [
        (
            "FIRST 1 (a)",
            {"a": "a's disk is a tmpfs"},
            "unless that standby loses its power, too: a: a's disk is a tmpfs",
        ),
        ("ANY 1 (a, b)", {"a": "fsync = off"}, "unless that standby loses its power, too: a: fsync = off"),
        ("ANY 2 (a, b)", {"a": "fsync = off"}, "also when that standby loses its power"),
        ("ANY 2 (a, b)", {"a": "fsync = off", "b": "a tmpfs"}, "unless that standby loses its power, too"),
        ("FIRST 1 (a)", {"b": "fsync = off"}, "also when that standby loses its power"),
    ],
)
def test_a_standby_that_does_not_keep_what_it_flushes_is_named(names: str, losing: dict[str, str], said: str) -> None:
    found = survival_of({"synchronous_standby_names": names}, ["a", "b"], losing)
    assert found is not None
    assert said in found.primary_loss


@pytest.mark.parametrize(
    ("volatile", "fsync", "said"),
    [
        (False, "on", "also when that standby loses its power"),
        (True, "on", "unless that standby loses its power, too: a: second is volatile"),
        (False, "off", "unless that standby loses its power, too: a: fsync = off"),
    ],
)
def test_standbys_are_judged_by_their_own_storage_and_settings(volatile: bool, fsync: str, said: str) -> None:
    contents = bundle({"disk": [1000, 1010, 990], "xfs": [1000, 1020, 980]})
    standby = PlannedNode(name="a", server=ServerSpec(storage="second"), upstream="primary")
    clusters = tuple(one.model_copy(update={"nodes": (*one.nodes, standby)}) for one in contents.plan.clusters)
    primary = server_facts(synchronous_commit="on", synchronous_standby_names="FIRST 1 (a)", fsync="on")
    contents = replace(
        contents,
        plan=contents.plan.model_copy(update={"clusters": clusters}),
        storages=contents.storages | {"second": storage_facts("second", volatile=volatile)},
        servers=dict.fromkeys(contents.servers, primary),
        standbys={f"{variant}.a": server_facts(fsync=fsync) for variant in contents.servers},
    )
    for result in analyse(contents).variants:
        assert result.safety.primary_loss is not None
        assert said in result.safety.primary_loss


def test_a_primary_whose_storage_loses_does_not_survive_on_it() -> None:
    found = survival_of({}, ["a"], {"primary": "fsync = off: nothing is flushed"})
    assert found is not None
    assert "may not survive on its own storage" in found.power_loss
    assert found.power_loss.endswith("fsync = off: nothing is flushed")


def test_without_standbys_there_is_nothing_to_say() -> None:
    assert survival_of({"synchronous_commit": "local"}, []) is None


@pytest.mark.parametrize(
    ("grade", "basis", "words"),
    [
        ("keeps", "assumed", "keeps (assumed)"),
        ("keeps", "tested", "keeps (tested)"),
        ("does not keep", "assumed", "does not keep"),
        ("does not keep", "tested", "does not keep (tested)"),
    ],
)
def test_a_grade_says_what_it_rests_on_where_that_matters(grade: SafetyGrade, basis: SafetyBasis, words: str) -> None:
    assert Safety(grade=grade, reasons=(), basis=basis).words == words
