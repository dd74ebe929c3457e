"""Random updates of a table of numbers, before anything is measured: what a server looks like that has worked a while."""

from typing import TYPE_CHECKING

from plinth.model.dataset import NumbersDataset
from plinth.model.progress import Progress, Report
from plinth.workload.load_progress import LoadProgress

if TYPE_CHECKING:
    import psycopg

UPDATES_PER_S = 40_000.0
"""In one session of one core; drives that are slow at random reads make it less."""
_AT_ONCE = 10_000
_TASK = "update rows at random"


def update_at_random(
    control: "psycopg.Connection", progress: LoadProgress, spec: NumbersDataset, updates: int, report: Report
) -> None:
    """Update that many rows, drawn one by one as clients would draw them, in transactions of 10,000.

    The order of the new versions is that of the draws, so that they lie as clients would have laid them. Updates that
    progress records are not done again.
    """
    for done in range(progress.times(_TASK) * _AT_ONCE, updates, _AT_ONCE):
        report(Progress(_TASK, done, updates, "rows"))
        with control.transaction():
            control.execute(f"SELECT setseed({(spec.seed + done // _AT_ONCE) % 1_000_003 / 1_000_003})".encode())
            control.execute(_block(spec, min(_AT_ONCE, updates - done)).encode())
            progress.mark(_TASK)
    report(Progress(_TASK, updates, updates, "rows"))


def _block(spec: NumbersDataset, updates: int) -> str:
    # The number is drawn before: random() in the condition would be drawn again for every row of the table.
    return f"""\
DO $$ DECLARE drawn bigint; BEGIN
    FOR i IN 1..{updates} LOOP
        drawn := 1 + floor(random() * {spec.rows});
        UPDATE numbers
        SET operator = 1 + floor(random() * {spec.operators}), region = 1 + floor(random() * {spec.regions})
        WHERE number = drawn;
    END LOOP;
END $$"""
