"""The mount table, read."""

import subprocess
from pathlib import Path

import pytest

from plinth.system.mounts import mount_of, mounts, mounts_within, parse


def test_fields_are_distinguished_with_any_optional_ones() -> None:
    plain, shared = parse(
        "36 35 98:0 /mnt1 /mnt2 rw,noatime - ext3 /dev/root rw,errors=continue\n"
        "41 1 0:38 / /a\\040b rw shared:7 master:1 propagate_from:2 - tmpfs plinth\\134x rw,size=1k\n"
    )
    assert (plain.id, plain.parent, plain.device, plain.root, plain.point) == (36, 35, "98:0", "/mnt1", "/mnt2")
    assert (plain.options, plain.super_options) == (("rw", "noatime"), ("rw", "errors=continue"))
    assert (shared.point, shared.source, shared.filesystem) == ("/a b", "plinth\\x", "tmpfs")


def test_the_topmost_mount_of_a_path_is_found_also_below_spaces(scratch: Path) -> None:
    point = scratch / "a b\tc"
    point.mkdir()
    below = mount_of(point)
    for source in ("first", "second"):
        subprocess.run(["mount", "-t", "tmpfs", source, point], check=True)
    try:
        assert mount_of(point).source == "second"
        assert mount_of(scratch) == below
        assert [mount.source for mount in mounts_within(scratch)] == ["first", "second"]
        assert mounts_within(scratch / "a") == []
    finally:
        subprocess.run(["umount", point], check=True)
        subprocess.run(["umount", point], check=True)
    assert mounts_within(scratch) == []


def test_what_python_takes_for_the_end_of_a_line_may_stand_in_a_path(scratch: Path) -> None:
    point = scratch / "a\rb\vc\x1cd\x85e\u2028f\ng"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "odd", point], check=True)
    try:
        assert [mount.point for mount in mounts_within(scratch)] == [str(point)]
        assert mount_of(point).source == "odd"
    finally:
        subprocess.run(["umount", point], check=True)


def test_where_no_mount_can_be_reached_there_is_none() -> None:
    assert parse("") == []  # as in a chroot on no mount of its own


def test_there_is_a_root_and_no_mount_of_nothing(scratch: Path) -> None:
    assert any(mount.point == "/" for mount in mounts())
    with pytest.raises(FileNotFoundError):
        mount_of(scratch / "missing")
