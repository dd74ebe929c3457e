"""Text of others as it may be shown: what would steer a terminal or turn its reading order around is written out."""

import re
from typing import IO, Any, cast

# C0 and DEL, C1, and the controls of reading order of UAX #9 with the marks; line ends and tabs stay.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# The same in JSON, whose writers escape C0 alone; an odd number of backslashes stands before one that escapes.
_CONTROLS_IN_JSON = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u(00[01][0-9a-f]|007f)|([bfr]))")
_SHORT = {"b": "\\\\x08", "f": "\\\\x0c", "r": "\\\\x0d"}
_BYTES = re.compile("[\udc80-\udcff]")


def shown(text: str) -> str:
    r"""`text` with control characters as `\x1b` or `\u202e`; line ends and tabs as they are."""
    return _CONTROLS.sub(lambda match: _escape(match[0]), text)


def shown_in_json(document: str) -> str:
    """A JSON document whose strings hold `shown` text; for readers who put them on a page."""
    escaped = _CONTROLS_IN_JSON.sub(
        lambda match: match[1] + (_SHORT[match[3]] if match[3] else f"\\\\x{match[2][2:]}"), document
    )
    return _CONTROLS.sub(lambda match: "\\" + _escape(match[0]), escaped)


def bytes_shown_in_json(document: str) -> str:
    r"""A JSON document whose strings hold bytes that are not UTF-8 (lone surrogates, PEP 383) as `\xe9`."""
    return _BYTES.sub(lambda match: f"\\\\x{ord(match[0]) - 0xDC00:02x}", document)


def shown_stream(stream: IO[str]) -> IO[str]:
    """`stream`, to which `shown` text is written."""
    return cast(IO[str], _Shown(stream))


class _Shown:
    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(shown(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
