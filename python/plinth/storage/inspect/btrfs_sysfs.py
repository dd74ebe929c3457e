"""btrfs as sysfs shows it: which file system a device belongs to, its devices and profiles (btrfs(5), "sysfs interface")."""

from pathlib import Path

SYSFS = Path("/sys")


def filesystem_of(device: str, sysfs: Path = SYSFS) -> Path | None:
    """The folder of the mounted file system that has the device of that kernel name; None when none has."""
    for folder in (sysfs / "fs/btrfs").glob("*/devices"):
        if device in (member.name for member in folder.iterdir()):
            return folder.parent
    return None


def profiles_of(filesystem: Path, use: str) -> list[str]:
    """How "data", "metadata" or "system" is spread: raid0, single, ..., each that holds any of it."""
    return sorted(entry.name for entry in (filesystem / "allocation" / use).iterdir() if entry.is_dir())
