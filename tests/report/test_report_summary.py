"""What a run ends with: one screen."""

from dataclasses import replace

import pytest
from rich.cells import cell_len

import report_bundles
from plinth.analyse import analyse
from plinth.cli.results import Results, show_results
from plinth.model.caveat import Caveat, CaveatKind, by_weight
from plinth.model.doctor import DoctorRecord, Examination, Finding
from plinth.model.report import Report
from plinth.report import render_summary, render_terminal
from reported import Reported, reported
from small_bundles import write_bundle

LINES, COLUMNS = 24, 80
PROMPT = 1
BUSY = "load average 5.2 on 2 processors"


def with_warnings(run: Reported, *caveats: tuple[CaveatKind, str]) -> Report:
    warned = by_weight([Caveat(kind, text) for kind, text in caveats])
    analysis = run.analysis.model_copy(
        update={
            "warnings": tuple(one.text for one in warned),
            "warning_kinds": tuple(one.kind for one in warned),
        }
    )
    return run.of(analysis)


def warned(report: Report) -> list[str]:
    text = render_summary(report, width=200, color=False).text
    return [line.removeprefix("warning: ") for line in text.splitlines() if line.startswith("warning: ")]


def busy(contents):
    finding = Finding(
        id="neighbours.load", about="machine", severity="warning", saw=BUSY, readings=(), why="It competes."
    )
    examination = Examination(taken_unix_ns=1, places=("/srv",), findings=(finding,), gaps=())
    return replace(contents, doctor=DoctorRecord(examinations=(examination,)))


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_is_as_wide_as_the_terminal_and_has_table_answer_and_safety(trouble: Reported, width: int) -> None:
    text = render_summary(trouble.report, width=width, color=False).text
    assert max(cell_len(line) for line in text.splitlines()) <= width
    words = " ".join(text.split())
    assert words.startswith("# variant") and trouble.analysis.answer in words
    assert "Safety: memory: acknowledged commits can be lost in a" in words
    assert "Safety: disk: acknowledged commits survive a power failure (assumed)" in words


@pytest.mark.long
@pytest.mark.parametrize("repeats", [2, 5])
def test_a_run_of_the_first_experiment_ends_on_one_screen(
    tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], repeats: int
) -> None:
    """On the worst of days: trials failed and excluded, others at work, sources that could not be read."""
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.chdir(tmp_path)
    contents = busy(report_bundles.ramdisk(repeats=repeats, trouble=repeats > 2))
    folder = write_bundle(tmp_path / "bundles" / "ramdisk-20261126-131500", contents).relative_to(tmp_path)
    show_results(Results(contents, analyse(contents), folder), as_json=False, plots=False)
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) + PROMPT <= LINES, shown
    assert max(map(cell_len, shown.splitlines())) <= COLUMNS
    assert f"plinth report {folder} --full" in shown.splitlines()[-1]
    assert BUSY in " ".join(shown.split())


def test_of_a_busy_machine_it_is_said_before_too_few_trials() -> None:
    said = warned(reported(busy(report_bundles.ramdisk(repeats=2))).report)
    (load,) = [place for place, text in enumerate(said) if BUSY in text]
    (few,) = [place for place, text in enumerate(said) if "too few for intervals" in text]
    assert load < few


def test_the_heaviest_warnings_are_shown_and_the_others_counted(ramdisk: Reported) -> None:
    report = with_warnings(
        ramdisk,
        ("gaps", "figures"),
        ("few trials", "few"),
        ("lost trials", "one"),
        ("safety", "memory ranks first"),
        ("incomplete run", "half"),
        ("lost trials", "another"),
    )
    assert warned(report) == ["half", "one", "another"]
    assert render_summary(report, width=200, color=False).warnings_left == 2, "of safety there are lines of their own"
    whole = render_terminal(report, width=200, color=False)
    assert whole.count("warning: ") == 6
    assert render_summary(ramdisk.report, width=200, color=False).warnings_left == 0


def test_a_busy_machine_is_never_among_those_that_are_counted(ramdisk: Reported) -> None:
    lost: list[tuple[CaveatKind, str]] = [("lost trials", f"trial {number}") for number in range(5)]
    report = with_warnings(ramdisk, *lost, ("busy machine", BUSY))
    assert warned(report) == ["trial 0", "trial 1", BUSY]
    assert render_summary(report, width=200, color=False).warnings_left == 3


def test_where_little_room_is_left_warnings_have_one_line_each(ramdisk: Reported) -> None:
    long: list[tuple[CaveatKind, str]] = [("load", f"{number} {'word ' * 40}") for number in range(3)]
    answer = "\n".join(["A line of the answer."] * 7)
    long_answer = ramdisk._replace(analysis=ramdisk.analysis.model_copy(update={"answer": answer}))
    report = with_warnings(long_answer, *long)
    lines = render_summary(report, width=80, color=False).text.splitlines()
    cut = [line for line in lines if line.endswith(" ...")]
    assert [line.split()[1] for line in cut] == ["0"] and cut[0] == lines[-1] and len(lines) == 20
    busy = with_warnings(long_answer, *long, ("incomplete run", "half of it"), ("busy machine", BUSY))
    assert render_summary(busy, width=80, color=False).text.splitlines()[-1] == f"warning: {BUSY}"
    assert render_summary(busy, width=80, color=False).warnings_left == 4


def test_a_long_warning_is_cut_where_it_can_be_seen(ramdisk: Reported) -> None:
    report = with_warnings(ramdisk, ("load", "word " * 100))
    lines = render_summary(report, width=80, color=False).text.splitlines()
    assert lines[-2].startswith("warning: word") and lines[-1].endswith(" ...") and len(lines[-1]) <= 80


@pytest.mark.long
def test_variants_of_one_fate_share_a_line(many: Reported) -> None:
    lines = [
        line for line in render_summary(many.report, width=200, color=False).text.splitlines() if "Safety: " in line
    ]
    assert 1 <= len(lines) <= 3
    assert any("and 27 more: acknowledged commits survive" in line for line in lines)


def test_the_command_of_the_rest_works_as_it_is_shown(
    tmp_path, capsys: pytest.CaptureFixture[str], trouble: Reported
) -> None:
    import shlex

    from plinth.cli import main

    folder = write_bundle(tmp_path / "a bundle", trouble.contents)
    show_results(Results(trouble.contents, trouble.analysis, folder), as_json=False, plots=False)
    _, _, command = capsys.readouterr().out.splitlines()[-1].partition(": plinth ")
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out.count("warning: ") == len(trouble.analysis.warnings)
