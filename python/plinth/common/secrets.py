"""Secrets in connection strings, which nothing that is kept or shown may have.

libpq itself parses connection strings, and knows which parameters are secret (common/libpq.py).
"""

import re
from typing import NamedTuple

from plinth.common.libpq import ConninfoError, keywords, make_conninfo, parse
from plinth.common.nearest import nearest

# libpq marks passwords as such, but these only as options for debugging.
_ALSO_SECRET = ("scram_client_key", "scram_server_key")
# Without one of these nothing is secret: a keyword is in a connection string as it is; in a URI it may be encoded.
_SIGNS = ("password", "oauth_client_secret", *_ALSO_SECRET, "://")
# As in a command of the shell; not where that takes it from another variable.
_PGPASSWORD = re.compile(r"""\bPGPASSWORD=['"]?[^\s'"$`]""")
_URI_SCHEMES = ("postgresql://", "postgres://")
_ENCODE_HINT = (
    "in a URI, write @ / ? # and spaces of a password percent-encoded: @ is %40; or use the form host=db1 password='..'"
)
# How libpq's messages begin; what follows is text of the connection string, which may be a part of a password.
_COMPLAINTS = {
    'missing "=" after': 'missing "=" after a word',
    "unterminated quoted string": "unterminated quoted string",
    "invalid connection option": "invalid connection option",
    "invalid URI query parameter": "invalid URI query parameter",
    "invalid percent-encoded token": "invalid percent-encoded token",
    "forbidden value %00": "forbidden value %00 in percent-encoded value",
    "unexpected spaces found": "unexpected spaces, which must be percent-encoded (%20)",
    "unexpected character": "unexpected character in URI",
    "end of string reached": 'missing "]" of an IPv6 host address in URI',
    "IPv6 host address may not be empty": "IPv6 host address may not be empty in URI",
    "extra key/value separator": 'extra "=" in URI query parameter',
    "missing key/value separator": 'missing "=" in URI query parameter',
}


class UnreadableConnection(ValueError):
    """A connection string that libpq does not take, or takes for something else than was meant.

    Neither message nor `hint` holds any of its text.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class SplitConnection(NamedTuple):
    """A connection string without its secrets, and their values.

    `bare` leads to the same place for users who have the password in PGPASSWORD or ~/.pgpass. One without secrets is as written.
    """

    bare: str
    secrets: tuple[str, ...]

    def masked(self, text: str) -> str:
        """Return `text` with *** for each secret in it."""
        for secret in sorted(filter(None, self.secrets), key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def split(connection: str) -> SplitConnection:
    """Take the secrets out of a connection string. Raises UnreadableConnection."""
    found, secrets = _parameters(connection)
    _check_meaning(connection, found)
    if not secrets:
        return SplitConnection(connection, ())
    return SplitConnection(make_conninfo(**found), tuple(secrets.values()))


def without_secrets(connection: str) -> str:
    """Return `split(connection).bare`, and "***" for what cannot be read: for strings that others have made."""
    try:
        return split(connection).bare
    except UnreadableConnection:
        return "***"


def may_hold_secrets(text: str) -> bool:
    """Return whether `text` may hold a secret of a connection string; a cheap check that has no false negatives."""
    return any(sign in text.lower() for sign in _SIGNS)


def holds_secrets(text: str) -> bool:
    """Return whether `text`, or a word of it, is a connection string with a secret, or sets PGPASSWORD to one."""
    if _PGPASSWORD.search(text):
        return True
    return any(_has_secret(part) for part in (text, *text.split()) if may_hold_secrets(part))


def _has_secret(text: str) -> bool:
    try:
        _, secrets = _parameters(text)
    except UnreadableConnection:
        return False
    return any(secrets.values())


def _parameters(connection: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return what a connection string sets: parameters that are not secret, and those that are."""
    if "\0" in connection:
        raise UnreadableConnection("it holds a NUL, at which libpq would stop reading")
    try:
        texts = [(option, option.value.decode()) for option in parse(connection) if option.value is not None]
    except UnicodeError:
        raise UnreadableConnection("it is not valid UTF-8") from None
    except ConninfoError as error:
        raise UnreadableConnection(*_complaint(str(error))) from None
    found: dict[str, str] = {}
    secrets: dict[str, str] = {}
    for option, text in texts:
        is_secret = option.is_hidden or option.keyword in _ALSO_SECRET
        (secrets if is_secret else found)[option.keyword] = text
    return found, secrets


def _complaint(message: str) -> tuple[str, str | None]:
    """Return libpq's message without the text that it cites, and a hint where an option's name is nearly right."""
    told = next((ours for begin, ours in _COMPLAINTS.items() if message.startswith(begin)), None)
    cited = message.split('"')[1:2]
    if told is None or not told.startswith("invalid connection option") or not cited:
        return told or "libpq does not take it", None
    return told, nearest(cited[0], keywords())


def _check_meaning(connection: str, found: dict[str, str]) -> None:
    """Raise UnreadableConnection where a part of a password has got into another parameter."""
    if connection.startswith(_URI_SCHEMES):
        _check_uri(connection.partition("://")[2], found)
    if any("@" in host[1:] and not host.startswith("/") for host in found.get("host", "").split(",")):
        raise UnreadableConnection("an @ in the name of a host", _ENCODE_HINT)
    if may_hold_secrets(dbname := found.get("dbname", "")) and _has_secret(dbname):
        raise UnreadableConnection(
            "dbname holds another connection string, which libpq would take for a database's name",
            "write that connection string itself",
        )


def _check_uri(rest: str, found: dict[str, str]) -> None:
    first = next((index for index, character in enumerate(rest) if character in "@/"), -1)
    after = rest[first + 1 :] if first >= 0 and rest[first] == "@" else rest
    if "@" in after.partition("?")[0]:
        raise UnreadableConnection("an @ that is not percent-encoded, outside of user:password@", _ENCODE_HINT)
    if not all(port.strip().isdecimal() for port in found.get("port", "").split(",") if port):
        raise UnreadableConnection("the port is not a number", _ENCODE_HINT)
