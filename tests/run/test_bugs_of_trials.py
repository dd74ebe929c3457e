"""What a bug in Plinth leaves unread is said while the run goes on, not only in its report."""

from analyse_bundles import bundle
from plinth.model.base import BUG, Gap
from plinth.run.conduct import note_bugs


def test_a_bug_is_noted_at_its_first_trial_and_other_gaps_are_left_to_the_report() -> None:
    one, two = (trial.trial for trial in bundle({"disk": [1000.0, 1001.0]}).trials)
    bug = Gap(what="process_cpu", reason=f"{BUG}: NameError: name 'x' is not defined (processes.py:7)")
    other = Gap(what="process_cpu", reason=f"{BUG}: KeyError: 3 (processes.py:9)")
    refused = Gap(what="pg_wait", reason="permission denied")
    notes, noted = list[str](), set[str]()
    note_bugs(one.model_copy(update={"gaps": (refused, bug)}), noted, notes.append)
    assert notes == [
        "process_cpu could not be read: a bug in Plinth: NameError: name 'x' is not defined (processes.py:7); "
        "further trials will probably lack it too"
    ]
    note_bugs(two.model_copy(update={"gaps": (bug, refused, other)}), noted, notes.append)
    assert [note.partition(";")[0] for note in notes[1:]] == [f"process_cpu could not be read: {other.reason}"]
