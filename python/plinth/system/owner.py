"""The user who runs servers, since PostgreSQL refuses to run as root."""

import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from plinth.model.errors import MissingCapability

if TYPE_CHECKING:
    from plinth.model.load_config import ShellUser

SHELL_COMMANDS = ("shell", "setshell")
"""Meta commands of scripts that execute shell commands."""

_CAP_SYS_PTRACE = 1 << 19  # linux/capability.h


class Owner(NamedTuple):
    """The user who runs servers and owns their directories; `reason` is a sentence for people."""

    name: str
    uid: int
    gid: int
    reason: str

    @property
    def is_current_user(self) -> bool:
        """Whether it is the user that this process runs as."""
        return self.uid == os.geteuid()

    def named_in_environment(self) -> dict[str, str]:
        """Return environment variables that identify the user."""
        return {"HOME": pwd.getpwuid(self.uid).pw_dir, "USER": self.name, "LOGNAME": self.name}


def server_owner() -> Owner:
    """Return the current user if it is not root; otherwise `postgres` if it exists, else `nobody`."""
    if os.geteuid() != 0:
        return current_user()
    for name, reason in (
        ("postgres", "PostgreSQL refuses to run as root: servers run as user postgres."),
        (
            "nobody",
            "PostgreSQL refuses to run as root, and there is no user postgres: servers run as user nobody.",
        ),
    ):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return Owner(name, found.pw_uid, found.pw_gid, reason)
    raise MissingCapability(
        "PostgreSQL refuses to run as root, and there is neither a user postgres nor a user nobody",
        where="/etc/passwd",
        hint="make one: useradd --system postgres",
    )


def check_sees_servers(owner: Owner, status: Path = Path("/proc/self/status")) -> None:
    """Raise MissingCapability as a root that may not look at processes of `owner`, as in an unprivileged container.

    Servers are found, and known to have ended, by the links of /proc/PID, which are readable for their user and for
    CAP_SYS_PTRACE only: see proc_pid_cwd(5).
    """
    if owner.is_current_user:
        return
    if not effective_capabilities(status) & _CAP_SYS_PTRACE:
        raise MissingCapability(
            f"root lacks the capability CAP_SYS_PTRACE here, without which it cannot see servers, which run as {owner.name}",
            where=str(status),
            hint="run Plinth as an ordinary user; or give the container the capability: docker run --cap-add SYS_PTRACE",
        )


def effective_capabilities(status: Path = Path("/proc/self/status")) -> int:
    """Return the capabilities that this process has, as a mask of the bits in linux/capability.h."""
    effective = next(line for line in status.read_text().splitlines() if line.startswith("CapEff:"))
    return int(effective.split()[1], 16)


def current_user() -> Owner:
    """Return the user that this process runs as."""
    uid = os.geteuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Owner(name, uid, os.getegid(), "Servers run as the user who started Plinth.")


class InvokingUser(NamedTuple):
    """The user for whom root works."""

    uid: int
    gid: int


def invoking_user() -> InvokingUser | None:
    """Return the user who called sudo, by the SUDO_UID and SUDO_GID that sudo(8) sets; None if that is who we are, or without sudo."""
    if os.geteuid() != 0:
        return None
    try:
        user = InvokingUser(int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"]))
    except (KeyError, ValueError):
        return None
    return user if user.uid > 0 and user.gid >= 0 else None


def shell_user() -> "ShellUser | None":
    """Who runs `\\shell` and `\\setshell` of an experiment's scripts: as root the user who runs servers, else None, ourselves.

    Of root's environment the commands see nothing but PATH, and what they print is dropped: scripts come from others.
    """
    owner = server_owner()
    if owner.is_current_user:
        return None
    from plinth.model.load_config import ShellUser  # a model that few loads need

    return ShellUser(
        uid=owner.uid,
        gid=owner.gid,
        environment={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", **owner.named_in_environment()},
        discards_output=True,
    )
