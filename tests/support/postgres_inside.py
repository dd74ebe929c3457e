"""PostgreSQL on a RAID-0 of two whole disks, and on a volume striped over two others: `plinth run`, with the word for each.

Run inside user-mode-linux by test_arrays.py, with four disks that have serial numbers.
"""

from pathlib import Path

from plinth.server.installations.find import find_installations
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from short_load import run_short_load, storage_facts

BY_ID = Path("/dev/disk/by-id")
DISK = '[storage.{name}]\nkind = "device"\nid = "{id}"\nserial = "{serial}"\nsize = "{size}"\n'
ARRAYS = """
[storage.r0]
kind = "md"
members = ["ubda", "ubdb"]
level = 0
chunk_size = "64KiB"
queue.read_ahead_kb = 512
[storage.striped]
kind = "lvm"
members = ["ubdc", "ubdd"]
layout = "striped"
stripe_size = "64KiB"
"""
MIB = 2**20


def stable_id(node: Path, serial: str) -> Path:
    """A link as udev makes it where there is one."""
    BY_ID.mkdir(parents=True, exist_ok=True)
    link = BY_ID / f"uml-{serial}"
    link.symlink_to(node)
    return link


def test_postgresql_runs_on_a_raid_0_and_on_a_striped_volume_of_whole_disks(scratch: Path) -> None:
    disks = {node.name: (node, (node / "serial").read_text().strip()) for node in Path("/sys/block").glob("ubd*")}
    assert len(disks) == 4
    tables = "".join(
        DISK.format(
            name=name,
            id=stable_id(Path("/dev") / name, serial),
            serial=serial,
            size=f"{int((node / 'size').read_text()) * 512 // MIB}MiB",
        )
        for name, (node, serial) in disks.items()
    )
    words = [serial[-6:] for _, serial in disks.values()]
    (debian, *_) = [one for one in find_installations(server_owner(), Runner()).installations if one.origin == "debian"]
    run_short_load(scratch, tables + ARRAYS, ["r0", "striped"], bindir=Path(debian.bindir), destroy=words)
    for name, kind in (("r0", "md"), ("striped", "dm")):
        kinds = [node["kind"] for node in storage_facts(scratch, name)["stack"]]
        assert kinds == ["mount", "filesystem", kind, "disk", "disk"]
    assert [*Path("/sys/block").glob("md*"), *Path("/sys/block").glob("dm-*")] == []
    for name in disks:
        content = (Path("/dev") / name).read_bytes()
        assert not any(content[:MIB] + content[-MIB:]), "its first and last MiB are as they were"
