"""Runs under different load of others on the machine: what their trials' samples and the doctor say, and what is refused."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from analyse_bundles import SECOND_NS, bundle
from plinth.analyse import analyse
from plinth.analyse.between_runs import Run, compare_runs
from plinth.analyse.run_figures import run_figures
from plinth.model.choices import Allowance
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.doctor import DoctorRecord, Examination, Finding, Severity
from plinth.model.errors import UsageError
from plinth.model.trial import Sample
from sampled import by_metric

STEADY = (1000.0, 1010.0, 990.0, 1005.0, 995.0)
HALF = tuple(0.44 * tps for tps in STEADY)
CORES = 4


def loaded(contents: TrialContents, others: float, steal: float) -> TrialContents:
    """A trial on four cores, of which these shares went to others and to the hypervisor."""
    used = {
        ("host_cpu", "all", "user_s"): CORES * (0.3 + others),
        ("host_cpu", "all", "steal_s"): CORES * steal,
        ("host_cpu", "all", "idle_s"): CORES * (0.7 - others - steal),
        ("process_cpu", "rest of host", "user_s"): CORES * others / 2,
        ("process_cpu", "rest of host", "system_s"): CORES * others / 2,
    }
    samples = [Sample(t * SECOND_NS, *key, 100 + t * cores) for key, cores in used.items() for t in (-1, 0, 15, 30)]
    return replace(contents, read_samples=lambda: by_metric(samples))


def run(
    name: str,
    tps: Sequence[float] = STEADY,
    others: Sequence[float] | None = (0.02,) * 5,
    steal: float = 0.0,
    doctor: dict[str, Severity] | None = None,
) -> Run:
    contents: BundleContents = bundle({"disk": tps}, aa=False)
    contents = replace(contents, manifest=contents.manifest.model_copy(update={"run_id": name}))
    if others is not None:
        trials = (loaded(one, share, steal) for one, share in zip(contents.trials, others, strict=True))
        contents = replace(contents, trials=tuple(trials))
    if doctor is not None:
        contents = replace(contents, doctor=found(doctor))
    return Run(name, run_figures(contents, analyse(contents)))


def found(by_check: dict[str, Severity]) -> DoctorRecord:
    findings = tuple(
        Finding(id=check, about="machine", severity=severity, saw="", readings=(), why="")
        for check, severity in by_check.items()
    )
    return DoctorRecord(examinations=(Examination(taken_unix_ns=0, places=(), findings=findings, gaps=()),))


def test_a_run_under_load_of_others_is_not_comparable_with_one_on_a_quiet_machine() -> None:
    quiet, busy = run("quiet"), run("busy", HALF, others=(0.5, 0.52, 0.1, 0.49, 0.51))
    with pytest.raises(UsageError, match="nothing in these runs can be compared") as refused:
        compare_runs([quiet, busy])
    assert refused.value.exit_code == 2
    assert refused.value.details == (
        "disk: different load: CPU of other processes was 2 % of all cores' time and is 50 % "
        "(--allow load compares them nonetheless)",
    )


def test_where_it_is_allowed_the_load_is_what_differs() -> None:
    allowed: list[Allowance] = ["load"]
    compared = compare_runs([run("quiet"), run("busy", HALF, others=(0.5,) * 5)], allowed=allowed)
    assert compared.ratios[0].verdict == "worse"
    assert [(one.kind, one.name, one.values) for one in compared.differences] == [
        ("load", "CPU of other processes", ("2 %", "50 %"))
    ]
    said = "The machine was under different load (CPU of other processes): a ratio is of it, too."
    assert said in compared.caveats
    assert not any("Nothing that is recorded differs" in caveat for caveat in compared.caveats)


def test_stolen_time_is_compared_too() -> None:
    with pytest.raises(UsageError) as refused:
        compare_runs([run("a"), run("b", HALF, steal=0.08)])
    assert "CPU stolen by the hypervisor was 0 % of all cores' time and is 8 %" in refused.value.details[0]


@pytest.mark.parametrize("others", [(0.02,) * 5, (0.1,) * 5, (0.01, 0.6, 0.03, 0.02, 0.02)])
def test_little_more_load_or_a_single_trial_under_load_is_no_difference(others: Sequence[float]) -> None:
    compared = compare_runs([run("a"), run("b", HALF, others=others)])
    assert compared.ratios[0].verdict == "worse"
    assert compared.differences == ()
    assert "Nothing that is recorded differs" in compared.caveats[1]


def test_two_runs_under_the_same_load_are_compared() -> None:
    busy = (0.5,) * 5
    assert compare_runs([run("a", others=busy), run("b", HALF, others=busy)]).ratios[0].verdict == "worse"


PROBLEM: dict[str, Severity] = {"neighbours.processes": "problem"}
OK: dict[str, Severity] = {"neighbours.processes": "note"}


def test_of_what_trials_were_measured_a_moment_before_the_run_decides_nothing_and_is_listed() -> None:
    compared = compare_runs([run("a", doctor=OK), run("b", doctor=PROBLEM)])
    assert compared.ratios[0].verdict is not None
    assert [(one.kind, one.name, one.values) for one in compared.differences] == [
        ("load", "doctor: neighbours.processes", ("nothing found", "problem"))
    ]


@pytest.mark.parametrize(("others", "check"), [(None, "neighbours.processes"), ((0.02,) * 5, "device.at_rest")])
def test_where_trials_do_not_say_it_a_problem_of_the_doctor_does(others: Any, check: str) -> None:
    was: dict[str, Severity] = {check: "ok"}
    now: dict[str, Severity] = {check: "problem"}
    with pytest.raises(UsageError) as refused:
        compare_runs([run("a", others=others, doctor=was), run("b", others=others, doctor=now)])
    assert f"different load: doctor: {check} was nothing found and is problem" in refused.value.details[0]
    assert compare_runs([run("a", others=others, doctor=now), run("b", others=others, doctor=now)]).ratios


def test_of_a_run_without_samples_the_load_is_said_to_be_unknown() -> None:
    compared = compare_runs([run("a"), run("b", others=None)])
    assert any(
        caveat.startswith("What other processes did during the trials of b is not known") for caveat in compared.caveats
    )
