"""Text of others as it may be shown: what would steer a terminal, turn its reading order around or not be seen is written out."""

import re
from typing import IO, Any, cast

# C0 and DEL, C1, the separators of lines and paragraphs and of annotations; line ends and tabs stay. Then what has the property
# Default_Ignorable_Code_Point (Unicode's DerivedCoreProperties.txt): it is not seen, and the controls of reading order are in it.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufff9-\ufffb"
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# The same in JSON, whose writers escape C0 alone; an odd number of backslashes is before one that escapes.
_CONTROLS_IN_JSON = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u(00[01][0-9a-f]|007f)|([bfr]))")
_SHORT = {"b": "\\\\x08", "f": "\\\\x0c", "r": "\\\\x0d"}
_BYTES = re.compile("[\udc80-\udcff]")


def shown(text: str) -> str:
    r"""Return `text` with control characters, and those that are not seen, as `\x1b` or `\u202e`; line ends and tabs as they are."""
    return _CONTROLS.sub(lambda match: _escape(match[0]), text)


def quoted(text: str) -> str:
    r"""Return `shown` text on one line and in quotes, as "a\x0ab": nothing in it can pass for what is said around it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{on_one_line(escaped)}"'


def on_one_line(text: str) -> str:
    r"""Return `shown` text with line ends and tabs as `\x0a` and `\x09`: names of files may hold them."""
    return shown(text.replace("\n", "\\x0a").replace("\t", "\\x09"))


def shown_in_json(document: str) -> str:
    """Return a JSON document whose strings hold `shown` text; for readers who put them on a page."""
    escaped = _CONTROLS_IN_JSON.sub(
        lambda match: match[1] + (_SHORT[match[3]] if match[3] else f"\\\\x{match[2][2:]}"), document
    )
    return _CONTROLS.sub(lambda match: "\\" + _escape(match[0]), escaped)


def shown_as_json(document: str) -> str:
    r"""Return a JSON document of the same values, in which nothing steers a terminal: what is left of controls is `\u009b`."""
    return _CONTROLS.sub(lambda match: _escape_in_json(match[0]), document)


def ascii_json(document: str) -> str:
    r"""Return a JSON document of the same values in ASCII: all other characters of its strings are `\u00b2`."""
    return re.sub("[^\x00-\x7f]", lambda match: _escape_in_json(match[0]), document)


def bytes_shown_in_json(document: str) -> str:
    r"""Return a JSON document whose strings hold bytes that are not UTF-8 (lone surrogates, PEP 383) as `\xe9`."""
    return _BYTES.sub(lambda match: f"\\\\x{ord(match[0]) - 0xDC00:02x}", document)


def shown_stream(stream: IO[str]) -> IO[str]:
    """Return `stream`, to which `shown` text is written."""
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
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape_in_json(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
