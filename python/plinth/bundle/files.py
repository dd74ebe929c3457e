"""Files that are either there whole or not at all, whatever happens while they are written."""

import os
from pathlib import Path


def write_durably(path: Path, content: str | bytes) -> None:
    """Write a file beside its place, fsync it, move it there, and fsync the folder."""
    data = content.encode() if isinstance(content, str) else content
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """fsync a folder, so that the names in it survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(root: Path) -> None:
    """fsync every file and folder below `root`, and `root` itself."""
    for folder, _, names in os.walk(root):
        for name in names:
            with (Path(folder) / name).open("rb") as file:
                os.fsync(file.fileno())
        sync_directory(Path(folder))
