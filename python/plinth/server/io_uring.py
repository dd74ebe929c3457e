"""Why a server could not use io_uring (io_method = io_uring), by its log and the kernel's settings."""

from collections.abc import Sequence
from pathlib import Path

_FAILED = ("could not setup io_uring queue", "could not register io_uring")
_DISABLED = Path("/proc/sys/kernel/io_uring_disabled")
_LEAVE = 'or take io_method = "worker"'


def io_uring_hint(log: Sequence[str], disabled: Path = _DISABLED) -> str | None:
    """Return what to do about io_uring where the last lines of a server's log say that it could not be set up.

    `disabled` is the kernel's setting: 1, for privileged processes and members of kernel.io_uring_group only; 2, for none
    (Documentation/admin-guide/sysctl/kernel.rst).
    """
    said = next((line for line in reversed(log) if any(words in line for words in _FAILED)), None)
    if said is None:
        return None
    try:
        setting = disabled.read_text().strip()
    except OSError:
        setting = "0"
    if setting in ("1", "2"):
        return (
            f"kernel.io_uring_disabled = {setting} forbids it: `sysctl kernel.io_uring_disabled=0` allows it, {_LEAVE}"
        )
    if "Cannot allocate memory" in said:
        return f"its memory counts as locked: raise the limit (ulimit -l), {_LEAVE}"
    return f"a filter of system calls, as that of a container, may forbid it (seccomp), {_LEAVE}"
