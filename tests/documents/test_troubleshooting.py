"""The page on troubleshooting lists every exit code, and its messages are ones that Plinth writes."""

import re
from pathlib import Path

import pytest

from plinth import exit_codes

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/troubleshooting.md").read_text()
MESSAGES = re.findall(r"^### `(.+)`$", TEXT, re.MULTILINE)
OF_POSTGRESQL = {"No space left on device"}


@pytest.fixture(scope="module")
def source() -> str:
    """All programs, with strings that span lines joined."""
    text = "\n".join(path.read_text() for path in (ROOT / "python/plinth").rglob("*.py"))
    return re.sub(r'"\s*\n\s*\+?\s*f?"', "", text)


def test_all_exit_codes_are_listed_in_order():
    listed = [int(code) for code in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)]
    assert listed == sorted(value for value in vars(exit_codes).values() if isinstance(value, int))


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_one_that_plinth_writes(message: str, source: str):
    assert message in OF_POSTGRESQL or message in source


def test_there_are_messages():
    assert len(MESSAGES) > 20
    assert set(MESSAGES) >= OF_POSTGRESQL
