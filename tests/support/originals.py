"""What a user brought, which nothing may change."""

import hashlib
from pathlib import Path


def files_of(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return what can be changed of each file: its rights, its owner, its times, and its content by a checksum."""
    found = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        content = str(path.readlink()) if path.is_symlink() else ""
        if path.is_file() and not path.is_symlink():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        changeable = (
            status.st_mode,
            status.st_uid,
            status.st_gid,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )
        found[str(path)] = (*changeable, content)
    return found
