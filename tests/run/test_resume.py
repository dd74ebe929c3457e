"""Going on with a bundle: by whom it may be done, and what is left when there is nothing to measure any more."""

import pytest

from killed_runs import MISSING, begun
from plinth import __version__
from plinth.bundle import read_manifest
from plinth.cli.live import PlainLines
from plinth.model.errors import UsageError
from plinth.model.step import Step, Undo
from plinth.run.resume.resume import resume_bundle
from plinth.run.undo import UNDO_HANDLERS
from plinth.system.clean import pending_journals
from plinth.system.directory import make_directory
from plinth.system.journal import Journal
from plinth.system.owner import current_user


def test_what_is_left_of_a_run_that_had_measured_all_is_undone(tmp_path, state_dir, capsys):
    begun(tmp_path / "b")
    journal = Journal.create("r1", UNDO_HANDLERS)
    left = tmp_path / "left"
    undo = Undo(kind="remove_directory", path=str(left), label=journal.label)
    journal.record(Step(id="storage.disk.directory", title="make it", undo=undo))
    make_directory(left, journal.label, current_user())
    journal.close()
    resume_bundle(tmp_path / "b", PlainLines())
    assert not left.exists()
    assert pending_journals() == ()
    assert read_manifest(tmp_path / "b").status == "complete"
    assert "undone, of what the run had left: make it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": "0.0.9"}, f"Plinth: 0.0.9 then, {__version__} now"),
        ({"cores": lambda cores: cores + 1}, "cores: "),
        ({"kernel": lambda kernel: kernel + "-rt"}, "kernel: "),
        ({"memory_total_bytes": lambda size: 2 * size}, "memory: "),
    ],
)
def test_by_another_machine_or_another_plinth_it_is_not_resumed(tmp_path, state_dir, changes, said):
    begun(tmp_path / "b", trials=MISSING, **changes)
    with pytest.raises(UsageError, match="not the one") as error:
        resume_bundle(tmp_path / "b", PlainLines())
    assert len(error.value.details) == 1
    assert error.value.details[0].startswith(said)
    assert read_manifest(tmp_path / "b").status == "running"
