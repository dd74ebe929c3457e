"""The facts that a server reports in its own views."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from plinth.model.base import Gap, SettingValue
from plinth.model.facts import ServerFacts
from plinth.server.external_paths import read_tablespaces, read_wal_directory
from plinth.server.layout import ClusterLayout
from plinth.server.readback import read_rows, settings_of
from plinth.server.values import SettingRow

if TYPE_CHECKING:
    import psycopg

_RESTRICTED = ("data_directory", "config_file")


def managed_facts(
    control: "psycopg.Connection[tuple[Any, ...]]", layout: ClusterLayout, asked: Mapping[str, SettingValue]
) -> ServerFacts:
    """Facts of a server that we started."""
    rows = read_rows(control)
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
    )


def external_facts(control: "psycopg.Connection[tuple[Any, ...]]") -> ServerFacts:
    """Facts of a server that is not ours: gaps where we lack the right to see."""
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
        settings=settings_of(rows, {}),
        gaps=tuple(Gap(what=f"setting {name}", reason=reason) for name in hidden),
    )


def _version(rows: Mapping[str, SettingRow]) -> dict[str, Any]:
    return {
        "version": rows["server_version"].setting,
        "version_num": int(rows["server_version_num"].setting),
    }


def _checksums(rows: Mapping[str, SettingRow]) -> bool:
    return rows["data_checksums"].setting == "on"
