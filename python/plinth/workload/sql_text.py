"""SQL files as statements: split where psql splits them, with variables put in, and the line that each begins at."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from plinth.model.errors import UsageError

_TOKEN = re.compile(
    r"""
    (?P<comment> --[^\n]* )
  | (?P<block> /\* )
  | (?P<quoted> [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" )
  | (?P<dollar> \$(?:[^\W\d]\w*)?\$ )
  | (?P<word> [^\W\d][\w$]* )
  | (?P<number> \d[\w.]* )
  | (?P<cast> ::|:= )
  | (?P<variable> :(?P<quote>['"]?)(?P<name>[A-Za-z_]\w*)(?P=quote) )
  | (?P<open_quote> ['"] )
  | (?P<space> \s+ )
  | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_OPERAND_END = re.compile(r"[\w)\]\"]")
_COMMENT_END = re.compile(r"/\*|\*/")
_FROM_STDIN = re.compile(r"copy\b.*\bfrom\s+stdin\b", re.IGNORECASE | re.DOTALL)
_TO_STDOUT = re.compile(r"copy\b.*\bto\s+stdout\b", re.IGNORECASE | re.DOTALL)
# What pg_dump writes around a script for psql alone.
_OF_PSQL_ALONE = re.compile(r"\\(un)?restrict\b")
# That a file is UTF-8; psql skips it, too.
_MARK = "\ufeff"
_NO_META = "only SQL is run, and COPY ... FROM stdin with its rows below it; not psql's own commands"


class Statement(NamedTuple):
    """A statement as it is sent: without comments before it, and without its semicolon."""

    file: str
    line: int
    """Of its first character, counted from 1."""
    text: str
    rows: str | None = None
    """What follows COPY ... FROM stdin in the file, up to the line with a backslash and a dot."""

    @property
    def title(self) -> str:
        """Return the first line of the statement, shortened."""
        first = self.text.splitlines()[0]
        return first if len(first) <= 60 else f"{first[:57]}..."


def statements_of(file: str, source: str, variables: Mapping[str, str]) -> list[Statement]:
    """Return the statements of a file's text. Raises UsageError, with file and line, for what cannot be run.

    As in psql, `:name` is a variable outside of quotations, :'name' one as a literal, and :"name" one as an identifier.
    """
    return _Splitter(file, source, variables).statements()


class _Splitter:
    def __init__(self, file: str, source: str, variables: Mapping[str, str]) -> None:
        self._file = file
        self._source = source
        self._variables = variables
        self._at = len(_MARK) if source.startswith(_MARK) else 0
        self._found: list[Statement] = []
        self._begin()

    def statements(self) -> list[Statement]:
        while (token := _TOKEN.match(self._source, self._at)) is not None:
            self._at = token.end()
            match token.lastgroup:
                case "space" | "comment":
                    self._add(token[0], token.start(), begins=False)
                case "block":
                    self._add(self._comment(token.start()), token.start(), begins=False)
                case "dollar":
                    self._add(self._dollar_quoted(token), token.start())
                case "variable":
                    self._add(self._variable(token), token.start())
                case "open_quote":
                    raise self._wrong(f"a quotation begins here and does not end: {token[0]}", token.start())
                case "word":
                    self._word(token[0])
                    self._add(token[0], token.start())
                case "other":
                    self._other(token)
                case _:  # a quotation, a number, a cast
                    self._add(token[0], token.start())
        self._end()
        return self._found

    def _begin(self) -> None:
        self._parts: list[str] = []
        self._start: int | None = None
        self._brackets: list[str] = []
        self._words: list[str] = []
        self._blocks = 0

    def _add(self, text: str, at: int, *, begins: bool = True) -> None:
        if self._start is None and begins:
            self._start = at
        if self._start is not None:
            self._parts.append(text)

    def _end(self) -> None:
        """End the statement that has begun, if one has."""
        if self._start is not None:
            text, line = "".join(self._parts).rstrip(), self._line(self._start)
            if _TO_STDOUT.match(text):
                raise self._wrong("the output of COPY ... TO stdout would not be read", self._start)
            rows = self._rows(line) if _FROM_STDIN.match(text) else None
            self._found.append(Statement(self._file, line, text, rows))
        self._begin()

    def _word(self, word: str) -> None:
        """Count the blocks of a function in SQL (BEGIN ATOMIC ... END), in which semicolons end nothing; as psql does."""
        if len(self._words) < 4:
            self._words.append(word.lower())
        makes, *of = self._words
        if makes != "create" or self._brackets or not {"function", "procedure"} & set(of):
            return
        match word.lower():
            case "begin":
                self._blocks += 1
            case "case" if self._blocks:
                self._blocks += 1
            case "end" if self._blocks:
                self._blocks -= 1

    def _other(self, token: re.Match[str]) -> None:
        character = token[0]
        if character == ";" and not self._brackets and not self._blocks:
            self._end()
            return
        if character == "\\":
            self._meta(token.start())
            return
        if character in "([":
            self._brackets.append(character)
        elif character in ")]" and self._brackets:
            self._brackets.pop()
        self._add(character, token.start())

    def _meta(self, at: int) -> None:
        line_end = self._line_end(at)
        command = self._source[at:line_end].strip()
        if self._start is None and _OF_PSQL_ALONE.match(command):
            self._at = line_end
            return
        raise self._wrong(f"a backslash begins no SQL: {command}", at, _NO_META)

    def _comment(self, start: int) -> str:
        """Return the rest of a comment, which may hold others."""
        depth = 1
        while depth:
            bound = _COMMENT_END.search(self._source, self._at)
            if bound is None:
                raise self._wrong("a comment begins here and does not end: /*", start)
            depth += 1 if bound[0] == "/*" else -1
            self._at = bound.end()
        return self._source[start : self._at]

    def _dollar_quoted(self, token: re.Match[str]) -> str:
        end = self._source.find(token[0], self._at)
        if end < 0:
            raise self._wrong(f"a quotation begins here and does not end: {token[0]}", token.start())
        self._at = end + len(token[0])
        return self._source[token.start() : self._at]

    def _variable(self, token: re.Match[str]) -> str:
        if "[" in self._brackets and _OPERAND_END.match(self._source[token.start() - 1]):  # a slice of an array: a[1:n]
            return token[0]
        name, quote = token["name"], token["quote"]
        value = self._variables.get(name)
        if value is not None:
            return value if not quote else quote + value.replace(quote, quote * 2) + quote
        raise self._wrong(
            f"{token[0]} is no variable; there are: {', '.join(self._variables)}",
            token.start(),
            "dataset.variables, dataset.rows and dataset.scale set them",
        )

    def _rows(self, line: int) -> str:
        """Return the rows that follow COPY ... FROM stdin, from the next line on."""
        begin = min(self._line_end(self._at) + 1, len(self._source))
        end = re.compile(r"^\\\.[ \t\r]*(\n|\Z)", re.MULTILINE).search(self._source, begin)
        if end is None:
            raise UsageError(
                "the rows of COPY ... FROM stdin have no end",
                where=f"{self._file}:{line}",
                hint=r"end them with a line of a backslash and a dot: \.",
            )
        self._at = end.end()
        return self._source[begin : end.start()]

    def _line(self, at: int) -> int:
        return self._source.count("\n", 0, at) + 1

    def _line_end(self, at: int) -> int:
        end = self._source.find("\n", at)
        return len(self._source) if end < 0 else end

    def _wrong(self, message: str, at: int, hint: str | None = None) -> UsageError:
        return UsageError(message, where=f"{self._file}:{self._line(at)}", hint=hint)
