"""The options of ext4 and the stripes of the study of 2018, each measured separately.

Published: all options at once; fio's figures and those of the fsync probe of eight striped SSDs and of the volume, by which a
synced write took 22 us there and 119 us here.
"""

import json
from pathlib import Path

import pytest

from shape import Shape, plinth, run_shape

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


class TestFileSystem:
    @pytest.fixture(scope="class")
    def shape(self, class_scratch: Path) -> Shape:
        levels = 'matrix={"storage.volume.mount_options" = [["noatime"], ["noatime", "nodelalloc", "data=writeback", "barrier=0"]]}'
        return run_shape(class_scratch, "hundred-billion-tpcb-file-system", levels, "measure.duration=4s")

    def test_without_barriers_nothing_acknowledged_is_kept_which_is_said(
        self, shape: Shape, class_scratch: Path
    ) -> None:
        done = plinth(class_scratch, "report", shape.bundle, "--json")
        grades = {
            variant["id"]: variant["safety"]["grade"] for variant in json.loads(done.stdout)["analysis"]["variants"]
        }
        assert grades == {
            "noatime": "keeps",
            "noatime-nodelalloc-data-writeback-barrier-0": "does not keep",
        }

    def test_the_doctor_advises_against_nothing_that_was_asked_for(self, shape: Shape) -> None:
        (examination,) = json.loads((shape.bundle / "env/doctor.json").read_text())["examinations"]
        options = [one for one in examination["findings"] if one["id"] in ("place.kept", "place.options")]
        asked = [one for one in options if one["saw"].endswith("the experiment asks for it")]
        assert len(asked) == 2, "barrier=0 and data=writeback"
        assert {(one["severity"], one["remedy"]) for one in asked} == {("note", None)}


class TestStripes:
    @pytest.fixture(scope="class")
    def shape(self, class_scratch: Path) -> Shape:
        return run_shape(class_scratch, "hundred-billion-tpcb-stripes", "measure.duration=4s")

    def test_the_stripes_commit_more_since_a_synced_write_takes_less(self, shape: Shape) -> None:
        assert shape.ratio("local-tpcb-like", to="volume-tpcb-like") > 1.5

    def test_selects_are_spread_over_all_eight(self, shape: Shape) -> None:
        devices = shape.devices("local")
        assert len(devices) == 8
        assert shape.ratio("local-select-only", to="volume-select-only") > 0.8
