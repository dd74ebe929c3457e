"""A complete bundle that is reopened for more trials: authentic at every instant, and nothing of it is overwritten."""

import signal

import pytest

from bundle_parts import PLAN, trial
from killing import kill_after
from plinth.bundle import BundleWriter, read_authentic, read_manifest, verify_bundle
from plinth.bundle.files import BundleFolder
from plinth.cli.live import PlainLines
from plinth.model.errors import Refused, RunError
from plinth.model.facts import StorageFacts
from plinth.model.plan import Extension, PlannedTrial
from plinth.run.resume.resume import resume_bundle
from plinth.system.lock import LOCK_FILE
from plinth.system.run_key import create_key

FIRST = PlannedTrial(number=1, block=1, variant="disk", seed=1)
PLANNED = PLAN.model_copy(update={"trials": (FIRST,)})


def added(plan):
    number = len(plan.trials) + 1
    extension = Extension(repeats=1, first_trial=number, added_unix_ns=number)
    further = PlannedTrial(number=number, block=number, variant="disk", seed=number)
    return plan.model_copy(update={"trials": (*plan.trials, further), "extensions": (*plan.extensions, extension)})


def disk(free_bytes):
    return StorageFacts(
        name="disk",
        kind="directory",
        path="/x",
        filesystem="ext4",
        mount_options=(),
        total_bytes=9,
        free_bytes=free_bytes,
        volatile=False,
    )


@pytest.fixture
def key(state_dir):
    return create_key("r")


def complete(path, key):
    writer = BundleWriter.create(path, PLANNED, "spec = 1", "0.1.0", key)
    writer.write_storage(disk(1))
    writer.write_trial(trial(1), None, [], [])
    writer.finish("complete")
    return writer.folder


def extend(folder, key):
    manifest = read_manifest(folder)
    before = read_authentic(folder, manifest, key)
    return BundleWriter.extend(folder, manifest, key, before, added(before.plan))


def test_what_described_the_first_trials_is_kept_and_the_seal_is_broken(tmp_path, key):
    folder = complete(tmp_path / "b", key)
    writer = extend(folder, key)
    assert read_manifest(folder).status == "running"
    with pytest.raises(RunError, match="not sealed"):
        verify_bundle(folder)
    writer.write_storage(disk(2))
    writer.write_trial(trial(2), None, [], [])
    writer.finish("complete")
    extend(folder, key)
    assert folder.read_text("env/before-trial-0002/storage-disk.json") == disk(1).model_dump_json(indent=1)
    assert folder.read_text("env/before-trial-0003/storage-disk.json") == disk(2).model_dump_json(indent=1)
    assert [one.first_trial for one in read_authentic(folder, read_manifest(folder), key).plan.extensions] == [2, 3]


def test_only_the_new_plan_is_authentic_afterwards(tmp_path, key):
    folder = complete(tmp_path / "b", key)
    old_plan = folder.read_bytes("plan.json")
    extend(folder, key)
    assert len(folder.read_text("resume.mac").split()) == 1
    folder.write_durably("plan.json", old_plan)
    with pytest.raises(Refused, match="altered"):
        read_authentic(folder, read_manifest(folder), key)


def test_killed_at_any_instant_it_can_be_resumed(tmp_path, key, in_child, monkeypatch):
    """Its plan is the old one or the new one, authentic; with the old one `plinth resume` closes it again."""
    seen = set()
    for calls in range(1, 1000):
        path = tmp_path / str(calls)
        complete(path, key).close()

        def dying(path=path, calls=calls):
            with monkeypatch.context() as patch:
                kill_after(calls, patch)
                extend(BundleFolder(path), key)

        ended = in_child(dying)
        folder = BundleFolder(path)
        manifest = read_manifest(folder)
        plan = read_authentic(folder, manifest, key).plan
        seen.add((manifest.status, len(plan.trials)))
        if len(plan.trials) == 1:
            resume_bundle(path, PlainLines())
            assert verify_bundle(folder) > 0
            assert not [file for file in path.rglob(".*") if file.name != LOCK_FILE]
            extend(folder, key)
        folder.close()
        if ended.signal is None:
            break
        assert ended.signal == signal.SIGKILL
    else:
        raise AssertionError("it never came to its end")
    assert seen == {("complete", 1), ("running", 1), ("running", 2)}
    assert calls > 10
