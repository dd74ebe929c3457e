"""The section on recoveries: cuts after which the server did not come back are said with the times of the others."""

import pytest

from plinth.analyse.durability import durability_of
from plinth.model.durability import Damage, IntegrityCheck, PowerCut
from plinth.report import render_markdown, render_terminal
from reported import Reported


def cut(number: int, recovery_s: float | None) -> PowerCut:
    refused = Damage(kind="recovery refused", count=1, evidence=("PANIC: could not locate a valid checkpoint record",))
    return PowerCut(
        number=number,
        variant="v",
        seed=number,
        mode="drop",
        moment="load",
        started_unix_ns=0,
        disks=("disk",),
        after_s=0.5,
        acknowledged=100,
        unanswered=2,
        recovery_s=recovery_s,
        damage=() if recovery_s else (refused,),
        checks=(IntegrityCheck(name="verify_heapam"),),
    )


@pytest.mark.parametrize(
    ("times_s", "cell", "sentence"),
    [
        ((1.0, 3.0), "2 s, at most 3 s |", "2 s until connections, at most 3 s, in 2 power cuts"),
        (
            (1.0, None, 3.0),
            "2 s, at most 3 s, never in 1 of 3 |",
            "2 s until connections, at most 3 s, in 2 power cuts, and never in 1",
        ),
    ],
)
def test_cuts_without_a_recovery(ramdisk: Reported, times_s: tuple[float | None, ...], cell: str, sentence: str):
    test = durability_of("v", [cut(number, time_s) for number, time_s in enumerate(times_s)], planned=len(times_s))
    analysis = ramdisk.report.analysis
    first, *others = analysis.variants
    variants = (first.model_copy(update={"durability": test}), *others)
    report = ramdisk.report.model_copy(update={"analysis": analysis.model_copy(update={"variants": variants})})
    assert cell in render_markdown(report)
    assert sentence in " ".join(render_terminal(report, width=250, color=False).split())
