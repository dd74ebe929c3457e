"""The annotated report shows lines of a report that is kept, none of which was made up or has changed since."""

import re
from pathlib import Path

from kept_reports import read_kept
from plinth.report import render_terminal

ROOT = Path(__file__).parents[2]
WIDTH = 100


def test_its_blocks_are_parts_of_the_kept_report():
    blocks = re.findall(r"^```text\n(.+?)^```", (ROOT / "docs/annotated-report.md").read_text(), re.M | re.S)
    assert len(blocks) > 5
    report = read_kept("ramdisk")
    assert report is not None
    printed = render_terminal(report, width=WIDTH, color=False)
    for block in blocks:
        assert block in printed
