"""Reads text files that a user names; only regular files of limited size are accepted."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

MOST_BYTES = 16 * 2**20
"""Maximum size of an experiment, a script or a dataset's SQL, which the bundle contains."""


class UnreadableFile(Exception):
    """A file cannot be read; the message is the reason."""


MayRead = Callable[[Path, os.stat_result], None]
"""Raises UnreadableFile where a file that was opened may not be read. The path is its real one, after all links."""


def read_text(path: Path, *, follow_link: bool = True, may_read: MayRead | None = None) -> str:
    """Return the text of a regular file, without a byte order mark.

    Raises UnreadableFile, also for devices and pipes, which might never end, and without `follow_link` for a symbolic link.
    `may_read` decides once the file is open, so that it cannot be exchanged in between.
    """
    try:
        content = _content(path, 0 if follow_link else os.O_NOFOLLOW, may_read)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow_link:
            raise UnreadableFile("it is a symbolic link, and a bundle holds none") from error
        raise UnreadableFile(error.strerror or str(error)) from error
    except ValueError:
        raise UnreadableFile("the path has a NUL in it") from None
    if len(content) > MOST_BYTES:
        raise UnreadableFile(f"it is larger than {MOST_BYTES // 2**20} MiB")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise UnreadableFile(str(error)) from error


def _content(path: Path, flags: int, may_read: MayRead | None) -> bytes:
    """Return the content, at most one byte more than is allowed."""
    # Do not block on a pipe without a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFile("it is not a regular file")
        if may_read is not None:
            may_read(Path(f"/proc/self/fd/{descriptor}").readlink(), status)
        content = bytearray()
        while len(content) <= MOST_BYTES and (part := os.read(descriptor, MOST_BYTES + 1 - len(content))):
            content += part
        return bytes(content)
    finally:
        os.close(descriptor)
