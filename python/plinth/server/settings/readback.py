"""Read-back of settings: requested values compared with those that the running server reports."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from plinth.common.secrets import without_secrets
from plinth.model.base import SettingValue
from plinth.model.errors import RunError
from plinth.model.facts import Setting
from plinth.server.settings.ask import SettingsProbe
from plinth.server.settings.values import SettingRow, setting_text, was_taken

if TYPE_CHECKING:
    import psycopg

_COLUMNS = "name, setting, unit, vartype, context, source, sourcefile, boot_val, pending_restart"


def read_rows(connection: "psycopg.Connection[tuple[Any, ...]]") -> dict[str, SettingRow]:
    """Read pg_settings by lower-case name: names of settings do not differ in case."""
    rows = connection.execute(f"select {_COLUMNS} from pg_catalog.pg_settings")  # type: ignore[arg-type]  # constant
    return {row[0].lower(): SettingRow(*row) for row in rows}


def settings_of(rows: Mapping[str, SettingRow], asked: Mapping[str, SettingValue]) -> tuple[Setting, ...]:
    """Return the requested settings and those that differ from their defaults, apart from what our own connection set for
    itself."""
    texts = {name.lower(): setting_text(value) for name, value in asked.items()}
    return tuple(
        Setting(
            name=row.name,
            asked=texts.get(key),
            value=_shown(row),
            unit=row.unit,
            source=row.source,
            boot_value=row.boot_val,
        )
        for key, row in sorted(rows.items())
        if key in texts or not _goes_without_saying(row)
    )


def _shown(row: SettingRow) -> str:
    """Return the value without the secrets that an external server may have in it."""
    if row.name == "primary_conninfo":
        return without_secrets(row.setting)
    return "***" if row.name == "ssl_passphrase_command" and row.setting else row.setting


def _goes_without_saying(row: SettingRow) -> bool:
    """Return whether it is a default, or belongs to our own session: its options, the state of its transaction."""
    return row.source in ("default", "client") or (row.source == "override" and row.context == "user")


def check_taken(
    asked: Mapping[str, SettingValue], rows: Mapping[str, SettingRow], probe: SettingsProbe, where: str
) -> None:
    """Raise RunError that names every setting the server does not know or did not take, with the requested and the
    actual value."""
    complaints = [
        complaint
        for name, value in asked.items()
        if (complaint := _complaint(name, value, rows.get(name.lower()), probe)) is not None
    ]
    if complaints:
        count = "a setting was" if len(complaints) == 1 else f"{len(complaints)} settings were"
        raise RunError(f"{count} not taken: {complaints[0]}", where=where, details=complaints[1:])


def check_options_taken(control: "psycopg.Connection[tuple[Any, ...]]", asked: Mapping[str, SettingValue]) -> None:
    """Raise RunError that names every setting that this session was to begin with and has not, as where a pooler drops it."""
    if not asked:
        return
    rows = read_rows(control)
    complaints: list[str] = []
    for name, value in asked.items():
        row, text = rows.get(name.lower()), setting_text(value)
        if row is None:  # of an extension that this session has not loaded, perhaps
            got = _text(control.execute("select current_setting(%s, true)", (name,)).fetchone())
            if got != text:
                said = "the server does not know it" if got is None else f"asked {text!r}, got {got!r}"
                complaints.append(f"{name}: {said}")
        elif not was_taken(text, row) and row.setting != _spelling_of_session(control, name, text):
            complaints.append(f"{name}: asked {text!r}, got {row.setting}{row.unit or ''} (from: {row.source})")
    if complaints:
        raise RunError(
            f"options of the load's sessions were not taken: {complaints[0]}",
            where="server.connection_options",
            details=complaints[1:],
            hint="a pooler may drop them: name the server itself in server.connection",
        )


def _spelling_of_session(control: "psycopg.Connection[tuple[Any, ...]]", name: str, text: str) -> str | None:
    """Return the server's own spelling of a value: synchronous_commit = no is off. None where a running session may not set it."""
    import psycopg

    try:
        with control.transaction(force_rollback=True):
            row = control.execute("select set_config(%s, %s, true)", (name, text)).fetchone()
    except psycopg.Error:
        return None
    return _text(row)


def _text(row: "tuple[Any, ...] | None") -> str | None:
    value = None if row is None else row[0]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _complaint(name: str, value: SettingValue, row: SettingRow | None, probe: SettingsProbe) -> str | None:
    asked = setting_text(value)
    if row is None:
        library = name.partition(".")[0]
        return f"{name}: the server does not know it" + (
            f"; no library that it loaded defines it (shared_preload_libraries = '{library}'?)" if "." in name else ""
        )
    if was_taken(asked, row):
        return None
    if row.vartype in ("enum", "string") and "." not in name:
        canonical = probe.canonical({name: value}).get(name)
        if was_taken(asked, row, canonical):
            return None
    unit = row.unit or ""
    got = f"{row.setting} x {unit}" if unit[:1].isdigit() else f"{row.setting}{unit}"
    pending = "; it waits for a restart" if row.pending_restart else ""
    source = f"{row.source}, {row.sourcefile}" if row.sourcefile else row.source
    return f"{name}: asked {asked!r}, got {got} (from: {source}){pending}"
