"""To whom a bundle belongs that root has written: after sudo to the user who called it, and nothing outside of it."""

import os
from pathlib import Path

import pytest

from plinth.bundle.files import BundleFolder
from plinth.system.owner import InvokingUser, invoking_user

USER = InvokingUser(12345, 23456)


@pytest.fixture
def called_by_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    assert os.geteuid() == 0, "only root can give files away"
    monkeypatch.setenv("SUDO_UID", str(USER.uid))
    monkeypatch.setenv("SUDO_GID", str(USER.gid))


def owner(path: Path) -> InvokingUser:
    found = path.lstat()
    return InvokingUser(found.st_uid, found.st_gid)


@pytest.mark.usefixtures("called_by_sudo")
def test_what_sudo_has_made_is_the_callers_with_the_folders_that_were_made_for_it(tmp_path: Path) -> None:
    folder = BundleFolder.made(tmp_path / "bundles" / "one")
    assert owner(tmp_path / "bundles") == USER
    assert owner(tmp_path / "bundles" / "one").uid == 0, "nobody else puts anything into it while it is written"
    folder.make_folders("trials/0001-disk")
    folder.write_durably("trials/0001-disk/trial.json", "{}")
    folder.give()
    for name in ("bundles", "bundles/one", "bundles/one/trials/0001-disk", "bundles/one/trials/0001-disk/trial.json"):
        assert owner(tmp_path / name) == USER, name
    assert owner(tmp_path).uid == 0


@pytest.mark.usefixtures("called_by_sudo")
def test_nothing_outside_of_the_bundle_changes_its_owner(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "secret"
    secret.touch()
    folder = BundleFolder.made(tmp_path / "bundle")
    (tmp_path / "bundle" / "file-link").symlink_to(secret)
    (tmp_path / "bundle" / "folder-link").symlink_to(outside)
    (tmp_path / "bundle" / "second-name").hardlink_to(secret)
    os.mkfifo(tmp_path / "bundle" / "fifo")
    others = tmp_path / "bundle" / "of-another-user"
    others.touch()
    os.chown(others, 34567, 34567)
    folder.give()
    assert {owner(outside), owner(secret)} == {(0, 0)}
    assert owner(others) == (34567, 34567)
    assert owner(tmp_path / "bundle" / "file-link") == (0, 0)
    assert owner(tmp_path / "bundle") == USER


@pytest.mark.usefixtures("called_by_sudo")
def test_only_the_part_that_was_written_is_given(tmp_path: Path) -> None:
    folder = BundleFolder.made(tmp_path / "bundle")
    folder.write("manifest.json", "{}")
    folder.make_folder("derived")
    folder.write("derived/report.html", "")
    folder.give("derived")
    assert owner(tmp_path / "bundle" / "derived" / "report.html") == USER
    assert owner(tmp_path / "bundle" / "manifest.json") == (0, 0)


@pytest.mark.parametrize(
    ("uid", "gid"), [(None, None), ("0", "0"), ("1000", None), ("x", "1"), ("-1", "1"), ("1000", "-1")]
)
def test_without_a_caller_it_stays_roots(
    uid: str | None, gid: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in (("SUDO_UID", uid), ("SUDO_GID", gid)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert invoking_user() is None
    folder = BundleFolder.made(tmp_path / "bundle")
    folder.give()
    assert owner(folder.path) == (os.geteuid(), os.getegid())
