"""What commits survive with standbys, by synchronous_commit, and what a grade rests on."""

import pytest

from plinth.model.commit_survival import survival_of
from plinth.model.safety import Safety


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


def test_without_standbys_there_is_nothing_to_say() -> None:
    assert survival_of({"synchronous_commit": "local"}, []) is None


@pytest.mark.parametrize(
    ("former", "words"),
    [
        ({"grade": "keeps", "reasons": ()}, "keeps (assumed)"),
        ({"grade": "keeps", "reasons": (), "tested": "damage in 0 of 9 power cuts"}, "keeps (tested)"),
        ({"grade": "does not keep", "reasons": ()}, "does not keep"),
        ({"grade": "does not keep", "reasons": (), "tested": "damage in 3 of 9 power cuts"}, "does not keep (tested)"),
    ],
)
def test_grades_of_former_analyses_still_read(former: dict[str, object], words: str) -> None:
    assert Safety.model_validate(former).words == words
