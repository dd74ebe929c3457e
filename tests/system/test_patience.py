"""Questions that are never answered end in time, and answers come back as they are."""

import errno
import os
import threading
from pathlib import Path

import pytest

from plinth.system.patience import in_time, space_of


def test_the_answer_comes_back_and_so_does_its_error(tmp_path: Path) -> None:
    assert in_time(lambda: 42, tmp_path) == 42
    assert space_of(tmp_path).f_frsize == os.statvfs(tmp_path).f_frsize
    with pytest.raises(FileNotFoundError):
        space_of(tmp_path / "nowhere")
    with pytest.raises(TimeoutError, match="of its own"):
        in_time(lambda: (_ for _ in ()).throw(TimeoutError("of its own")), tmp_path)


def test_what_is_never_answered_is_an_error_of_the_system_with_the_place(tmp_path: Path) -> None:
    never = threading.Event()
    try:
        with pytest.raises(TimeoutError) as error:
            in_time(never.wait, tmp_path, patience_s=0.05)
    finally:
        never.set()
    assert error.value.errno == errno.ETIMEDOUT
    assert error.value.filename == str(tmp_path)
    assert error.value.strerror == "no answer within 0.05 s"
