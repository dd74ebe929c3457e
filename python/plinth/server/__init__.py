"""The server under test: installations, managed clusters, external servers, and settings that are read back."""

from plinth.server.cluster import Applied, Cluster
from plinth.server.external import ExternalServer, external_step, found_before_connecting
from plinth.server.installations import Survey, find_installation, find_installations, installed_version
from plinth.server.layout import ClusterLayout, server_step_id
from plinth.server.loaded_copy import CopySteps, LoadedCopy, RestoreWay, remove_copies_command, remove_snapshot
from plinth.server.relations import Relation, RelationReader, relations
from plinth.server.settings import (
    STANDBY_SETTINGS,
    SettingDefinition,
    SettingsProbe,
    check_settings,
    describe_settings,
)
from plinth.server.standby import Standby, await_caught_up, base_backup, settings_of_standby
from plinth.server.standby_checks import standby_problems, standbys_of
from plinth.system.database import connect, database_errors

__all__ = [
    "STANDBY_SETTINGS",
    "Applied",
    "Cluster",
    "ClusterLayout",
    "CopySteps",
    "ExternalServer",
    "LoadedCopy",
    "Relation",
    "RelationReader",
    "RestoreWay",
    "SettingDefinition",
    "SettingsProbe",
    "Standby",
    "Survey",
    "await_caught_up",
    "base_backup",
    "check_settings",
    "connect",
    "database_errors",
    "describe_settings",
    "external_step",
    "find_installation",
    "find_installations",
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
