"""The facts that a server reports in its own views."""

import os
import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from plinth.model.base import Gap, SettingValue
from plinth.model.facts import ServerFacts
from plinth.server.layout import ServerLayout
from plinth.server.settings.readback import read_rows, settings_of
from plinth.server.settings.values import SettingRow
from plinth.server.tablespaces import read_tablespaces, read_wal_directory
from plinth.system.failures import from_os_error

if TYPE_CHECKING:
    import psycopg

_RESTRICTED = ("data_directory", "config_file")


def managed_facts(
    control: "psycopg.Connection[tuple[Any, ...]]",
    layout: ServerLayout,
    asked: Mapping[str, SettingValue],
    postmaster_pid: int | None = None,
) -> ServerFacts:
    """Read the facts of a server that we started, whose postmaster has this pid."""
    rows = read_rows(control)
    group = layout.memory_group
    libraries, gaps = ((), ()) if postmaster_pid is None else preloaded(postmaster_pid)
    return ServerFacts(
        **_version(rows),
        installation=layout.installation,
        run_as=layout.owner.name,
        run_as_reason=layout.owner.reason,
        data_directory=rows["data_directory"].setting,
        data_checksums=_checksums(rows),
        wal_directory=read_wal_directory(layout.data_directory),
        tablespaces=read_tablespaces(control),
        settings=settings_of(rows, asked),
        preloaded=libraries,
        memory_limit_bytes=None if group is None or postmaster_pid is None else group.limit_of(postmaster_pid),
        gaps=gaps,
    )


def preloaded(pid: int, everywhere: Path = Path("/etc/ld.so.preload")) -> tuple[tuple[str, ...], tuple[Gap, ...]]:
    """Return the libraries that were loaded before a process's own (ld.so(8)), and what of that could not be read."""
    named: list[str] = []
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        for variable in environment:
            if variable.startswith(b"LD_PRELOAD="):
                named += re.split(r"[:\s]+", os.fsdecode(variable.partition(b"=")[2]))
        if everywhere.exists():
            named += re.split(r"[:\s]+", everywhere.read_text())
    except OSError as error:
        return (), (
            Gap(
                what="libraries loaded before the server's own",
                reason=str(from_os_error(error, "read", everywhere).message),
            ),
        )
    return tuple(dict.fromkeys(filter(None, named))), ()


def external_facts(
    control: "psycopg.Connection[tuple[Any, ...]]", asked: Mapping[str, SettingValue] = MappingProxyType({})
) -> ServerFacts:
    """Read the facts of a server that is not ours: gaps where we lack the right to see. `asked` are settings of this session."""
    rows = read_rows(control)
    hidden = [name for name in _RESTRICTED if name not in rows]
    reason = "only members of pg_read_all_settings may see it"
    return ServerFacts(
        **_version(rows),
        installation=None,
        run_as="not known",
        run_as_reason="Plinth did not start this server.",
        data_directory=rows["data_directory"].setting if "data_directory" in rows else None,
        data_checksums=_checksums(rows),
        tablespaces=read_tablespaces(control),
        settings=settings_of(rows, asked),
        on_this_machine=_is_here(control),
        gaps=tuple(Gap(what=f"setting {name}", reason=reason) for name in hidden),
    )


def _is_here(control: "psycopg.Connection[tuple[Any, ...]]") -> bool:
    """Return whether the server is on our machine: both ends of a connection then have the same address, or none, as sockets have."""
    row = control.execute("SELECT inet_client_addr() IS NOT DISTINCT FROM inet_server_addr()").fetchone()
    assert row is not None, "a query without a table has a row"
    # A container's port that is published on the loopback has other addresses at the server's end.
    address = control.info.hostaddr
    return row[0] in (True, "t", b"t") or (bool(address) and ip_address(address).is_loopback)


def _version(rows: Mapping[str, SettingRow]) -> dict[str, Any]:
    return {
        "version": rows["server_version"].setting,
        "version_num": int(rows["server_version_num"].setting),
    }


def _checksums(rows: Mapping[str, SettingRow]) -> bool:
    return rows["data_checksums"].setting == "on"
