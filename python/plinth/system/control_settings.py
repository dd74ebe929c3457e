"""The settings that control sessions begin with, regardless of those of roles, databases and configuration: one table, with reasons.

A dump or a backup brings objects of others. A name that a query does not qualify is looked up in search_path, functions and
operators too, so a view or an operator of theirs could run with our rights; and what ALTER ROLE and ALTER DATABASE set could end or
falsify our queries. Options of the start-up packet come after both.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple


class ControlSetting(NamedTuple):
    """A setting, the value that a control session has, and why that matters. `since`: the first major version that has it."""

    name: str
    value: str
    why: str
    since: int = 13


_CODE = "which code runs: names that are not qualified are looked up in it"
_ENDS = "our statement or session would be ended"
_WRITES = "our statements would be refused, or wait"
_TEXT = "how the server reads or writes values and names, which we parse"
_PLACE = "where what we make is stored"

SETTINGS = (
    ControlSetting("search_path", "pg_catalog,pg_temp", _CODE),
    ControlSetting("local_preload_libraries", "", "which code runs: libraries that a session loads"),
    ControlSetting("check_function_bodies", "on", "which code runs: a function that we make is checked"),
    ControlSetting("constraint_exclusion", "off", "which code runs: check constraints are evaluated to plan a query"),
    ControlSetting("row_security", "on", "a policy would raise an error instead of hiding rows"),
    ControlSetting("statement_timeout", "0", _ENDS),
    ControlSetting("lock_timeout", "0", _ENDS),
    ControlSetting("idle_in_transaction_session_timeout", "0", _ENDS),
    ControlSetting("idle_session_timeout", "0", _ENDS, since=14),
    ControlSetting("transaction_timeout", "0", _ENDS, since=17),
    ControlSetting("exit_on_error", "off", _ENDS),
    ControlSetting("default_transaction_read_only", "off", _WRITES),
    ControlSetting("default_transaction_isolation", "read committed", _WRITES),
    ControlSetting("default_transaction_deferrable", "off", _WRITES),
    ControlSetting("DateStyle", "ISO,MDY", _TEXT),
    ControlSetting("IntervalStyle", "postgres", _TEXT),
    ControlSetting("TimeZone", "UTC", _TEXT),
    ControlSetting("bytea_output", "hex", _TEXT),
    ControlSetting("extra_float_digits", "1", _TEXT),
    ControlSetting("standard_conforming_strings", "on", _TEXT),
    ControlSetting("backslash_quote", "safe_encoding", _TEXT),
    ControlSetting("array_nulls", "on", _TEXT),
    ControlSetting("transform_null_equals", "off", _TEXT),
    ControlSetting("quote_all_identifiers", "off", _TEXT),
    ControlSetting("client_min_messages", "notice", "messages of the server that we show"),
    ControlSetting("default_tablespace", "", _PLACE),
    ControlSetting("temp_tablespaces", "", _PLACE),
    ControlSetting("default_table_access_method", "heap", _PLACE),
)
"""What every role may set."""

SUPERUSER_SETTINGS = (
    ControlSetting("role", "none", "whose rights the session has"),
    ControlSetting("session_replication_role", "origin", "which triggers and rules fire"),
    ControlSetting("event_triggers", "off", "which code runs: triggers of logins and of our own DDL", since=17),
    ControlSetting(
        "session_preload_libraries", "", "which code runs: one that is missing keeps every session from beginning"
    ),
    ControlSetting("dynamic_library_path", "$libdir", "which code runs: where libraries are looked for"),
    ControlSetting("allow_system_table_mods", "off", "a catalogue would be changed like a table"),
    ControlSetting("lc_messages", "C", _TEXT),
)
"""What only a superuser may set: on servers that Plinth makes."""


def applying(major: int | None, *, superuser: bool = False) -> dict[str, str]:
    """Return the settings for a server of this major version; None: of one that is not known yet, those that each version has."""
    table = (*SETTINGS, *(SUPERUSER_SETTINGS if superuser else ()))
    return {one.name: one.value for one in table if one.since <= (13 if major is None else major)}


def as_options(settings: Mapping[str, str]) -> str:
    """Return settings as options of the start-up packet. Blanks end a value within options: see pg_split_opts of PostgreSQL."""
    return " ".join("-c " + re.sub(r"([\\\s])", r"\\\1", f"{name}={value}") for name, value in settings.items())


def with_settings(options: str | None, settings: Mapping[str, str]) -> str:
    """Return options with further settings, which come last and so take effect."""
    return f"{options or ''} {as_options(settings)}".strip()
