"""What PostgreSQL's documentation promises of acknowledged commits after a failover."""

import pytest

from plinth.model.outage import has_fsync, may_lose

BOTH = ("a", "b")


@pytest.mark.parametrize(
    ("level", "names", "to", "candidates", "unpowered", "why"),
    [
        ("on", "", "a", BOTH, (), "names no standby"),
        ("on", "FIRST 1 (a)", "a", BOTH, (), None),
        ("on", "FIRST 1 (a, b)", "b", ("b",), (), "may be one that the commits did not wait for"),
        ("on", "FIRST 2 (a, b)", "b", ("b",), (), None),
        ("on", "a, b", "a", ("a",), (), None),
        ("on", "ANY 1 (a, b)", "a", BOTH, (), None),
        ("on", "ANY 1 (a, b)", "a", ("a",), (), "may be one that"),
        ("on", "ANY 1 (*)", "b", BOTH, (), None),
        ("on", "ANY 1 (*)", "b", ("b",), (), "may be one that"),
        ("on", "ANY 2 (a, b)", "a", ("a",), (), None),
        ("on", "FIRST 1 (b)", "a", BOTH, (), "may be one that"),
        ("off", "ANY 2 (a, b)", "a", BOTH, (), "waits for no standby"),
        ("local", "ANY 2 (a, b)", "a", BOTH, (), "waits for no standby"),
        ("remote_write", "FIRST 1 (a)", "a", ("a",), (), None),
        ("remote_write", "FIRST 1 (a)", "a", ("a",), ("primary", "a"), "does not wait for the standby's flush"),
        ("remote_apply", "FIRST 1 (a)", "a", ("a",), ("primary", "a"), None),
        ("off", "", None, (), ("primary",), "does not wait for the local flush"),
        ("on", "", None, (), ("primary",), None),
        ("local", "", "primary", (), (), None),
        ("unknown", "FIRST 1 (a)", "a", ("a",), (), "only shows while it runs"),
        ("unknown", "", None, (), ("primary",), "only shows while it runs"),
    ],
)
def test_what_may_be_lost(level, names, to, candidates, unpowered, why):
    settings = {"synchronous_commit": level, "synchronous_standby_names": names}
    found = may_lose(settings, to, standbys=BOTH, candidates=candidates, unpowered=unpowered)
    assert found is None if why is None else why in (found or "")


@pytest.mark.parametrize(
    ("to", "unpowered", "unsynced", "why"),
    [
        ("a", ("primary", "a"), ("a",), "a has fsync = off, and its power was cut"),
        ("a", ("primary", "a"), ("primary",), None),
        ("a", ("primary",), ("primary", "a"), None),  # it has kept what it was sent
        (None, ("primary",), ("primary", "a"), "primary has fsync = off, and its power was cut"),
        (None, (), ("primary",), None),  # a kill leaves what the kernel has
    ],
)
def test_what_a_node_without_fsync_may_lose(to, unpowered, unsynced, why):
    settings = {"synchronous_commit": "on", "synchronous_standby_names": "FIRST 1 (a)"}
    found = may_lose(settings, to, standbys=BOTH, candidates=("a",), unpowered=unpowered, unsynced=unsynced)
    assert found == why


@pytest.mark.parametrize(("value", "has"), [("off", False), (False, False), ("0", False), ("on", True), (True, True)])
def test_fsync_is_read_as_it_may_be_written(value, has):
    assert has_fsync({"FSync": value}) is has
    assert has_fsync({"work_mem": value})
