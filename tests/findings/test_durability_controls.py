"""Power cuts find every control, and nothing on an honest disk with the defaults; and what a torn page does."""

from collections import defaultdict
from pathlib import Path

import pytest

from plinth.bundle import read_cuts
from plinth.model.durability import PowerCut
from shape import run_shape

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]
DEFAULTS = "synchronous-commit-on-fsync-on"


def cuts_of(scratch: Path, experiment: str, *changes: str) -> dict[str, list[PowerCut]]:
    """The cuts of a curated experiment by variant."""
    scratch.mkdir(mode=0o755)
    found: dict[str, list[PowerCut]] = defaultdict(list)
    for cut in read_cuts(run_shape(scratch, experiment, *changes).bundle):
        assert cut.failure is None, cut
        found[cut.variant].append(cut)
    return found


def test_every_control_is_found_in_every_cut_that_dropped_something(module_scratch: Path) -> None:
    both = 'matrix.server.settings.fsync=["on", "off"]'
    cuts = cuts_of(module_scratch / "controls", "durability-controls", "measure.repeats=1", both)
    honest = cuts.pop(f"honest-{DEFAULTS}")
    assert len(honest) == 12 and not any(cut.damage for cut in honest)
    assert len(cuts) == 23
    for variant, made in cuts.items():
        assert any(cut.damage for cut in made), variant
    # A flush that is late loses nothing acknowledged when those that it is behind were a checkpoint's.
    whole = [cut for made in cuts.values() for cut in made if cut.mode == "drop" and "late" not in cut.variant]
    missed = [cut for cut in whole if not cut.damage]
    assert len(missed) <= len(whole) / 100, missed


def test_a_torn_page_is_found_without_full_page_images_and_repaired_with_them(module_scratch: Path) -> None:
    """LazyFS's case of PostgreSQL: https://github.com/dsrhaslab/lazyfs. Where the drive writes 8 KiB at once, only a page that ext4,
    whose blocks have 4 KiB, has placed across two of its units is torn."""
    cuts = cuts_of(
        module_scratch / "torn",
        "full-page-writes",
        'matrix.storage.disk.filesystem=["ext4"]',
        "durability.atlas=96",
        "durability.recordings=12",
        "durability.stop_after=96",
        "measure.repeats=1",
    )
    damaged = {variant: [cut for cut in made if cut.damage] for variant, made in cuts.items()}
    torn, across = (
        next(variant for variant in damaged if unit in variant and variant.endswith("off")) for unit in ("512b", "8kib")
    )
    assert damaged.pop(torn)
    writes = [report.torn_write for cut in damaged.pop(across) for report in cut.reports]
    assert all(write is not None and write.offset % 8192 for write in writes), writes
    assert list(damaged.values()) == [[], []], damaged
