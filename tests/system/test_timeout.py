"""Calls that never return time out, and the results and errors of all others are passed on."""

import errno
import os
import threading
from pathlib import Path

import pytest

from plinth.system.timeout import call_with_timeout, statvfs_with_timeout


def test_results_and_errors_are_passed_on(tmp_path: Path) -> None:
    assert call_with_timeout(lambda: 42, tmp_path) == 42
    assert statvfs_with_timeout(tmp_path).f_frsize == os.statvfs(tmp_path).f_frsize
    with pytest.raises(FileNotFoundError):
        statvfs_with_timeout(tmp_path / "nowhere")
    with pytest.raises(TimeoutError, match="of its own"):
        call_with_timeout(lambda: (_ for _ in ()).throw(TimeoutError("of its own")), tmp_path)


def test_a_call_that_never_returns_raises_an_oserror_with_the_path(tmp_path: Path) -> None:
    never = threading.Event()
    try:
        with pytest.raises(TimeoutError) as error:
            call_with_timeout(never.wait, tmp_path, timeout_s=0.05)
    finally:
        never.set()
    assert error.value.errno == errno.ETIMEDOUT
    assert error.value.filename == str(tmp_path)
    assert error.value.strerror == "no answer within 0.05 s"
