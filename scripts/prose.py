"""The prose linter: words that this project does not use, and lines of documents that are too long.

    python scripts/prose.py             check everything
    python scripts/prose.py PATH...     check these files and folders

It checks documents whole, except for code in them, and comments, docstrings and other strings of Python files.
"""

import argparse
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "docs",
    "experiments",
    "scripts/studies.toml",
)
PROGRAMS = ("python", "scripts", "benchmarks", "tests")
OTHERS = ("tests/postgres/node_modules", "benchmarks/runs")
"""Paths that are not checked: what npm installs, and records of benchmarks, which stay as they were written."""
MADE = "<!-- Made by scripts/generated.py"
LONGEST_LINE = 140
INSTEAD = {
    "beside": "next to, with, in addition to",
    "whatever": "any, all that, regardless of",
    "anew": "again, regenerate",
    "somebody": "another user, another process",
    "by itself": "alone, separately, automatically",
    "told apart": "distinguished",
    "of one's own": "custom, own",
    "native workload": "compiled workload",
    "native workloads": "compiled workloads",
    "native transaction": "compiled transaction",
    "native transactions": "compiled transactions",
}
"""By each word that is not used, what to write."""
_WORDS = re.compile("|".join(rf"\b{word}\b" for word in INSTEAD).replace(" ", r"\s+"), re.IGNORECASE)
_FENCED = re.compile(r"^( *)(```|~~~).*?^\1\2", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`]*`")
_LINK_TARGET = re.compile(r"\]\([^)\n]*\)|https?://\S+")
_STRINGS = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


class Fault(NamedTuple):
    """One place to correct."""

    path: Path
    line: int
    word: str
    hint: str

    def __str__(self) -> str:
        path = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{path}:{self.line}: {self.word}: {self.hint}"


def main() -> int:
    """Print the faults of the paths of the command line, or of all; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="PATH", type=Path)
    named = [path.resolve(strict=True) for path in parser.parse_args().paths]
    left_out = [ROOT / name for name in OTHERS] + [Path(__file__).resolve()]
    faults = [
        fault
        for path in named or [ROOT / name for name in (*DOCUMENTS, *PROGRAMS)]
        for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
        if not any(file.is_relative_to(folder) for folder in left_out)
        for fault in faults_of(file)
    ]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def faults_of(path: Path) -> list[Fault]:
    """Return the faults of one file; none of a file that is neither a document nor a program."""
    if path.suffix == ".py":
        return list(_in_program(path))
    if path.suffix == ".md":
        return [] if MADE in path.read_text() else list(_in_document(path))
    return list(_words(path, path.read_text(), 1)) if path.suffix in (".toml", ".sql") else []


def _in_program(path: Path) -> Iterator[Fault]:
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type in _STRINGS:
                yield from _words(path, token.string, token.start[0])


def _in_document(path: Path) -> Iterator[Fault]:
    text = _FENCED.sub(lambda code: "\n" * code[0].count("\n"), path.read_text())
    if path.name == "CHANGELOG.md":
        text = "\n## ".join(text.split("\n## ")[:2])  # releases stay as they were published
    yield from _words(path, _CODE.sub(lambda code: "`" + "\n" * code[0].count("\n"), text), 1)
    for number, line in enumerate(text.splitlines(), start=1):
        length = len(_LINK_TARGET.sub("]", line))
        if length > LONGEST_LINE and not line.lstrip().startswith(("|", "<!--")):
            yield Fault(path, number, f"{length} characters", f"wrap the line at {LONGEST_LINE}")


def _words(path: Path, text: str, first_line: int) -> Iterator[Fault]:
    for found in _WORDS.finditer(text):
        word = " ".join(found[0].lower().split())
        yield Fault(path, first_line + text.count("\n", 0, found.start()), word, f"write {INSTEAD[word]}")


if __name__ == "__main__":
    sys.exit(main())
