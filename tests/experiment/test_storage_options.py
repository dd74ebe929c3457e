"""Options of mkfs, mount, zpool and zfs in an experiment: those that name a file, a device or a program are refused, as real programs read them."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from plinth.model.storage import BtrfsStorage, LoopStorage, ZfsStorage
from plinth.model.storage_options import MKFS

MIB = 2**20
SECRET = "root:$6$planted-secret"
SIZE_BYTES = {"ext4": 16 * MIB, "xfs": 320 * MIB, "btrfs": 128 * MIB}


def storage(filesystem: str, **keys: object) -> LoopStorage:
    return LoopStorage.model_validate({"kind": "loop", "size": "1GiB", "filesystem": filesystem, **keys})


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder with files of root's, which mkfs is started in, so that they have short names."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "shadow").write_text(SECRET)
    (tmp_path / "shadow").write_text(SECRET)
    (tmp_path / "proto").write_text(f"x\n0 0\nd--755 0 0\nshadow ---644 0 0 {tmp_path}/shadow\n$\n$\n")
    (tmp_path / "config").write_text("[metadata]\ncrc = 0\n")
    return tmp_path


def make(filesystem: str, words: tuple[str, ...], folder: Path) -> Path:
    """The image that a real mkfs makes with these arguments, or fails to make."""
    image = folder / "image"
    image.unlink(missing_ok=True)
    with image.open("wb") as file:
        file.truncate(SIZE_BYTES[filesystem])
    subprocess.run([f"mkfs.{filesystem}", "-q", *words, image], cwd=folder, capture_output=True, timeout=60)
    return image


def holds_secret(image: Path) -> bool:
    """Whether the planted text is in it, wherever it has data."""
    with image.open("rb", buffering=0) as file:
        at = 0
        while True:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:  # there is no more data
                return False
            end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            if SECRET.encode() in os.pread(file.fileno(), end - at, at):
                return True
            at = end


@pytest.mark.parametrize(
    ("filesystem", "words"),
    [
        ("xfs", ("-p", "proto")),
        ("xfs", ("-pproto",)),
        ("xfs", ("-Kpproto",)),
        ("ext4", ("-d", "secrets")),
        ("ext4", ("-dsecrets",)),
        ("ext4", ("-jvdsecrets",)),
        ("btrfs", ("--rootdir", "secrets")),
        ("btrfs", ("--rootdir=secrets",)),
        ("btrfs", ("--root", "secrets")),
        ("btrfs", ("-r", "secrets")),
        ("btrfs", ("-Krsecrets",)),
    ],
)
def test_what_would_copy_files_of_roots_into_the_storage_is_refused(
    planted: Path, filesystem: str, words: tuple[str, ...]
) -> None:
    assert holds_secret(make(filesystem, words, planted)), "else nothing is tested"
    with pytest.raises(ValidationError, match="not an option of mkfs"):
        storage(filesystem, mkfs_options=words)


@pytest.mark.parametrize("words", [("-z", "undo"), ("-zundo",), ("-jzundo",)])
def test_what_would_write_through_a_link_is_refused(planted: Path, words: tuple[str, ...]) -> None:
    victim = planted / "victim"
    (planted / "undo").symlink_to(victim)
    make("ext4", (), planted)
    subprocess.run(["mkfs.ext4", "-q", "-F", *words, "image"], cwd=planted, capture_output=True, timeout=60)
    assert victim.stat().st_size > 0, "else nothing is tested"
    with pytest.raises(ValidationError, match="'-z': not an option"):
        storage("ext4", mkfs_options=words)


@pytest.mark.parametrize(
    ("filesystem", "words"),
    [
        *((filesystem, words) for filesystem in MKFS for words in (("sdb",), ("/dev/sdb",), ("--",), ("-",), ("",))),
        *((filesystem, words) for filesystem in MKFS for words in (("-L", "x"), ("-U", "clear"), ("-Lx",))),
        ("ext4", ("-J", "device=LABEL=x")),
        ("ext4", ("-Jsize=4,device=sdb",)),
        ("ext4", ("-M", "x")),
        ("ext4", ("-l", "blocks")),
        ("ext4", ("-e", "panic")),
        ("ext4", ("-E", "root_owner=1:1")),
        ("ext4", ("-E", "offset=4096")),
        ("ext4", ("-c",)),
        ("ext4", ("-m",)),
        ("ext4", ("-m", "../x")),
        ("ext4", ("-j=x",)),
        ("xfs", ("-c", "options=config")),
        ("xfs", ("-l", "logdev=sdb")),
        ("xfs", ("-llogdev=sdb",)),
        ("xfs", ("-d", "name=sdb")),
        ("xfs", ("-d", "agcount=2,file,name=x")),
        ("xfs", ("-r", "rtdev=sdb")),
        ("xfs", ("-m", "uuid=00000000-0000-0000-0000-000000000000")),
        ("btrfs", ("--rootdi", "x")),
        ("btrfs", ("--label", "x")),
        ("btrfs", ("--mixed=x",)),
        ("btrfs", ("-O", "x/y")),
    ],
)
def test_what_is_not_known_to_shape_the_file_system_alone_is_refused(filesystem: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError, match="mkfs_options"):
        storage(filesystem, mkfs_options=words)
    if filesystem == "btrfs":
        with pytest.raises(ValidationError, match="mkfs_options"):
            BtrfsStorage.model_validate({"kind": "btrfs", "members": ["a"], "mkfs_options": words})


def _allowed(filesystem: str) -> Iterator[tuple[str, ...]]:
    """Every allowed option, with names of planted files where it takes a value."""
    allowed = MKFS[filesystem]
    yield from ((name,) for name in allowed.flags)
    for value in ("shadow", "secrets", "proto"):
        yield from ((name, value) for name in allowed.values)
        yield from ((name, f"{key}={value}") for name, keys in allowed.lists.items() for key in keys)


@pytest.mark.parametrize("filesystem", MKFS)
def test_no_option_that_is_allowed_reads_or_writes_a_file(planted: Path, filesystem: str) -> None:
    make(filesystem, (), planted)
    before = {path: path.lstat().st_mtime_ns for path in planted.rglob("*") if path.name != "image"}
    for words in _allowed(filesystem):
        image = make(filesystem, words, planted)
        assert not holds_secret(image), words
    assert {path: path.lstat().st_mtime_ns for path in planted.rglob("*") if path.name != "image"} == before


@pytest.mark.parametrize(
    ("filesystem", "words"),
    [
        ("ext4", ("-m", "0")),
        ("ext4", ("-m0", "-jO", "^has_journal,extent", "-E", "stride=2,stripe_width=4", "-N", "1200")),
        ("ext4", ("-J", "size=4", "-b1024")),
        ("xfs", ("-m", "reflink=0,crc=1", "-Kl", "size=64m", "-d", "agcount=2,noalign")),
        ("btrfs", ("--nodesize=16384", "--csum", "xxhash", "-mdup", "-O", "no-holes")),
    ],
)
def test_what_shapes_the_file_system_is_taken_as_mkfs_takes_it(
    planted: Path, filesystem: str, words: tuple[str, ...]
) -> None:
    assert storage(filesystem, mkfs_options=words).mkfs_options == words
    image = make(filesystem, words, planted)
    found = subprocess.run(["blkid", "-p", "-o", "value", "-s", "TYPE", image], capture_output=True, text=True)
    assert found.stdout.strip().replace("ext3", "ext4").replace("ext2", "ext4") == filesystem


@pytest.mark.parametrize(
    "option",
    [
        "/dev/sdb",
        "device=sdb",
        "logdev=sdb",
        "rtdev=sdb",
        "journal_path=x",
        "usrjquota=aquota.user",
        "helper=x",
        "uhelper=x",
        "X-mount.mkdir",
        "X-mount.subdir=x",
        "x-systemd.automount",
        "bind",
        "move",
        "remount",
        "loop=x",
        "suid",
        "dev",
        "subvol=x",
        "errors=panic",
        "fatal_errors=panic",
        "noatime,device=sdb",
        "noatime,",
        "commit=a/b",
        'commit="1,device=sdb"',
        "noatime bind",
        "",
    ],
)
@pytest.mark.parametrize("kind", [LoopStorage, BtrfsStorage])
def test_mount_options_name_no_file_no_device_and_no_other_way_to_mount(
    kind: type[LoopStorage] | type[BtrfsStorage], option: str
) -> None:
    own = {"kind": "loop", "size": "1GiB"} if kind is LoopStorage else {"kind": "btrfs", "members": ["a"]}
    kind.model_validate(
        {**own, "mount_options": ["noatime,nodiratime", "commit=60", "compress=zstd:3", "errors=remount-ro"]}
    )
    with pytest.raises(ValidationError, match="not a mount option that may be given"):
        kind.model_validate({**own, "mount_options": ["noatime", option]})


@pytest.mark.parametrize(
    ("table", "name", "value"),
    [
        ("pool_properties", "cachefile", "/etc/cron.d/x"),
        ("pool_properties", "cachefile", "x"),
        ("pool_properties", "altroot", "/"),
        ("pool_properties", "compatibility", "x"),
        ("pool_properties", "failmode", "panic"),
        ("pool_properties", "bootfs", "rpool"),
        ("pool_properties", "comment", "a b"),
        ("properties", "mountpoint", "legacy"),
        ("properties", "mountpoint", "/etc"),
        ("properties", "sharenfs", "on"),
        ("properties", "SHARENFS", "on"),
        ("properties", "keylocation", "prompt"),
        ("properties", "encryption", "on"),
        ("properties", "canmount", "off"),
        ("properties", "zoned", "on"),
        ("properties", "compression", "../x"),
    ],
)
def test_properties_of_a_pool_reach_nothing_beyond_it(table: str, name: str, value: str) -> None:
    usual = {
        "pool_properties": {"ashift": 12, "feature@lz4_compress": "enabled"},
        "properties": {"compression": "zstd-3"},
    }
    ZfsStorage.model_validate({"kind": "zfs", "data": ["a"], **usual})
    with pytest.raises(ValidationError, match="that may be given"):
        ZfsStorage.model_validate({"kind": "zfs", "data": ["a"], table: {name: value}})
