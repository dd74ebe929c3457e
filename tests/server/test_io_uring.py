"""Why a server cannot use io_uring, as its log and the kernel say it."""

import pytest

from plinth.server.postmaster import io_uring_hint

FAILED = "2026-11-28 03:00:00 UTC [1] FATAL:  could not setup io_uring queue: "


@pytest.mark.parametrize(
    ("line", "disabled", "said"),
    [
        (FAILED + "Operation not permitted", "2", "kernel.io_uring_disabled = 2 forbids it"),
        (FAILED + "Operation not permitted", "1", "kernel.io_uring_disabled = 1 forbids it"),
        (FAILED + "Operation not permitted", "0", "seccomp"),
        (FAILED + "Cannot allocate memory", "0", "ulimit -l"),
        (FAILED + "Function not implemented", None, "seccomp"),
    ],
)
def test_what_forbids_it_is_named_with_what_to_do(line, disabled, said, tmp_path):
    setting = tmp_path / "io_uring_disabled"
    if disabled is not None:
        setting.write_text(f"{disabled}\n")
    hint = io_uring_hint(["LOG:  starting PostgreSQL 18.6", line, "LOG:  database system is shut down"], setting)
    assert hint is not None and said in hint and 'io_method = "worker"' in hint


def test_nothing_is_said_of_another_failure(tmp_path):
    assert io_uring_hint(["FATAL:  could not access the data directory"], tmp_path / "none") is None
