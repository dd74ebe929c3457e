"""Files that are either there whole or not at all, whatever happens while they are written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plinth.system.failures import from_os_error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """While a part of the bundle is written: what the disk refuses is raised as a PlinthError with the place."""
    try:
        yield
    except OSError as error:
        raise from_os_error(error, "write the bundle", path) from error


def write_durably(path: Path, content: str | bytes) -> None:
    """Write a file beside its place, fsync it, move it there, and fsync the folder. PlinthError when it cannot be."""
    data = content.encode() if isinstance(content, str) else content
    partial = path.with_name(f".{path.name}.partial")
    with writing(path):
        try:
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
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
