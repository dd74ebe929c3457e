"""Durability settings that statements of scripts and functions set."""

import pytest

from plinth.model.plan import ScriptText
from plinth.workload.commit_settings import settings_of_actions, settings_of_scripts

COMMIT, FSYNC = "synchronous_commit", "fsync"


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("SET LOCAL synchronous_commit = off", [(COMMIT, "off")]),
        ("set session synchronous_commit to 'off'", [(COMMIT, "off")]),
        ('SET "synchronous_commit" TO local', [(COMMIT, "local")]),
        ("SET /* for speed */ LOCAL\n synchronous_commit = -- really\n off", [(COMMIT, "off")]),
        ("SET synchronous_commit = DEFAULT", []),
        ("SET synchronous_commit = :level", [(COMMIT, None)]),
        ("SET LOCAL work_mem = '1MB'", []),
        ("SELECT 1\\; SET synchronous_commit = off\\; SELECT 2", [(COMMIT, "off")]),
        ("SELECT set_config('synchronous_commit', 'off', true)", [(COMMIT, "off")]),
        ("SELECT pg_catalog.set_config ( E'Synchronous_Commit' , 'local', false)", [(COMMIT, "local")]),
        ("SELECT set_config('synchronous_commit', :'level', true)", [(COMMIT, None)]),
        ("SELECT set_config('synchronous_' || 'commit', 'off', true)", [(COMMIT, None)]),
        ("SELECT set_config(setting_name => 'synchronous_commit', new_value => 'off', is_local => true)", [(COMMIT, "off")]),
        ("SELECT set_config('work_mem', '1MB', true)", []),
        ("SELECT set_config('synchronous_commit'::text, 'off'::text, true)", [(COMMIT, "off")]),
        ("UPDATE pg_settings SET setting = 'off' WHERE name = 'synchronous_commit'", [(COMMIT, "off")]),
        ("ALTER SYSTEM SET fsync = off", [(FSYNC, "off")]),
        ("ALTER ROLE CURRENT_USER SET synchronous_commit TO off", [(COMMIT, "off")]),
        ("ALTER DATABASE plinth SET synchronous_commit = 'local'", [(COMMIT, "local")]),
        ("DO $$ BEGIN SET LOCAL synchronous_commit = off; END $$", [(COMMIT, "off")]),
        ("DO $$ BEGIN EXECUTE 'SET LOCAL synchronous_commit = ''off'''; END $$", [(COMMIT, "off")]),
        ('SET U&"synchronous\\005fcommit" = off', [(COMMIT, None)]),
        ("SELECT 1 -- SET synchronous_commit = off", []),
        ("SELECT synchronous_commit FROM notes", []),
    ],
)  # fmt: skip
def test_what_a_statement_sets(statement: str, found: list[tuple[str, str | None]]) -> None:
    script = ScriptText(name="x.sql", source=f"\\set level 1\nBEGIN;\n{statement};\nCOMMIT;\n", weight=1)
    seen = settings_of_scripts([script])
    assert [(one.name, one.value) for one in seen] == found
    assert all(one.where.startswith("script x.sql: ") and one.certain for one in seen)


@pytest.mark.parametrize(
    ("sql", "reconnects", "found"),
    [
        ("ALTER SYSTEM SET fsync = off", False, [(FSYNC, "off", True)]),
        ("ALTER SYSTEM SET synchronous_commit TO 'off'; SELECT 1", False, [(COMMIT, "off", True)]),
        ("ALTER DATABASE plinth SET synchronous_commit = off", False, [(COMMIT, "off", False)]),
        ("ALTER ROLE ALL SET synchronous_commit = off", True, [(COMMIT, "off", True)]),
        ("SET synchronous_commit = off; DELETE FROM old", False, []),  # of the action's own session
        ("ALTER TABLE t SET (fillfactor = 90)", False, []),
    ],
)
def test_what_an_action_changes_for_the_loads_sessions(
    sql: str, reconnects: bool, found: list[tuple[str, str, bool]]
) -> None:
    seen = settings_of_actions([sql], reconnects=reconnects)
    assert [(one.name, one.value, one.certain) for one in seen] == found
