"""Whose bundles are resumed: a plan names commands, and resuming it runs them."""

import json
import os
import pwd
import shutil
import stat
from pathlib import Path

import pytest

from killed_runs import MISSING, begun
from plinth.bundle import read_manifest
from plinth.cli.live import PlainLines
from plinth.model.errors import PlinthError, Refused, UsageError
from plinth.run.resume.resume import resume_bundle
from plinth.system.paths import keys_dir
from plinth.system.run_key import create_key, forget_key, read_key


@pytest.fixture
def bundle(tmp_path, state_dir) -> Path:
    begun(tmp_path / "b", trials=MISSING)
    return tmp_path / "b"


def refused(bundle: Path) -> Refused:
    """Resuming is refused, and the bundle is as it was."""
    before = {file: file.read_bytes() for file in bundle.rglob("*") if file.is_file()}
    with pytest.raises(Refused) as error:
        resume_bundle(bundle, PlainLines())
    assert {file: file.read_bytes() for file in bundle.rglob("*") if file.is_file()} == before
    return error.value


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_the_key_is_ours_alone(bundle):
    key = keys_dir() / "r1.key"
    assert stat.S_IMODE(keys_dir().stat().st_mode) == 0o700
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_bytes() not in b"".join(file.read_bytes() for file in bundle.rglob("*") if file.is_file())


def test_it_is_resumed_where_it_was_moved_to_on_the_same_machine(tmp_path, state_dir, capsys):
    begun(tmp_path / "b")
    (tmp_path / "b").rename(tmp_path / "moved")
    resume_bundle(tmp_path / "moved", PlainLines())
    assert read_manifest(tmp_path / "moved").status == "complete"
    assert "nothing to resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("plan.json", '"seed": 1', '"seed": 2'),
        ("plan.json", '"kernel": ', '"kernel":  '),
        ("plan.json", '"run_id": "r1"', '"run_id": "r2"'),
        ("experiment.toml", "", "\\shell id\n"),
        ("manifest.json", '"plinth_version": "', '"plinth_version": "9.'),
    ],
)
def test_a_bundle_that_was_altered_is_refused(bundle, file, old, new):
    change(bundle / file, old, new)
    error = refused(bundle)
    assert "altered" in error.message
    assert f"plinth run {bundle}" in (error.hint or "")


@pytest.mark.parametrize("mac", ["", "0" * 64 + "\n", "é" * 32, None])
def test_a_mac_that_is_not_its_own_is_refused(bundle, mac):
    if mac is None:
        (bundle / "resume.mac").unlink()
    else:
        (bundle / "resume.mac").write_text(mac)
    refused(bundle)


def test_a_bundle_from_elsewhere_is_refused(bundle, monkeypatch, scratch):
    monkeypatch.setenv("PLINTH_STATE_DIR", str(scratch / "another machine"))
    error = refused(bundle)
    assert "was not begun here" in error.message
    assert f"plinth run {bundle}" in (error.hint or "")


def test_without_its_key_it_is_refused(bundle):
    assert forget_key("r1")
    assert not forget_key("r1")
    refused(bundle)


def test_the_key_of_another_run_does_not_open_it(bundle):
    create_key("r2")
    change(bundle / "manifest.json", '"run_id": "r1"', '"run_id": "r2"')
    assert "altered" in refused(bundle).message


def test_the_plan_of_one_run_is_refused_by_another(bundle, tmp_path, state_dir):
    """Both are signed, each by its own key."""
    shutil.copytree(bundle, tmp_path / "other")
    create_key("r2")
    change(tmp_path / "other" / "manifest.json", '"run_id": "r1"', '"run_id": "r2"')
    refused(tmp_path / "other")


@pytest.mark.parametrize("run_id", ["../../etc/x", "", "a/b", "..", "x\u0000y", "k" * 81])
def test_a_run_id_is_no_path(bundle, run_id):
    manifest = json.loads((bundle / "manifest.json").read_text())
    (bundle / "manifest.json").write_text(json.dumps(manifest | {"run_id": run_id}))
    with pytest.raises(UsageError, match="cannot be a run id"):
        resume_bundle(bundle, PlainLines())


def _open_folder(folder: Path) -> None:
    folder.chmod(0o755)


def _open_key(folder: Path) -> None:
    (folder / "r1.key").chmod(0o644)


def _link_folder(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


def _link_key(folder: Path) -> None:
    (folder / "r1.key").rename(folder / "other")
    (folder / "r1.key").symlink_to(folder / "other")


def _second_name(folder: Path) -> None:
    os.link(folder / "r1.key", folder / "other")


def _fifo(folder: Path) -> None:
    (folder / "r1.key").unlink()
    os.mkfifo(folder / "r1.key", 0o600)


def _directory(folder: Path) -> None:
    (folder / "r1.key").unlink()
    (folder / "r1.key").mkdir(mode=0o600)


def _short(folder: Path) -> None:
    (folder / "r1.key").write_bytes(b"known")


def _long(folder: Path) -> None:
    (folder / "r1.key").write_bytes(b"k" * 33)


def _other_bytes(folder: Path) -> None:
    (folder / "r1.key").write_bytes(b"k" * 32)


@pytest.mark.parametrize(
    "spoil",
    [
        _open_folder,
        _open_key,
        _link_folder,
        _link_key,
        _second_name,
        _fifo,
        _directory,
        _short,
        _long,
        _other_bytes,
    ],
)
def test_keys_that_others_may_have_made_prove_nothing(bundle, spoil):
    spoil(keys_dir())
    with pytest.raises(PlinthError) as error:
        resume_bundle(bundle, PlainLines())
    assert error.value.exit_code != 0
    assert read_manifest(bundle).status == "running"


@pytest.mark.parametrize("what", ["folder", "key"])
def test_keys_of_another_user_prove_nothing(bundle, what):
    other = pwd.getpwnam("nobody").pw_uid
    os.chown(keys_dir() if what == "folder" else keys_dir() / "r1.key", other, -1)
    assert "belongs to user id" in refused(bundle).message


def test_another_user_cannot_resume_it(bundle, in_child):
    def read():
        with pytest.raises(PlinthError) as error:
            read_key("r1")
        return error.value.message

    assert "permission denied" in in_child(read, user="nobody").value


def test_a_second_key_for_a_run_is_refused(bundle):
    with pytest.raises(Refused):
        create_key("r1")


def test_a_state_folder_that_others_may_use_takes_no_key(state_dir):
    create_key("r1")
    keys_dir().chmod(0o770)
    with pytest.raises(Refused, match="others may use it"):
        create_key("r2")
    assert [file.name for file in keys_dir().iterdir()] == ["r1.key"]


def test_no_folder_of_links_is_filled(state_dir, scratch):
    (scratch / "elsewhere").mkdir(mode=0o700)
    state_dir.mkdir()
    keys_dir().symlink_to(scratch / "elsewhere")
    with pytest.raises(PlinthError):
        create_key("r1")
    assert list((scratch / "elsewhere").iterdir()) == []
