"""Whether a file system can copy a file by sharing its blocks (ioctl_ficlone(2))."""

import errno
import fcntl
import tempfile
from pathlib import Path

from plinth.system.failures import from_os_error
from plinth.system.timeout import call_with_timeout

_FICLONE = 0x40049409
"""_IOW(0x94, 9, int), of linux/fs.h."""
_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.ENOSYS, errno.EXDEV)
_PROBE = b"\0" * 4096


def has_reflinks(directory: Path) -> bool:
    """Try it with two files without names in `directory`. Raises a PlinthError when none can be made there."""

    def try_it() -> bool:
        with tempfile.TemporaryFile(dir=directory) as source, tempfile.TemporaryFile(dir=directory) as target:
            source.write(_PROBE)
            source.flush()
            try:
                fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
            except OSError as error:
                if error.errno not in _NOT_SUPPORTED:
                    raise
                return False
            return True

    try:
        return call_with_timeout(try_it, directory)
    except OSError as error:
        raise from_os_error(error, "try a copy that shares its blocks", directory) from error
