"""What PostgreSQL's documentation promises of acknowledged commits after a failover."""

import pytest

from plinth.model.outage import may_lose

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
    ],
)
def test_what_may_be_lost(level, names, to, candidates, unpowered, why):
    settings = {"synchronous_commit": level, "synchronous_standby_names": names}
    found = may_lose(settings, to, standbys=BOTH, candidates=candidates, unpowered=unpowered)
    assert found is None if why is None else why in (found or "")
