"""Settings checked against real installations before any server runs."""

from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plinth.model.facts import Installation
from plinth.server.settings.ask import OWNED, SettingsProbe, configuration_files
from plinth.server.settings.values import bool_of, number_of
from plinth.system.owner import Owner
from plinth.system.runner import CommandRecord, Runner


@pytest.fixture
def probe(installations: Mapping[str, Installation], owner: Owner, runner: Runner) -> SettingsProbe:
    return SettingsProbe(installations["18"], owner, runner)


def test_an_installation_lists_its_settings(every_installation: Installation, owner: Owner, runner: Runner) -> None:
    definitions = SettingsProbe(every_installation, owner, runner).definitions
    assert len(definitions) > 290
    work_mem = definitions["work_mem"]
    assert (work_mem.context, work_mem.vartype, work_mem.minimum, work_mem.maximum) == (
        "user",
        "integer",
        "64",
        "2147483647",
    )
    assert definitions["shared_buffers"].context == "postmaster"
    assert ("io_method" in definitions) == (every_installation.major >= 18)


@pytest.mark.parametrize(
    ("name", "value", "says", "hint"),
    [
        ("shared_bufers", "1GB", "has no setting 'shared_bufers'", "did you mean 'shared_buffers'?"),
        ("nothing_like_it_at_all", 1, "has no setting", None),
        ("work-mem", "64MB", "not the name of a setting", "did you mean 'work_mem'?"),
        ("work_mem", "64 GiB", "invalid value", "Valid units"),
        ("work_mem", "1kB", "outside the valid range", None),
        ("max_connections", 0, "outside the valid range", None),
        ("fsync", "maybe", "requires a Boolean value; got 'maybe'", None),
        ("work_mem", True, "invalid value", None),
        ("random_page_cost", "cheap", "invalid value", None),
        ("wal_sync_method", "fsnyc", "invalid value", "fdatasync"),
        ("synchronous_standby_names", "FIRST x (", "syntax error", None),
        ("block_size", 8192, "cannot be changed", None),
        ("log_line_prefix", "a\nb", "control character", None),
    ],
)
def test_what_is_wrong_with_a_setting(
    every_installation: Installation,
    owner: Owner,
    runner: Runner,
    name: str,
    value: str | int,
    says: str,
    hint: str | None,
) -> None:
    (problem,) = SettingsProbe(every_installation, owner, runner).problems({name: value})
    assert problem.key == f"server.settings.{name}"
    assert says in problem.message
    assert hint is None or hint in (problem.hint or "")


def test_all_problems_at_once_and_none_for_what_is_right(probe: SettingsProbe) -> None:
    asked = {
        "fsyn": True,
        "work_mem": "64MB",
        "shared_buffers": "1 parsec",
        "jit": False,
        "auto_explain.log_format": "x",
    }
    assert [problem.key for problem in probe.problems(asked)] == [
        "server.settings.fsyn",
        "server.settings.shared_buffers",
    ]


@pytest.mark.parametrize("name", OWNED)
def test_settings_that_plinth_sets_itself(probe: SettingsProbe, name: str) -> None:
    (problem,) = probe.problems({name.upper(): "x"})
    assert "is set by Plinth" in problem.message
    assert problem.hint == OWNED[name]


def test_what_a_build_lacks_is_found_before_it_runs(probe: SettingsProbe) -> None:
    """The wheel of 18 is built without lz4 and OpenSSL."""
    assert [problem.hint for problem in probe.problems({"wal_compression": "lz4"})] == [
        "Available values: pglz, on, off."
    ]
    assert "not supported by this build" in probe.problems({"ssl": True})[0].message


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    number=st.one_of(st.integers(1, 4096), st.decimals(1, 4096, places=3)),
    unit=st.sampled_from(["", "B", "kB", "MB", "GB", "TB", "GiB", "ms"]),
)
def test_numbers_mean_what_postgresql_takes_them_for(probe: SettingsProbe, number: object, unit: str) -> None:
    text = f"{number}{unit}"
    ours = number_of(text, "kB")
    theirs = probe.canonical({"work_mem": text}).get("work_mem")
    if theirs is None:
        assert ours is None or not 64 <= ours <= 2147483647
    elif ours is not None and ours.denominator == 1:
        assert int(theirs) == ours
    else:  # rounded to the unit, or to one a size smaller than the one that was written
        step = number_of(f"1{unit or 'kB'}", "kB")
        assert ours is not None and step is not None
        assert abs(int(theirs) - ours) <= max(1, step / 2048)


@pytest.mark.parametrize("word", ["on", "off", "of", "o", "t", "tr", "TRUE", "f", "y", "yes", "n", "1", "0", "2", "x"])
def test_words_mean_what_postgresql_takes_them_for(probe: SettingsProbe, word: str) -> None:
    theirs = probe.canonical({"fsync": word}).get("fsync")
    assert {None: None, "on": True, "off": False}[theirs] is bool_of(word)


def test_an_installation_is_asked_once_for_each_value(installations: Mapping[str, Installation], owner: Owner) -> None:
    asked: list[CommandRecord] = []
    probe = SettingsProbe(installations["18"], owner, Runner(asked.append))
    for _ in range(3):
        assert probe.problems({"work_mem": "64MB"}) == []
        assert probe.canonical({"WORK_MEM": "64MB"}) == {"WORK_MEM": "65536"}
    assert len(asked) == 1


def test_only_files_that_a_version_knows_are_named() -> None:
    """An unknown one ends a server, as one of 19 ends that is not told where its hosts_file is."""
    assert "hosts_file" not in configuration_files(18)
    assert configuration_files(19)[:1] == ("config_file",) and "hosts_file" in configuration_files(19)
