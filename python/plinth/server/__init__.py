"""The server under test: installations, managed clusters, external servers, and settings that are read back."""

from typing import TYPE_CHECKING

from plinth.common.lazy_exports import lazy_exports
from plinth.server.relations import Relation, RelationReader, relations
from plinth.system.database import connect, database_errors

if TYPE_CHECKING:
    from plinth.server.dry_start import DryStart
    from plinth.server.external import (
        ExternalServer,
        check_external,
        check_options,
        external_step,
        found_before_connecting,
    )
    from plinth.server.installations import Survey, find_installation, find_installations, installed_version
    from plinth.server.layout import ServerLayout, server_step_id
    from plinth.server.live_snapshot import LiveSnapshot
    from plinth.server.loaded_copy import CopySteps, LoadedCopy, RestoreWay, remove_copies_command, remove_snapshot
    from plinth.server.server import Applied, Server
    from plinth.server.settings import (
        STANDBY_SETTINGS,
        SettingDefinition,
        SettingsProbe,
        check_settings,
        describe_settings,
    )
    from plinth.server.standby import Standby, await_caught_up, base_backup, settings_of_standby
    from plinth.server.standby_checks import followers_once_promoted, standby_problems, standbys_of

__getattr__ = lazy_exports(
    __name__,
    {
        "Applied": "server",
        "Server": "server",
        "ServerLayout": "layout",
        "CopySteps": "loaded_copy",
        "DryStart": "dry_start",
        "ExternalServer": "external",
        "LiveSnapshot": "live_snapshot",
        "LoadedCopy": "loaded_copy",
        "RestoreWay": "loaded_copy",
        "STANDBY_SETTINGS": "settings",
        "SettingDefinition": "settings",
        "SettingsProbe": "settings",
        "Standby": "standby",
        "Survey": "installations",
        "await_caught_up": "standby",
        "base_backup": "standby",
        "check_external": "external",
        "check_options": "external",
        "check_settings": "settings",
        "describe_settings": "settings",
        "external_step": "external",
        "find_installation": "installations",
        "find_installations": "installations",
        "found_before_connecting": "external",
        "installed_version": "installations",
        "remove_copies_command": "loaded_copy",
        "remove_snapshot": "loaded_copy",
        "server_step_id": "layout",
        "settings_of_standby": "standby",
        "followers_once_promoted": "standby_checks",
        "standby_problems": "standby_checks",
        "standbys_of": "standby_checks",
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
    "check_settings",
    "connect",
    "database_errors",
    "describe_settings",
    "external_step",
    "find_installation",
    "find_installations",
    "followers_once_promoted",
    "found_before_connecting",
    "installed_version",
    "relations",
    "remove_copies_command",
    "remove_snapshot",
    "server_step_id",
    "settings_of_standby",
    "standby_problems",
    "standbys_of",
]
