"""Backups that a colleague has prepared to make root, or the server's user, read or write elsewhere."""

import io
import os
import shutil
import socket
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from native_server import HBA, Server
from plinth.model.errors import PlinthError
from plinth.model.facts import Installation
from plinth.model.server_spec import ServerSpec
from plinth.server.layout import BackupSource, ServerLayout
from plinth.server.unpack_backup import unpack_backup
from plinth.system.log_file import LogFile
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from public_folder import PUBLIC
from servers import all_installations

SECRET = "the first line of a secret\n"


@pytest.fixture(scope="module")
def backups() -> Iterator[Server]:
    """A server, and the folders `plain` and `tar` with its backups."""
    owner = server_owner()
    server = Server(all_installations(owner, Runner())["18"], owner, hba=f"local replication all trust\n{HBA}")
    try:
        server.start()
        environment = {**os.environ, "PGHOST": str(server.folder), "PGPORT": str(server.port), "PGUSER": "postgres"}
        for form, words in (("plain", ()), ("tar", ("-Ft",))):
            argv = [
                f"{server.installation.bindir}/pg_basebackup",
                "-D",
                str(server.folder / form),
                "-c",
                "fast",
                *words,
            ]
            subprocess.run(argv, env=environment, check=True, capture_output=True)
        server.stop()
        yield server
    finally:
        server.remove()


class Place:
    """A folder with `victim`, which nothing may change or read, and the backup that is made hostile."""

    def __init__(self, folder: Path, backups: Server) -> None:
        self.folder = folder
        self.backups = backups
        self.verify = False
        self.victim = folder / "victim"
        self.victim.mkdir(mode=0o700)
        (self.victim / "secret").write_text(SECRET)
        (self.victim / "link").symlink_to("secret")
        self.backup = folder / "backup"
        self.installation: Installation = backups.installation

    def copy(self, form: str) -> Path:
        shutil.copytree(self.backups.folder / form, self.backup, symlinks=True)
        return self.backup

    def give(self) -> None:
        """Let the server's user read the backup, as one has to."""
        owner = server_owner()
        for path in (self.backup, *self.backup.rglob("*")):
            os.chown(path, owner.uid, owner.gid, follow_symlinks=False)

    def unpack(self) -> Path:
        into = self.folder / "data"
        layout = ServerLayout(
            run_id="unpacked",
            name="1-disk",
            installation=self.installation,
            owner=server_owner(),
            spec=ServerSpec(),
            data_directory=into,
            log=LogFile(into.with_suffix(".log")),
        )
        unpack_backup(layout, BackupSource(self.backup, "postgres", verify=self.verify), Runner(), lambda _: None)
        return into


@pytest.fixture
def place(backups: Server) -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp(prefix="plinth-hostile-", dir=PUBLIC)).resolve()
    folder.chmod(0o755)
    yield Place(folder, backups)
    shutil.rmtree(folder)


def add(tar: Path, name: str, content: bytes = b"planted", **kind: object) -> None:
    """Add an entry to a tar file."""
    entry = tarfile.TarInfo(name)
    entry.size = 0 if kind else len(content)
    entry.mode = 0o755
    for key, value in kind.items():
        setattr(entry, key, value)
    with tarfile.open(tar, "a") as opened:
        opened.addfile(entry, io.BytesIO(content) if entry.size else None)


def without(tar: Path, prefix: str) -> None:
    """Remove what begins with `prefix` from a tar file."""
    rest = tar.with_suffix(".rest")
    with tarfile.open(tar) as opened, tarfile.open(rest, "w") as kept:
        for entry in opened:
            if not entry.name.removeprefix("./").startswith(prefix):
                kept.addfile(entry, opened.extractfile(entry) if entry.isreg() else None)
    rest.rename(tar)


def wal_is_a_link(place: Place) -> None:
    base = place.copy("tar") / "base.tar"
    without(base, "pg_wal")
    add(base, "pg_wal", type=tarfile.SYMTYPE, linkname=str(place.victim))
    add(place.backup / "pg_wal.tar", "planted")


def tablespaces_are_a_link_in_a_tar(place: Place) -> None:
    base = place.copy("tar") / "base.tar"
    without(base, "pg_tblspc")
    add(base, "pg_tblspc", type=tarfile.SYMTYPE, linkname=str(place.victim))
    with tarfile.open(place.backup / "16384.tar", "w") as other:
        other.addfile(tarfile.TarInfo("planted"))


