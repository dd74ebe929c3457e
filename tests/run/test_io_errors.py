"""Errors of storages: which are planned, and what is read in a server's log."""

import pytest

from plinth.model.io_error import Holds, IoErrorSpec, order_io_errors
from plinth.model.plan import storage_that_holds
from plinth.run.io_errors import _about_storage, _answer

EXT4_AND_WAL: dict[Holds, str] = {"data": "ext4", "wal": "ext4"}


def test_errors_of_one_round_are_alike_and_of_requests_there_are_two():
    spec = IoErrorSpec(errors=("write", "hang"), times=("once", "always"))
    planned = order_io_errors({"a": EXT4_AND_WAL, "b": {"data": "xfs"}}, spec, seed=3)
    assert [(one.variant, one.error, one.times, one.holds) for one in planned] == [
        ("a", "write", "once", "data"),
        ("b", "write", "once", "data"),
        ("a", "write", "always", "data"),
        ("b", "write", "always", "data"),
        ("a", "write", "once", "wal"),
        ("a", "write", "always", "wal"),
        ("a", "hang", "always", "data"),
        ("b", "hang", "always", "data"),
        ("a", "hang", "always", "wal"),
    ]
    assert [one.number for one in planned] == list(range(1, 10))
    assert len({one.seed for one in planned}) == 6, "one a round"


def test_what_btrfs_does_not_have_is_not_planned_there():
    planned = order_io_errors({"a": {"data": "btrfs", "wal": "xfs"}}, IoErrorSpec(), seed=1)
    assert not [one for one in planned if one.holds == "data" and one.error in ("bad-sectors", "shutdown")]
    assert {one.error for one in planned if one.holds == "wal"} >= {"bad-sectors", "shutdown"}
    assert {one.holds for one in planned if one.error == "quota"} == {"data"}, "the kernel's own quotas may be missing"


def test_without_a_storage_of_its_own_wal_fails_with_the_data():
    planned = order_io_errors({"a": {"data": "ext4"}}, IoErrorSpec(errors=("full",), holds=("wal",)), seed=1)
    assert [one.holds for one in planned] == ["data"]


def test_a_tablespace_with_a_storage_of_its_own_fails_too():
    spec = IoErrorSpec(errors=("flush",), times=("always",))
    planned = order_io_errors({"a": {**EXT4_AND_WAL, "tablespace": "xfs"}}, spec, seed=1)
    assert [one.holds for one in planned] == ["data", "wal", "tablespace"]
    assert planned[-1].words == "EIO on every flush of the storage of a tablespace"


@pytest.mark.parametrize(
    ("roles", "storages"),
    [
        ({"data": "a"}, ("a", "a", "a")),
        ({"data": "a", "WAL": "b"}, ("a", "b", "a")),
        ({"data": "a", "WAL": "b", "tablespace x": "b", "tablespace y": "a", "tablespace z": "c"}, ("a", "b", "c")),
        ({"data": "a", "tablespace x": "b", "tablespace y": "c"}, ("a", "a", "b")),
    ],
)
def test_the_storage_of_each_part_of_a_server(roles, storages):
    assert tuple(storage_that_holds(holds, roles) for holds in ("data", "wal", "tablespace")) == storages


LOG = """\
2026-11-28 03:00:00.000 UTC [1] LOG:  checkpoint starting: immediate force wait
2026-11-28 03:00:00.000 UTC [1] ERROR:  could not read blocks 208..208 in file "base/5/16404": Input/output error
2026-11-28 03:00:00.000 UTC [1] ERROR:  could not read blocks 209..209 in file "base/5/16404": Input/output error
2026-11-28 03:00:00.000 UTC [1] FATAL:  the database system is in recovery mode
2026-11-28 03:00:00.000 UTC [1] PANIC:  could not fdatasync file "000000010000000000000054": Input/output error
2026-11-28 03:00:00.000 UTC [1] ERROR:  duplicate key value violates unique constraint "x"
""".splitlines()


def test_lines_about_the_storage_are_found_the_most_severe_first_and_each_kind_once():
    assert [severity for severity, _ in _about_storage(LOG)] == ["PANIC", "ERROR"]


@pytest.mark.parametrize(
    ("lines", "moved", "answer"),
    [
        (LOG, False, "PANIC"),
        (LOG[:3], True, "ERROR"),
        (['x FATAL:  could not open file "global/pg_filenode.map": Input/output error'], False, "FATAL"),
        (['x PANIC:  could not write to file "pg_wal/xlogtemp.1": No space left on device'], False, "PANIC"),
        (['x ERROR:  could not extend file "base/5/1": Read-only file system'], False, "ERROR"),
        (LOG[3:4], True, "nothing"),
        (LOG[5:], False, "waits"),
    ],
)
def test_the_answer_is_the_most_severe_message(lines, moved, answer):
    assert _answer(_about_storage(lines), moved) == answer
