"""getopt_long(3) of the GNU C library: abbreviated long options, bundled short ones, options after operands.

Its messages are those of that library, so that users who know pgbench's errors know these.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from plinth.bench.failure import BenchFailure


class Found(NamedTuple):
    """One option of a command line by its long name, or an operand where `name` is None."""

    name: str | None
    value: str | None


def options(
    words: Sequence[str], long: Mapping[str, bool], short: Mapping[str, str], unabbreviated: Mapping[str, bool]
) -> Iterator[Found]:
    """Yield the options in order, then the operands. `long` maps a name to whether it takes an argument; `short` maps to
    names. Names in `unabbreviated` have to be written in full, and so make no abbreviation of another ambiguous.

    Raises BenchFailure at the option that is wrong, when it is reached.
    """
    operands: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            operands += rest
            break
        if word.startswith("--"):
            yield _long(word[2:], rest, long, unabbreviated)
        elif word.startswith("-") and word != "-":
            yield from _short(word[1:], rest, long, short)
        elif "POSIXLY_CORRECT" in os.environ:
            operands += [word, *rest]
            break
        else:
            operands.append(word)
    for operand in operands:
        yield Found(None, operand)


def _long(text: str, rest: list[str], long: Mapping[str, bool], unabbreviated: Mapping[str, bool]) -> Found:
    given, equals, value = text.partition("=")
    takes_value = {**long, **unabbreviated}
    candidates = [given] if given in takes_value else [name for name in long if name.startswith(given)]
    if not candidates:
        raise usage(f"unrecognized option '--{given}'")
    if len(candidates) > 1:
        possible = " ".join(f"'--{name}'" for name in candidates)
        raise usage(f"option '--{text}' is ambiguous; possibilities: {possible}")
    (name,) = candidates
    if not takes_value[name]:
        if equals:
            raise usage(f"option '--{name}' doesn't allow an argument")
        return Found(name, None)
    if equals:
        return Found(name, value)
    if not rest:
        raise usage(f"option '--{name}' requires an argument")
    return Found(name, rest.pop(0))


def _short(letters: str, rest: list[str], long: Mapping[str, bool], short: Mapping[str, str]) -> Iterator[Found]:
    while letters:
        letter, letters = letters[0], letters[1:]
        if letter not in short:
            raise usage(f"invalid option -- '{letter}'")
        name = short[letter]
        if not long[name]:
            yield Found(name, None)
            continue
        if not letters and not rest:
            raise usage(f"option requires an argument -- '{letter}'")
        yield Found(name, letters or rest.pop(0))
        return


def usage(message: str) -> BenchFailure:
    """Return an error about the command line itself, with a hint to the help."""
    return BenchFailure(message, hint='Try "plinth bench --help" for more information.', severity="")
