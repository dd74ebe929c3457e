"""Why an old primary could not be rewound, in few words."""

from plinth.model.errors import RunError
from plinth.server.replication.pg_rewind import rewind_reason


def test_the_reason_is_what_pg_rewind_says_and_not_what_a_server_logs():
    details = [
        "LOG:  checkpoint complete: wrote 0 buffers (0.0%)",
        'pg_rewind: error: target server needs to use either data checksums or "wal_log_hints = on"',
    ]
    error = RunError("pg_rewind failed with exit code 1", details=details)
    assert rewind_reason(error) == 'target server needs to use either data checksums or "wal_log_hints = on"'


def test_without_such_a_line_it_is_the_error_and_its_last_lines():
    assert rewind_reason(RunError("pg_rewind timed out", details=["a", "b", "c"])) == "pg_rewind timed out; b; c"
