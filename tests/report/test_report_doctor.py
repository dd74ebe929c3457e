"""What the doctor found before the run, in every form of the report that is about the machine."""

from dataclasses import replace

import pytest

import report_bundles
from plinth.analyse import analyse
from plinth.model.base import Gap
from plinth.model.caveat import Caveat
from plinth.model.contents import BundleContents
from plinth.model.doctor import DoctorRecord, Examination, Finding, Remedy, Severity
from plinth.report import build_report, render_markdown


def finding(severity: Severity, saw: str, command: str = "", check: str = "cpu.governor") -> Finding:
    remedy = Remedy(commands=(command,), undo=("set it back",)) if command else None
    return Finding(id=check, about="machine", severity=severity, saw=saw, readings=(), why="It matters.", remedy=remedy)


def examined(*findings: Finding, gaps: tuple[Gap, ...] = ()) -> BundleContents:
    examination = Examination(taken_unix_ns=1, places=("/srv",), findings=findings, gaps=gaps)
    return replace(report_bundles.ramdisk(), doctor=DoctorRecord(examinations=(examination,)))


@pytest.mark.long
def test_what_is_wrong_is_a_warning_of_the_analysis_and_a_table_of_the_report() -> None:
    contents = examined(
        finding("note", "turbo is on"),
        finding("warning", "the governor is powersave", "echo performance | tee governor"),
        finding("warning", "memory is nearly full"),
        finding("warning", "the load average is 4", check="neighbours.load"),
        finding("problem", "others took 1.9 of 2 processors", check="neighbours.processes"),
        gaps=(Gap(what="machine: burst credits", reason="no DMI"),),
    )
    analysis = analyse(contents)
    found = [one for one in analysis.caveats if "before the run" in one.text]
    assert found == [
        Caveat(
            "busy machine",
            "problem of the machine, found before the run: others took 1.9 of 2 processors; 1 more in the report",
        ),
        Caveat("machine", "found on the machine before the run: the governor is powersave; 1 more in the report"),
    ]
    milder = analyse(examined(finding("warning", "the governor is powersave")))
    assert "found on the machine before the run: the governor is powersave" in milder.warnings
    report = build_report(contents, analysis)
    assert report.doctor == contents.doctor
    assert [(gap.where, gap.reason) for gap in report.gaps if gap.what == "machine: burst credits"] == [
        ("doctor", "no DMI")
    ]
    section = render_markdown(report).partition("## Machine before the run")[2].partition("##")[0]
    assert "| problem | machine | others took 1.9 of 2 processors | n/a |" in section
    assert r"echo performance \| tee governor" in section
    assert "turbo" not in section


def test_where_all_was_well_or_nobody_looked_nothing_is_said() -> None:
    for contents in (examined(finding("ok", "well"), finding("note", "turbo is on")), report_bundles.ramdisk()):
        analysis = analyse(contents)
        assert not [warning for warning in analysis.warnings if "before the run" in warning]
        assert "The machine before the run" not in render_markdown(build_report(contents, analysis))
