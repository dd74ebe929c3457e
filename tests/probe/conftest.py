"""The command `plinth probe`."""

import pytest

from probing import Command


@pytest.fixture
def probe(capsys: pytest.CaptureFixture[str]) -> Command:
    """`plinth probe`, called in this process."""
    return Command(capsys)