def entries_leave_the_tar(place: Place) -> None:
    base = place.copy("tar") / "base.tar"
    add(base, f"../../{place.folder.name}/victim/planted")
    add(base, str(place.victim / "planted"))
    add(base, "out", type=tarfile.SYMTYPE, linkname=str(place.victim))
    add(base, "out/planted")


def a_hard_link_leads_out_of_the_tar(place: Place) -> None:
    add(place.copy("tar") / "base.tar", "base/secret", type=tarfile.LNKTYPE, linkname=str(place.victim / "secret"))


def a_program_is_set_uid(place: Place) -> None:
    with tarfile.open(place.copy("tar") / "base.tar", "a") as opened:
        entry = tarfile.TarInfo("base/suid")
        entry.mode, entry.uid, entry.gid = 0o6755, 0, 0
        opened.addfile(entry)


def a_tar_has_a_device(place: Place) -> None:
    add(place.copy("tar") / "base.tar", "base/device", type=tarfile.BLKTYPE, devmajor=254, devminor=0)


def a_tar_has_a_fifo(place: Place) -> None:
    add(place.copy("tar") / "base.tar", "base/fifo", type=tarfile.FIFOTYPE)


def the_tar_is_a_link(place: Place) -> None:
    base = place.copy("tar") / "base.tar"
    base.rename(place.folder / "elsewhere.tar")
    base.symlink_to(place.folder / "elsewhere.tar")


def the_tar_is_a_fifo(place: Place) -> None:
    base = place.copy("tar") / "base.tar"
    base.unlink()
    os.mkfifo(base, 0o666)


def tablespaces_are_a_link(place: Place) -> None:
    shutil.rmtree(place.copy("plain") / "pg_tblspc")
    (place.backup / "pg_tblspc").symlink_to(place.victim)


def a_tablespace_leads_to_a_secret(place: Place) -> None:
    (place.copy("plain") / "pg_tblspc" / "16384").symlink_to(place.victim)


def a_tablespace_leads_to_a_device(place: Place) -> None:
    (place.copy("plain") / "pg_tblspc" / "16384").symlink_to("/dev/zero")


def a_tablespace_leads_to_the_system(place: Place) -> None:
    (place.copy("plain") / "pg_tblspc" / "16384").symlink_to("/usr")


def wal_leads_to_a_secret(place: Place) -> None:
    shutil.rmtree(place.copy("plain") / "pg_wal")
    (place.backup / "pg_wal").symlink_to(place.victim)


def version_is_a_link(place: Place) -> None:
    (place.copy("plain") / "PG_VERSION").unlink()
    (place.backup / "PG_VERSION").symlink_to(place.victim / "secret")


def version_is_a_link_that_may_be_read(place: Place) -> None:
    (place.copy("plain") / "PG_VERSION").unlink()
    (place.backup / "PG_VERSION").symlink_to("/etc/passwd")


def version_is_a_fifo(place: Place) -> None:
    (place.copy("plain") / "PG_VERSION").unlink()
    os.mkfifo(place.backup / "PG_VERSION", 0o666)


def version_is_huge(place: Place) -> None:
    with (place.copy("plain") / "PG_VERSION").open("r+b") as file:
        file.truncate(30 * 2**30)


def the_control_file_is_a_fifo(place: Place) -> None:
    (place.copy("plain") / "global" / "pg_control").unlink()
    os.mkfifo(place.backup / "global" / "pg_control", 0o666)


def the_manifest_is_a_fifo(place: Place) -> None:
    (place.copy("plain") / "backup_manifest").unlink()
    os.mkfifo(place.backup / "backup_manifest", 0o666)


def the_manifest_is_a_link(place: Place) -> None:
    (place.copy("plain") / "backup_manifest").unlink()
    (place.backup / "backup_manifest").symlink_to("/dev/zero")
    place.verify = True


def a_tar_makes_the_control_file_a_fifo(place: Place) -> None:
    base = place.copy("tar") / "base.tar"
    without(base, "global/pg_control")
    add(base, "global/pg_control", type=tarfile.FIFOTYPE)


def the_label_is_a_link(place: Place) -> None:
    (place.copy("plain") / "backup_label").unlink()
    (place.backup / "backup_label").symlink_to(place.victim / "secret")


def a_folder_is_a_link_to_the_root(place: Place) -> None:
    (place.copy("plain") / "base" / "root").symlink_to("/")


def a_file_is_a_socket(place: Place) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place.copy("plain") / "base" / "s"))


