"""The server under test: managed and external ones, installations, settings and replication."""

from typing import TYPE_CHECKING

from plinth.common.lazy_exports import lazy_exports
from plinth.system.database import connect, database_errors

if TYPE_CHECKING:
    from plinth.server.copies.live_snapshot import LiveSnapshot
    from plinth.server.copies.loaded_copy import (
        CopySteps,
        LoadedCopy,
        RestoreWay,
        remove_copies_command,
        remove_snapshot,
    )
    from plinth.server.external.external_server import (
        ExternalServer,
        check_external,
        check_options,
        external_step,
    )
    from plinth.server.installations.find import (
        Survey,
        find_installation,
        find_installations,
        installed_version,
    )
    from plinth.server.layout import ServerLayout, server_step_id
    from plinth.server.prewarm import Relation, RelationReader, relations
    from plinth.server.replication.standby import Standby, await_caught_up, base_backup, settings_of_standby
    from plinth.server.replication.standby_checks import followers_once_promoted, standby_problems, standbys_of
    from plinth.server.server import Applied, Server
    from plinth.server.settings.dry_start import DryStart
    from plinth.server.settings.probe import (
        STANDBY_SETTINGS,
        SettingDefinition,
        SettingsProbe,
    )

__getattr__ = lazy_exports(
    __name__,
    {
        "Relation": "prewarm",
        "RelationReader": "prewarm",
        "relations": "prewarm",
        "Applied": "server",
        "Server": "server",
        "ServerLayout": "layout",
        "CopySteps": "copies.loaded_copy",
        "DryStart": "settings.dry_start",
        "ExternalServer": "external.external_server",
        "LiveSnapshot": "copies.live_snapshot",
        "LoadedCopy": "copies.loaded_copy",
        "RestoreWay": "copies.loaded_copy",
        "STANDBY_SETTINGS": "settings.probe",
        "SettingDefinition": "settings.probe",
        "SettingsProbe": "settings.probe",
        "Standby": "replication.standby",
        "Survey": "installations.find",
        "await_caught_up": "replication.standby",
        "base_backup": "replication.standby",
        "check_external": "external.external_server",
        "check_options": "external.external_server",
        "external_step": "external.external_server",
        "find_installation": "installations.find",
        "find_installations": "installations.find",
        "installed_version": "installations.find",
        "remove_copies_command": "copies.loaded_copy",
        "remove_snapshot": "copies.loaded_copy",
        "server_step_id": "layout",
        "settings_of_standby": "replication.standby",
        "followers_once_promoted": "replication.standby_checks",
        "standby_problems": "replication.standby_checks",
        "standbys_of": "replication.standby_checks",
    },
)

__all__ = [
    "STANDBY_SETTINGS",
    "Applied",
    "CopySteps",
    "DryStart",
    "ExternalServer",
    "LiveSnapshot",
    "LoadedCopy",
    "Relation",
    "RelationReader",
    "RestoreWay",
    "Server",
    "ServerLayout",
    "SettingDefinition",
    "SettingsProbe",
    "Standby",
    "Survey",
    "await_caught_up",
    "base_backup",
    "check_external",
    "check_options",
    "connect",
    "database_errors",
    "external_step",
    "find_installation",
    "find_installations",
    "followers_once_promoted",
    "installed_version",
    "relations",
    "remove_copies_command",
    "remove_snapshot",
    "server_step_id",
    "settings_of_standby",
    "standby_problems",
    "standbys_of",
]
