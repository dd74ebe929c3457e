"""The prose linter finds planted faults, and nothing in code or in what is generated."""

import subprocess
import sys
from pathlib import Path

import pytest

from prose import INSTEAD, LONGEST_LINE, ROOT, faults_of

TOO_LONG = "word " * (LONGEST_LINE // 5) + "and more\n"


def found(path: Path, text: str) -> list[tuple[int, str]]:
    path.write_text(text)
    return [(fault.line, fault.word) for fault in faults_of(path)]


@pytest.mark.parametrize("word", INSTEAD)
def test_each_word_is_found_in_every_kind_of_file(word: str, tmp_path: Path):
    broken = word.replace(" ", "\n")
    assert found(tmp_path / "a.md", f"# Head\n\nA {word.title()} here,\n{broken}.\n") == [(3, word), (4, word)]
    assert found(tmp_path / "a.toml", f'# {word}\nname = "{word}"\n') == [(1, word), (2, word)]
    program = f'"""Of {word}."""\n\nx = f"{{1}} {word}"  # {word}\n'
    assert found(tmp_path / "a.py", program) == [(1, word), (3, word), (3, word)]


def test_code_and_other_words_are_not_looked_at(tmp_path: Path):
    word = next(iter(INSTEAD))
    assert found(tmp_path / "a.md", f"```sh\n{word}\n```\n\n`{word}` and un{word}s\n\n```\n{TOO_LONG}```\n") == []
    assert found(tmp_path / "a.py", f"{word} = 1\n") == []
    assert found(tmp_path / "a.txt", word) == []


def test_long_lines_are_found_in_documents_except_in_tables_and_links(tmp_path: Path):
    link = f"A [link]({'a' * LONGEST_LINE}) and https://{'b' * LONGEST_LINE}\n"
    ((line, word),) = found(tmp_path / "a.md", f"{link}\n{TOO_LONG}\n| {TOO_LONG}")
    assert (line, word) == (3, f"{len(TOO_LONG) - 1} characters")


def test_releases_of_the_change_log_stay_as_they_were(tmp_path: Path):
    word = next(iter(INSTEAD))
    log = f"# Changelog\n\n## [Unreleased]\n\n- {word}\n\n## 1.0\n\n- {word}\n"
    assert found(tmp_path / "CHANGELOG.md", log) == [(5, word)]


def test_the_command_names_file_line_word_and_hint(tmp_path: Path):
    word, hint = next(iter(INSTEAD.items()))
    page = tmp_path / "page.md"

    def run() -> tuple[int, str]:
        command = [sys.executable, str(ROOT / "scripts/prose.py"), str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    page.write_text("Plain.\n")
    assert run() == (0, "")
    page.write_text(f"\n{word}\n")
    assert run() == (1, f"{page}:2: {word}: write {hint}\n")
