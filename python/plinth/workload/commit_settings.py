"""Which durability settings the statements of scripts and functions set, by their text.

Only synchronous_commit can be set by a session for itself; the other settings that decide over acknowledged commits are changed by
ALTER SYSTEM, ALTER ROLE or ALTER DATABASE. Comments are left out; what is within quotations counts, since DO and EXECUTE run it. So a
statement that only mentions a setting in a text may be found, too: this errs on the side of a weaker grade.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from plinth.model.plan import ScriptText, TransactionText
from plinth.model.write_facts import DURABILITY_SETTINGS, SettingSeen
from plinth.workload.scripts import AUTOMATIC_VARIABLES

if TYPE_CHECKING:
    import psycopg

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = "|".join(DURABILITY_SETTINGS)
_VALUE = r"(?P<value>''[^']*''|'[^']*'|\"[^\"]*\"|:?[\w.]+)"
_SET = re.compile(
    rf"\bSET\s+(?:SESSION\s+|LOCAL\s+)?\"?(?P<name>{_NAME})\"?\s*(?:=|\bTO\b)\s*{_VALUE}",
    re.IGNORECASE,
)
_SET_CONFIG = re.compile(
    r"\bset_config\s*\(\s*(?:setting_name\s*(?::=|=>)\s*)?(?P<name>[^,()]+?)(?:::\w+)?\s*,"
    r"\s*(?:new_value\s*(?::=|=>)\s*)?(?P<value>[eE]?'+[^']*'+|[^,)]+?)(?:::\w+)?\s*,",
    re.IGNORECASE,
)
_ESCAPED_NAME = re.compile(r"\bSET\s+(?:SESSION\s+|LOCAL\s+)?U&\"[^\"]*\"\s*(?:=|\bTO\b)", re.IGNORECASE)
_ALTERS = re.compile(r"\bALTER\s+(?P<what>SYSTEM|DATABASE|ROLE|USER)\b", re.IGNORECASE)
_UPDATE_VIEW = re.compile(
    r"\bUPDATE\s+(?:pg_catalog\.)?pg_settings\s+SET\s+setting\s*=\s*(?P<value>'+[^']*'+|[^\s;]+)(?P<rest>[^;]*)",
    re.IGNORECASE,
)
_FUNCTIONS = r"""
    SELECT regexp_replace(p.oid::regprocedure::text, '^public\.', ''), p.proname::text, p.prosrc, coalesce(p.proconfig, '{}'),
           EXISTS (SELECT FROM pg_trigger t WHERE t.tgfoid = p.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D')
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_temp%'
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
    ORDER BY 1
"""


class _Assignment(NamedTuple):
    name: str
    value: str | None
    text: str


def settings_of_scripts(scripts: Iterable[TransactionText], variables: Iterable[str] = ()) -> list[SettingSeen]:
    """Return the durability settings that scripts set; `variables` are those that are set from outside.

    A setting whose name is an expression counts as synchronous_commit, whose value is then not known.
    """
    from plinth._native import parse_script

    names = [*dict.fromkeys([*AUTOMATIC_VARIABLES, *variables])]
    found: list[SettingSeen] = []
    for script in scripts:
        if not isinstance(script, ScriptText):
            continue
        for statement in json.loads(parse_script(script.name, script.source, names))["statements"]:
            found += _seen(statement["text"], f"script {script.name}", certain=True)
    return list(dict.fromkeys(found))


def settings_of_functions(control: "psycopg.Connection", scripts: Iterable[TransactionText]) -> list[SettingSeen]:
    """Return the durability settings that functions of the database set, by their SET clauses and their text.

    It is certain of functions whose name a script mentions, and of those of triggers; whether the load calls others is not known.
    Raises psycopg.Error.
    """
    texts = " ".join(script.source for script in scripts if isinstance(script, ScriptText)).lower()
    found: list[SettingSeen] = []
    for signature, name, source, config, of_trigger in control.execute(_FUNCTIONS.encode()).fetchall():
        certain = of_trigger or re.search(rf"\b{re.escape(name.lower())}\b", texts) is not None
        for option in config:
            setting, _, value = option.partition("=")
            if setting.lower() in DURABILITY_SETTINGS:
                where = f"function {signature}: SET {setting} = {value}"
                found.append(SettingSeen(name=setting.lower(), value=value, where=where, certain=certain))
        found += _seen(source or "", f"function {signature}", certain=certain)
    return found


def settings_of_actions(actions: Iterable[str], *, reconnects: bool) -> list[SettingSeen]:
    """Return the durability settings that SQL of actions changes for the load's sessions while it runs.

    A reading before or after the load may miss them. What ALTER DATABASE and ALTER ROLE set applies to new sessions only:
    `reconnects` says that each transaction begins one.
    """
    found: list[SettingSeen] = []
    for sql in actions:
        for statement in _COMMENT.sub(" ", sql).split(";"):
            if altered := _ALTERS.search(statement):
                certain = reconnects or altered["what"].upper() == "SYSTEM"
                found += _seen(statement, "an action", certain=certain)
    return list(dict.fromkeys(found))


def _seen(text: str, where: str, *, certain: bool) -> Iterator[SettingSeen]:
    for name, value, statement in _assignments(_COMMENT.sub(" ", text)):
        yield SettingSeen(name=name, value=value, where=f"{where}: {' '.join(statement.split())}", certain=certain)


def _assignments(text: str) -> Iterator[_Assignment]:
    for match in _SET.finditer(text):
        value = _literal(match["value"])
        if value is None or value.lower() != "default":  # as the session began, which is read back
            yield _Assignment(match["name"].lower(), value, match[0])
    for match in _ESCAPED_NAME.finditer(text):
        yield _Assignment("synchronous_commit", None, match[0])
    for match in _SET_CONFIG.finditer(text):
        name = _literal(match["name"])
        if name is None:
            yield _Assignment("synchronous_commit", None, match[0].rstrip(", ") + ", ...)")
        elif name.lower() in DURABILITY_SETTINGS:
            yield _Assignment(name.lower(), _literal(match["value"]), match[0].rstrip(", ") + ", ...)")
    for match in _UPDATE_VIEW.finditer(text):
        named = [name for name in DURABILITY_SETTINGS if name in match["rest"].lower()]
        for name in named:
            yield _Assignment(name, _literal(match["value"]), match[0])


def _literal(text: str) -> str | None:
    """Return the value of a literal or a bare word; None of a variable or an expression."""
    text = text.strip()
    if match := re.fullmatch(r"[eE]?('+|\")(?P<inside>[^'\"]*)('+|\")", text):
        return match["inside"]
    return text if re.fullmatch(r"\w+", text) and not text.startswith("$") else None
