"""The catalogue of `plinth serve` in a real browser."""

import json
import subprocess

import pytest

from browser import ROOT, node
from other_port import server_on_another_port
from serving import Served
from small_bundles import written
from typed import present

USE = ROOT / "web" / "e2e" / "catalogue.mjs"


@pytest.mark.long
def test_the_catalogue_has_the_look_of_the_report_and_is_sorted_filtered_and_followed(tmp_path):
    bundles = tmp_path / "in"
    written(bundles / "first", created_unix_ns=10**18)
    written(bundles / "second", created_unix_ns=2 * 10**18)
    with server_on_another_port() as other, Served(bundles, PLINTH_STATE_DIR=str(tmp_path / "state")) as served:
        using = subprocess.Popen(
            [node(), str(USE), served.address, other.address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            line = present(using.stdout).readline()
            assert line and json.loads(line) == {"step": "listed"}, line + present(using.stderr).read()
            written(tmp_path / "new", created_unix_ns=3 * 10**18).rename(bundles / "third")
            said, errors = using.communicate(timeout=120)
        finally:
            using.kill()
            using.communicate()
    assert said, errors
    found = json.loads(said)
    assert found["failures"] == []
    assert found["address"] == f"http://127.0.0.1:{served.port}{served.root}/"
    first, second, third = (str(bundles / name) for name in ("first", "second", "third"))
    assert found["first"] == [second, first]
    assert found["followed"] == [third, second, first]
    assert found["count"] == f"3 bundles below {bundles}"
    assert found["loads"] == 0
    (ticked,) = found["ticked"]
    assert found["focused"] == ticked
    assert len(found["headlines"]) == 3
    assert found["oldest_first"] == [first, second, third]
    assert found["filtered"] == found["on_the_way_back"] == [second]
    for view, (ours, of_report) in found["looks"].items():
        assert ours == of_report, view
    assert found["looks"]["light"] != found["looks"]["dark"]
    assert [path for path, *_ in other.sent] == ["/", "/bundles/x"]
    assert {
        (cookie, referrer and referrer.startswith(f"http://127.0.0.1:{served.port}"))
        for _, cookie, referrer in other.sent
    } <= {
        (None, None),
        (None, False),
    }
