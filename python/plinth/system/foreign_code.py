"""Tables by which a query of ours would run what others have made, with the rights of a superuser.

To plan any query of a table the server evaluates the predicates of its indexes, and its extended statistics, as far as they are constant,
as the role that asks. amcheck, REINDEX, ANALYZE and VACUUM evaluate them as the owner of the table, in an operation that is restricted
for its safety.
"""

NOT_READ = "an index or statistics of it call what a role without rights of a superuser has made"
"""Why such a table is not read."""


def calls_code_of_others(table: str) -> str:
    """Return the condition in SQL that an index or statistics of a table, whose oid is the expression `table`, depend on a function, an
    operator, a type or a cast of a role that is no superuser."""
    return f"""\
EXISTS (
  SELECT FROM pg_catalog.pg_depend d
  LEFT JOIN pg_catalog.pg_proc f ON d.refclassid = 'pg_catalog.pg_proc'::regclass AND f.oid = d.refobjid
  LEFT JOIN pg_catalog.pg_operator o ON d.refclassid = 'pg_catalog.pg_operator'::regclass AND o.oid = d.refobjid
  LEFT JOIN pg_catalog.pg_type t ON d.refclassid = 'pg_catalog.pg_type'::regclass AND t.oid = d.refobjid
  LEFT JOIN pg_catalog.pg_cast c ON d.refclassid = 'pg_catalog.pg_cast'::regclass AND c.oid = d.refobjid
  LEFT JOIN pg_catalog.pg_proc cf ON cf.oid = c.castfunc
  JOIN pg_catalog.pg_roles r ON r.oid = coalesce(f.proowner, o.oprowner, t.typowner, cf.proowner)
  WHERE NOT r.rolsuper AND (
    d.classid = 'pg_catalog.pg_class'::regclass
    AND d.objid IN (SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid = {table})
    OR d.classid = 'pg_catalog.pg_statistic_ext'::regclass
    AND d.objid IN (SELECT oid FROM pg_catalog.pg_statistic_ext WHERE stxrelid = {table})))"""
