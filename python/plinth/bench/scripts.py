"""The scripts of `plinth bench`: built-in ones by a prefix of their name, and files, each with a weight."""

import errno
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.bench.failure import BenchFailure
from plinth.bench.lossless import file_name, text_of
from plinth.system.regular_file import MOST_TEXT_BYTES, read_given

if TYPE_CHECKING:
    from plinth._native import ScriptError


class ListRequested(Exception):
    """Only a listing was asked for: `-b list` or `--show-script`."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class BenchScript(NamedTuple):
    """A script to run: what reports call it, its text, and its share among the scripts. `native` is a transaction that is
    compiled into the load engine, as its configuration has it; its text is empty."""

    description: str
    source: str
    weight: int
    native: dict[str, Any] | None = None


def builtin(asked: str) -> BenchScript:
    """Return the built-in script that `asked`, "NAME" or "NAME@WEIGHT", begins. Raises ListRequested for "list"."""
    if asked == "list":
        raise ListRequested(_available())
    name, weight = _weighted(asked)
    _, description, source = _find(name)
    return BenchScript(description, source, weight)


def script_file(asked: str) -> BenchScript:
    """Return the script in the file of `asked`, "FILE" or "FILE@WEIGHT"; "-" is standard input. It is checked."""
    name, weight = _weighted(asked)
    if name == "-" and sys.stdin is None:  # the caller has closed it
        raise BenchFailure('could not read file "-": standard input is closed')
    try:
        raw = _standard_input() if name == "-" else _read(name)
    except OSError as error:
        verb, reason = ("read", os.strerror(errno.EISDIR)) if error.errno == errno.EISDIR else ("open", error.strerror)
        raise BenchFailure(f'could not {verb} file "{name}": {reason}') from error
    source = text_of(raw.partition(b"\0")[0])  # a string of C, as pgbench has it
    script = BenchScript(name, source, weight)
    _check(script)
    return script


def _read(name: str) -> bytes:
    if not name:  # which is the working directory to Path
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return read_given(file_name(name))


def _standard_input() -> bytes:
    raw = sys.stdin.buffer.read(MOST_TEXT_BYTES + 1)
    if len(raw) > MOST_TEXT_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return raw


def show(prefix: str) -> str:
    """Return the text of `--show-script`."""
    name, description, source = _find(prefix)
    return f"-- {name}: {description}\n{source}\n"


# An error about a script as a whole, which pgbench prints without a line.
_WHOLE = "empty command list"


def _check(script: BenchScript) -> None:
    """Raise BenchFailure for a script that cannot be parsed. A variable that nothing sets ends the client that reaches it."""
    from plinth._native import ScriptError, parse_script

    try:
        parse_script(script.description, script.source, None)
    except ScriptError as error:
        if error.message.startswith(_WHOLE):
            raise BenchFailure(error.message) from error
        lines = script.source.split("\n")  # what else Python takes for a line's end is none here
        if error.condition is not None:
            where = f'condition error in script "{error.file}" command {error.condition}'
            raise BenchFailure(
                f"{where}: {error.message}", detail=f"Line {error.line}: {lines[error.line - 1].strip()}"
            ) from error
        first, shown = _command(error, lines)
        raise BenchFailure(f"{error.file}:{first}: {error.message}", lines=shown) from error


def _command(error: "ScriptError", lines: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """Return the line where a wrong command begins, and all its lines without a statement before it, with a mark at the error."""

    def continues(at: int) -> bool:
        return lines[at].removesuffix("\r").endswith("\\")

    wrong = first = last = error.line - 1
    name = re.search(r' in command "(.*)"$', error.message)
    if name is None:
        return error.line, (lines[wrong], _mark(error.column))
    while first > 0 and continues(first - 1):
        first -= 1
    while last + 1 < len(lines) and continues(last):
        last += 1
    shown = list(lines[first : last + 1])
    begins = max(0, shown[0].rfind(f"\\{name[1]}", 0, error.column if wrong == first else None))
    shown[0] = shown[0][begins:]
    shown.insert(wrong - first + 1, _mark(error.column - (begins if wrong == first else 0)))
    return first + 1, tuple(shown)


def _mark(column: int) -> str:
    return f"{' ' * (column - 1)}^ error found here"


def _find(prefix: str) -> tuple[str, str, str]:
    from plinth._native import find_builtin

    try:
        return find_builtin(prefix)
    except ValueError as error:
        raise BenchFailure(str(error), lines=tuple(_available().split("\n"))[:-1]) from error


def _available() -> str:
    from plinth._native import builtin_scripts

    rows = [f"  {name:>13}: {description}" for name, description, _ in builtin_scripts()]
    return "\n".join(["Available builtin scripts:", *rows, "", ""])


def _weighted(asked: str) -> tuple[str, int]:
    from plinth._native import script_weight

    try:
        return script_weight(asked)
    except ValueError as error:
        raise BenchFailure(str(error)) from error
