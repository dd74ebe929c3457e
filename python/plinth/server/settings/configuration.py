"""The configuration files of a managed server: plinth.conf, included last, and pg_hba.conf."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from plinth.model.base import SettingValue
from plinth.model.errors import Refused, RunError
from plinth.server.settings.values import setting_text
from plinth.system.failures import from_os_error
from plinth.system.owner import Owner
from plinth.system.regular_file import read_small_file

CONFIGURATION_FILE = "plinth.conf"
_MOST_BYTES = 2**20
STANDBY_FILE = "standby.signal"
_HBA = """\
# Written by Plinth. The socket is in a directory that only its owner may enter.
local all all trust
local replication all trust
host all all 127.0.0.1/32 scram-sha-256
"""
_HBA_NETWORK = """\
# Of the emulated network: nothing but this run's servers is in it.
host replication all samenet trust
"""
_HBA_REACHABLE = """\
# server.listen_address: load machines, and standbys on other machines, with the password of this run.
host all all all scram-sha-256
host replication all all scram-sha-256
"""


def hba(*, networked: bool = False, reachable: bool = False) -> str:
    """Return who may connect, as pg_hba.conf has it; `networked`: standbys from an emulated network, too; `reachable`: load machines
    and standbys on other machines with the password."""
    return _HBA + (_HBA_NETWORK if networked else "") + (_HBA_REACHABLE if reachable else "")


def prepare(data_directory: Path, owner: Owner, *, networked: bool, reachable: bool = False) -> None:
    """Include plinth.conf and write who may connect, as `hba` has it, after initdb."""
    main = data_directory / "postgresql.conf"
    try:
        made = read_small_file(main, _MOST_BYTES).decode()  # by initdb, a program that may have been brought
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"initdb made no postgresql.conf that can be read: {error}", where=str(main)) from error
    replace_file(main, f"{made}\ninclude '{CONFIGURATION_FILE}'\n", owner)
    replace_file(data_directory / "pg_hba.conf", hba(networked=networked, reachable=reachable), owner)


def mark_standby(data_directory: Path, owner: Owner) -> None:
    """Mark a base backup, so that the server that is started on it is a standby."""
    replace_file(data_directory / STANDBY_FILE, "", owner)


def write(
    data_directory: Path, owned: Mapping[str, SettingValue], asked: Mapping[str, SettingValue], owner: Owner
) -> None:
    """Write plinth.conf, whole or not at all."""
    lines = ["# Written by Plinth at every start and change.", *_lines(owned), "", "# Asked for:", *_lines(asked)]
    replace_file(data_directory / CONFIGURATION_FILE, "\n".join(lines) + "\n", owner)


def quoted(text: str) -> str:
    """Quote a value as GUC_scanstr of guc-file.l reads it back."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _lines(settings: Mapping[str, SettingValue]) -> list[str]:
    return [f"{name} = {quoted(setting_text(value))}" for name, value in settings.items()]


def replace_file(path: Path, text: str, owner: Owner) -> None:
    """Replace a file of the server's user, durably: otherwise a server may not start after a power cut, as was seen
    on btrfs.

    The directory is the server user's: nothing that is there is opened or followed, and no other directory is written to.
    """
    new = path.name + ".new"
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(folder).st_uid != owner.uid:
                raise Refused(f"the directory does not belong to user {owner.name}", where=str(path.parent))
            with suppress(FileNotFoundError):
                os.unlink(new, dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.open(new, flags, 0o600, dir_fd=folder)
            with open(file, "w", encoding="utf-8") as out:  # noqa: PTH123  # a descriptor has no path
                out.write(text)
                if not owner.is_current_user:
                    os.fchown(file, owner.uid, owner.gid)
                out.flush()
                os.fsync(file)
            os.rename(new, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise from_os_error(error, "write the configuration", path) from error