def a_file_is_a_device(place: Place) -> None:
    os.mknod(place.copy("plain") / "base" / "zero", 0o020666, os.makedev(1, 5))


def a_file_has_two_names(place: Place) -> None:
    (place.copy("plain") / "base" / "again").hardlink_to(place.backup / "PG_VERSION")


def the_slots_are_a_link(place: Place) -> None:
    shutil.rmtree(place.copy("plain") / "pg_replslot")
    (place.backup / "pg_replslot").symlink_to(place.victim)


def the_configuration_is_a_link(place: Place) -> None:
    (place.copy("plain") / "postgresql.conf").unlink()
    (place.backup / "postgresql.conf").symlink_to(place.victim / "secret")


def names_look_like_options(place: Place) -> None:
    (place.copy("plain") / "base" / "-rf").write_text("x")
    (place.backup / "base" / "--checkpoint-action=exec=sh").write_text("x")


def a_program_of_the_bindir_is_replaced(place: Place) -> None:
    """Each program but postgres tries to write to the victim, to the backup, and to say who it is."""
    place.copy("plain")
    prefix = Path(place.installation.bindir).parent
    copied = Path(shutil.copytree(prefix, place.folder / "pg", symlinks=True))
    for name in ("pg_controldata", "pg_verifybackup"):
        program = copied / "bin" / name
        real = f"{program}.real"
        program.rename(real)
        program.write_text(
            f"#!/bin/sh\ntouch {place.victim}/planted {place.backup}/planted {place.folder}/planted 2>/dev/null\n"
            f'cat {place.victim}/secret 2>/dev/null\nid -u > {place.folder}/data/uid\nexec {real} "$@"\n'
        )
        program.chmod(0o755)
    place.installation = place.installation.model_copy(update={"bindir": str(copied / "bin")})


ATTACKS: tuple[Callable[[Place], None], ...] = (
    wal_is_a_link,
    tablespaces_are_a_link_in_a_tar,
    entries_leave_the_tar,
    a_hard_link_leads_out_of_the_tar,
    a_program_is_set_uid,
    a_tar_has_a_device,
    a_tar_has_a_fifo,
    the_tar_is_a_link,
    the_tar_is_a_fifo,
    tablespaces_are_a_link,
    a_tablespace_leads_to_a_secret,
    a_tablespace_leads_to_a_device,
    a_tablespace_leads_to_the_system,
    wal_leads_to_a_secret,
    version_is_a_link,
    version_is_a_link_that_may_be_read,
    version_is_a_fifo,
    version_is_huge,
    the_control_file_is_a_fifo,
    the_manifest_is_a_fifo,
    the_manifest_is_a_link,
    a_tar_makes_the_control_file_a_fifo,
    the_label_is_a_link,
    a_folder_is_a_link_to_the_root,
    a_file_is_a_socket,
    a_file_is_a_device,
    a_file_has_two_names,
    the_slots_are_a_link,
    the_configuration_is_a_link,
    names_look_like_options,
    a_program_of_the_bindir_is_replaced,
)


def state_of(folder: Path) -> list[tuple[object, ...]]:
    found = []
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        found.append((str(path), status.st_mode, status.st_uid, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return found


@pytest.mark.long
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_a_hostile_backup_harms_nothing(place: Place, attack: Callable[[Place], None]) -> None:
    attack(place)
    place.give()
    before = state_of(place.victim), state_of(place.backup)
    said = ""
    try:
        place.unpack()
    except PlinthError as error:
        said = "\n".join([error.message, str(error.where), str(error.hint), *error.details])
    data = place.folder / "data"
    assert (state_of(place.victim), state_of(place.backup)) == before
    assert not (place.folder / "planted").exists()
    assert SECRET.strip() not in said and "root:x:0" not in said
    for path in data.rglob("*"):
        status = path.lstat()
        assert status.st_uid == server_owner().uid, path
        if not said:
            assert stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode), path
            assert not status.st_mode & 0o7000, path
        if stat.S_ISREG(status.st_mode) and status.st_size < 2**20:
            assert SECRET.encode() not in path.read_bytes()
    if (data / "uid").exists():
        assert (data / "uid").read_text().strip() == str(server_owner().uid)


@pytest.mark.long
def test_the_backup_without_an_attack_is_unpacked(place: Place) -> None:
    """The control."""
    for form in ("plain", "tar"):
        place.copy(form)
        place.give()
        assert (place.unpack() / "global" / "pg_control").is_file()
        shutil.rmtree(place.backup)
        shutil.rmtree(place.folder / "data")
