"""The rule of publication: a report that passes it, and each way to break it, planted."""

from collections.abc import Callable

import pytest

import report_bundles
from plinth.model.analysis import TrialPoint
from plinth.model.doctor import DoctorRecord, Examination, Finding, Severity
from plinth.model.report import Report
from publication_rule import objections
from reported import reported


def examined(check: str = "cpu.governor", severity: Severity = "warning", saw: str = "powersave") -> DoctorRecord:
    finding = Finding(id=check, about="machine", severity=severity, saw=saw, readings=(), why="It varies.")
    return DoctorRecord(examinations=(Examination(taken_unix_ns=0, places=(), findings=(finding,), gaps=()),))


@pytest.fixture(scope="module")
def sound() -> Report:
    """Five trials of 30 s of two variants and an A/A twin."""
    return reported(report_bundles.ramdisk()).report.model_copy(update={"doctor": examined()})


def with_trials(report: Report, change: Callable[[TrialPoint], TrialPoint | None]) -> Report:
    """Return the report with each trial's point changed; None takes it away."""
    variants = tuple(
        variant.model_copy(update={"trials": tuple(new for one in variant.trials if (new := change(one)))})
        for variant in report.analysis.variants
    )
    return report.model_copy(update={"analysis": report.analysis.model_copy(update={"variants": variants})})


def shortened(report: Report) -> Report:
    first, *rest = report.trials
    return report.model_copy(update={"trials": (first.model_copy(update={"end_s": first.warmup_s + 8}), *rest)})


def test_a_sound_report_may_be_published(sound: Report) -> None:
    assert objections(sound) == []


@pytest.mark.parametrize(
    ("check", "saw"),
    [
        ("neighbours.load", "1-minute load average 13.29 on 2 processors"),
        ("neighbours.processes", "other processes took 1.43 of 2 processors"),
        ("neighbours.postgresql", "another PostgreSQL runs"),
        ("device.at_rest", "vda: busy 46 % of the time"),
    ],
)
def test_a_machine_that_did_other_work_is_refused(sound: Report, check: str, saw: str) -> None:
    busy = sound.model_copy(update={"doctor": examined(check, "warning", saw)})
    assert objections(busy) == objections(busy, of_speed=False) == [f"the doctor warned: {saw}"]
    noted = sound.model_copy(update={"doctor": examined(check, "note", saw)})
    assert objections(noted) == []


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda report: report.model_copy(update={"doctor": None}), "the doctor did not examine"),
        (
            lambda report: with_trials(report, lambda one: one.model_copy(update={"neighbours_cores": None})),
            "no trial says what other programs used",
        ),
        (
            lambda report: with_trials(report, lambda one: one.model_copy(update={"neighbours_cores": 0.4})),
            "other programs used 0.40 cores",
        ),
    ],
    ids=["no doctor", "neighbours unknown", "neighbours"],
)
def test_a_report_that_cannot_say_that_the_machine_was_idle_is_refused(
    sound: Report, broken: Callable[[Report], Report], said: str
) -> None:
    for of_speed in (True, False):
        (objection,) = objections(broken(sound), of_speed=of_speed)
        assert said in objection


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda report: with_trials(report, lambda one: None if one.block == 1 else one), "has 4 trials that count"),
        (
            lambda report: with_trials(
                report,
                lambda one: one.model_copy(update={"excluded": "the client was the limit"} if one.number == 1 else {}),
            ),
            "has 4 trials that count",
        ),
        (shortened, "a trial measured 8 s"),
        (
            lambda report: with_trials(
                report, lambda one: one.model_copy(update={"steady": False} if one.number <= 2 else {})
            ),
            "13 of 15 trials were steady",
        ),
        (
            lambda report: with_trials(report, lambda one: one.model_copy(update={"steady": None})),
            "0 of 15 trials were steady",
        ),
        (
            lambda report: report.model_copy(
                update={"analysis": report.analysis.model_copy(update={"noise": None, "noise_missing": "aa = false"})}
            ),
            "identical variants were not compared: aa = false",
        ),
    ],
    ids=["few", "excluded", "short", "unsteady", "not judged", "no A/A"],
)
def test_a_comparison_of_speeds_needs_long_steady_trials_and_their_noise(
    sound: Report, broken: Callable[[Report], Report], said: str
) -> None:
    (objection,) = objections(broken(sound))
    assert said in objection
    assert objections(broken(sound), of_speed=False) == [], "what was kept does not depend on it"


def test_one_trial_in_ten_may_be_unsteady(sound: Report) -> None:
    assert (
        objections(with_trials(sound, lambda one: one.model_copy(update={"steady": False} if one.number == 3 else {})))
        == []
    )
