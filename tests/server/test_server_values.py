"""What a setting's value says, in all its spellings."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plinth.model.pg_units import SIZES_BYTES, TIMES_MS, base_unit
from plinth.server.settings.values import SettingRow, bool_of, number_of, setting_text, was_taken


def row(
    setting: str, vartype: str, unit: str | None = None, source: str = "configuration file", boot: str = ""
) -> SettingRow:
    return SettingRow("x", setting, unit, vartype, "sighup", source, None, boot, False)


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("1GB", "kB", 1048576),
        ("1GB", "8kB", 131072),
        (" 64 MB ", "kB", 65536),
        ("0.5kB", "B", 512),
        ("1.5GB", "MB", 1536),
        ("90500ms", "s", Fraction(181, 2)),
        ("1d", "min", 1440),
        ("250us", "ms", Fraction(1, 4)),
        ("-1", "8kB", -1),
        ("1e3", None, 1000),
        (".5", None, Fraction(1, 2)),
        ("0x10", None, 16),
        ("0644", None, 0o644),
        ("0.9", None, Fraction(9, 10)),
        ("1GiB", "kB", None),
        ("1GB", None, None),
        ("1GB", "ms", None),
        ("1s", "kB", None),
        ("kB", "kB", None),
        ("", "kB", None),
        ("on", None, None),
    ],
)
def test_numbers_are_read_in_the_units_of_pg_settings(text: str, unit: str | None, expected: Fraction | None) -> None:
    assert number_of(text, unit) == expected


@given(st.integers(-(2**40), 2**40), st.sampled_from(["B", "kB", "8kB", "MB", "16MB", "ms", "s", "min"]), st.data())
def test_a_number_is_the_same_in_every_unit(number: int, unit: str, data: st.DataObject) -> None:
    amount, family = base_unit(unit)
    written_as = data.draw(st.sampled_from(sorted(family)))
    assert number_of(f"{number}{written_as}", unit) == number * family[written_as] / amount


def test_both_families_of_units_hang_together() -> None:
    assert SIZES_BYTES["TB"] == 2**40
    assert TIMES_MS["d"] == 24 * 3600 * 1000


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *((word, True) for word in ("on", "ON", "t", "tru", "y", "1")),
        *((word, False) for word in ("off", "of", "fal", "N", "0")),
        *((word, None) for word in ("o", "maybe", "", "truee", "2")),
    ],
)
def test_words_for_booleans(word: str, expected: bool | None) -> None:
    assert bool_of(word) is expected


@pytest.mark.parametrize(
    ("value", "text"), [(True, "on"), (False, "off"), (64, "64"), (0.9, "0.9"), (1e-5, "1e-05"), ("64MB", "64MB")]
)
def test_values_of_an_experiment_file_as_postgresql_writes_them(value: bool | float | str, text: str) -> None:
    assert setting_text(value) == text


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        ("64MB", row("65536", "integer", "kB")),
        ("yes", row("on", "bool")),
        ("0", row("off", "bool")),
        ("1.10", row("1.1", "real")),
        ("0.123456789", row("0.123457", "real")),
        ("0600", row("0600", "integer")),
        ("Replica", row("replica", "enum")),
        ("utc", row("UTC", "string")),
        ("-1", row("512", "integer", "8kB", "override", "-1")),
        ("0", row("32", "integer", "8kB", "override", "0")),
    ],
)
def test_what_was_taken(asked: str, got: SettingRow) -> None:
    assert was_taken(asked, got)


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        ("100.5kB", row("100", "integer", "kB")),  # rounded
        ("90500ms", row("91", "integer", "s")),
        ("1.5", row("2", "integer")),
        ("64MB", row("131072", "integer", "kB")),  # from elsewhere
        ("on", row("off", "bool")),
        ("maybe", row("off", "bool")),
        ("1.1", row("1.2", "real")),
        ("/bin/true", row("(disabled)", "string")),
        ("-1", row("512", "integer", "8kB", "command line", "-1")),
        ("7", row("512", "integer", "8kB", "override", "-1")),
    ],
)
def test_what_was_not_taken(asked: str, got: SettingRow) -> None:
    assert not was_taken(asked, got)


def test_an_alias_counts_where_the_server_says_so() -> None:
    assert not was_taken("on", row("pglz", "enum"))
    assert was_taken("on", row("pglz", "enum"), canonical="pglz")
