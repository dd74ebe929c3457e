"""Secrets in connection strings: what is left without them, what is refused, and that no message tells them."""

import tomllib
from datetime import date, datetime, time

import pytest

from plinth.common.secrets import UnreadableConnection, holds_secrets, split, without_secrets
from plinth.experiment.toml_text import toml_text


@pytest.mark.parametrize(
    ("connection", "bare", "secrets"),
    [
        ("host=a password=x user=b", "user=b host=a", ["x"]),
        (r"password = 'it\'s a \\' dbname=d", "dbname=d", ["it's a \\"]),
        (r"password=two\ words host=a", "host=a", ["two words"]),
        ("password=a&host=b host=c", "host=c", ["a&host=b"]),
        ("host=a sslpassword=x oauth_client_secret=y", "host=a", ["x", "y"]),
        ("host=a scram_client_key=x scram_server_key=y", "host=a", ["x", "y"]),
        ("postgresql://u:p%40w@h,i:5433/d", "user=u dbname=d host=h,i port=,5433", ["p@w"]),
        ("postgresql://h/d?user=u&p%61ssword=x&sslmode=require", "user=u dbname=d host=h sslmode=require", ["x"]),
        ("postgresql://h/d?password=x&password=y", "dbname=d host=h", ["y"]),
        ("postgresql://u:p?w@h/d", "user=u dbname=d host=h", ["p?w"]),
        ("password=x", "", ["x"]),
    ],
)
def test_secrets_are_taken_out(connection: str, bare: str, secrets: list[str]) -> None:
    found = split(connection)
    assert set(found.bare.split()) == set(bare.split())
    assert sorted(found.secrets) == sorted(secrets)


@pytest.mark.parametrize(
    "connection",
    [
        "service=mine",
        "host=a  require_auth=!password passfile=/p",
        "postgresql://u@h/d?host=@abstract",
        "",
        "host=@there",
    ],
)
def test_what_has_no_secret_stays_as_written(connection: str) -> None:
    assert split(connection) == (connection, ())


UNREADABLE = [
    ("host=a password=one hushed", 'missing "="'),
    ("host=a password=one hushed=x", "invalid connection option"),
    ("host=a password='hushed", "unterminated quoted string"),
    ("postgresql://u:one hushed@h/d", "unexpected spaces"),
    ("postgresql://u:one/hushed@h/d", "not percent-encoded"),
    ("postgresql://u:12/hushed@h/d", "not percent-encoded"),
    ("postgresql://u:one@hushed@h/d", "not percent-encoded"),
    ("postgresql://hushed:x/d", "the port is not a number"),
    ("postgresql://u:%zzhushed@h/d", "invalid percent-encoded token"),
    ("postgresql://u:%00hushed@h/d", "forbidden value %00"),
    ("postgresql://u:p@h/d?hushed", 'missing "=" in URI query parameter'),
    ("postgresql://u:p@h/d?hushed=a=b", 'extra "=" in URI query parameter'),
    ("postgresql://u:hushed@[::1/d", 'missing "]"'),
    ("host=one@hushed", "an @ in the name of a host"),
    ("dbname='postgresql://u:hushed@h/d' host=a", "another connection string"),
    ("host=a\0 password=hushed", "NUL"),
    ("host=a password=\udc80hushed", "UTF-8"),
    ("hushed", 'missing "="'),
]


@pytest.mark.parametrize(("connection", "words"), UNREADABLE)
def test_what_cannot_be_read_is_not_reported(connection: str, words: str) -> None:
    with pytest.raises(UnreadableConnection) as caught:
        split(connection)
    error = caught.value
    assert words in str(error)
    assert "hushed" not in f"{error!r} {error.hint} {error.__cause__!r}"
    assert without_secrets(connection) == "***"


def test_a_misspelt_option_is_named_by_what_it_is_near() -> None:
    with pytest.raises(UnreadableConnection) as caught:
        split("host=a sslmod=require")
    assert caught.value.hint == "did you mean 'sslmode'?"


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("Is postgresql://u:x@h/d fast?", True),
        ("How does password=x do?", True),
        ("postgresql://h/d?p%61ssword=x", True),
        ("Is postgresql://u@h/d fast?", False),
        ("data=writeback", False),
        ("PGPASSWORD=x psql -c 'select 1'", True),
        ("env PGPASSWORD='x y' psql", True),
        ('PGPASSWORD="$MINE" psql', False),
        ("PGPASSWORD=$MINE psql", False),
        ("Is PGPASSWORD set?", False),
        ("Which password hash is fastest?", False),
    ],
)
def test_secrets_are_found_in_any_text(text: str, held: bool) -> None:
    assert holds_secrets(text) is held


def test_a_document_reads_back_as_it_was() -> None:
    document = {
        "spec": 1,
        "text": 'quotes " and \\, tab\t, line\n, bell\a, del\x7f, ü, 😀',
        "numbers": [1, -2.5, 1e300, float("inf"), True, 0.1, 10**18],
        "when": [date(2026, 1, 2), time(3, 4, 5), datetime(2026, 1, 2, 3, 4, 5, 678)],
        "server": {"settings": {"a.b": "x", "": "empty", "ü": 1}, "none": {}},
        "storage": {"disk": {"kind": "directory"}, "memory": {"kind": "tmpfs", "deep": [{"er": [[1], {"x": {}}]}]}},
        "matrix": {"workload": {"clients": [1, 4]}, "storage": ["disk", "memory"], "server": {"wal": [1]}},
        "last": "scalar",
    }
    again = tomllib.loads(toml_text(document))
    assert again == document
    assert list(again["matrix"]) == list(document["matrix"])
