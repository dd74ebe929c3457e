"""Passwords in connection strings."""

import pytest

from plinth.model.secrets import masked, without_passwords


@pytest.mark.parametrize(
    ("connection", "bare", "shown"),
    [
        ("host=a password=x user=b", "host=a user=b", "host=a password=*** user=b"),
        (r"password = 'it\'s a \\' dbname=d", "dbname=d", "password = *** dbname=d"),
        ("host=a sslpassword=x", "host=a", "host=a sslpassword=***"),
        ("postgresql://u:p%40w@h,i:5433/d", "postgresql://u@h,i:5433/d", "postgresql://u:***@h,i:5433/d"),
        ("postgresql://h/d?user=u&password=x&sslmode=require", "postgresql://h/d?user=u&sslmode=require", None),
        ("postgresql://h/d?password=x", "postgresql://h/d", "postgresql://h/d?password=***"),
        ("host=a require_auth=!password passfile=/p", "host=a require_auth=!password passfile=/p", None),
        ("service=mine", "service=mine", "service=mine"),
    ],
)
def test_a_password_is_left_out_or_masked(connection: str, bare: str, shown: str | None) -> None:
    assert without_passwords(connection) == bare
    if shown is not None:
        assert masked(connection) == shown
