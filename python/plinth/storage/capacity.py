"""How much of a device is left for files: estimates before it is formatted, a little below what mkfs leaves.

Fitted to the space for an ordinary user after mkfs with its defaults on 400 MiB, 1, 4 and 20 GiB: e2fsprogs 1.47 (5 % are
reserved for root), xfsprogs 6.1, btrfs-progs 6.2; of ZFS the slop space (1/32) and metadata.
"""

from plinth.model.storage import FormattedStorage

_MIB = 2**20
_LEFT: dict[str, tuple[float, int]] = {
    "ext4": (0.92, 40 * _MIB),
    "xfs": (0.99, 100 * _MIB),
    "btrfs": (0.88, 40 * _MIB),
    "zfs": (0.90, 64 * _MIB),
}
"""The share of the size that is lost, and the constant part."""


def filesystem_of(spec: object) -> str | None:
    """Return the file system that is made on a storage as an experiment describes it; None where none is made."""
    if isinstance(spec, FormattedStorage):
        return spec.filesystem
    kind = getattr(spec, "kind", None)
    return kind if kind in _LEFT else None


def copies_share_blocks(spec: object) -> bool:
    """Whether a file system that is made as an experiment describes it is known to have reflinks."""
    match filesystem_of(spec):
        case "btrfs":
            return True
        case "xfs":
            return not any("reflink=0" in option for option in getattr(spec, "mkfs_options", ()))
        case _:
            return False


def usable_bytes(filesystem: str | None, capacity_bytes: int) -> int:
    """Return the part of `capacity_bytes` that an ordinary user can fill with files."""
    if filesystem is None:
        return capacity_bytes
    share, lost_bytes = _LEFT[filesystem]
    return max(0, round(capacity_bytes * share) - lost_bytes)
