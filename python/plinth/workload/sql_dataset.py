"""Tables of the user's own, made and filled by SQL files."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from plinth.model.dataset import SqlDataset
from plinth.model.errors import RunError
from plinth.model.plan import DatasetSize
from plinth.model.progress import Progress, Report
from plinth.model.step import Step
from plinth.system.full import full_hint
from plinth.workload.bulk import COPY_BYTES_PER_S
from plinth.workload.dataset import Dataset, DatasetServer, numbers_of
from plinth.workload.sql_text import Statement, statements_of

if TYPE_CHECKING:
    import psycopg

_LOADING = ("schema", "load", "after_load")
_TITLES = {"schema": "make the tables", "load": "fill the tables", "after_load": "after the load"}
_MAKES_AT_HOME = "public"
"""The schema of a server that is ours; elsewhere we have one of our own, which goes with the run."""
_OURS = "relkind IN ('r', 'p', 'm') AND relnamespace = current_schema()::regnamespace AND NOT relispartition"
_ELSEWHERE = """\
SELECT c.oid, format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'm', 'v', 'S', 'f') AND n.nspname <> current_schema() AND n.nspname !~ '^pg_'
AND c.relowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)"""


class Sql(Dataset):
    """What the SQL files of one specification make; `files` has their texts by path as written."""

    def __init__(self, spec: SqlDataset, files: Mapping[str, str]) -> None:
        self.spec = spec
        self._files = files

    def size(self) -> DatasetSize:
        """Return the size as given by the user; 0 where none was given."""
        return DatasetSize(self.spec.size_bytes or 0, 0)

    def populate_s(self) -> float:
        """Estimate by its size."""
        return 0.5 + self.size().total_bytes / COPY_BYTES_PER_S

    def variables(self) -> dict[str, str]:
        """Return the variables of the SQL files."""
        return self.spec.all_variables()

    def steps(self) -> list[Step]:
        """Return a step a file, vacuum, count. Raises UsageError for a file that cannot be run."""
        self._statements("before_trial")
        steps = [
            Step(id=f"dataset.{key}.{number}", title=f"{_TITLES[key]}: {file}, {_counted(list(statements))}")
            for key in _LOADING
            for number, (file, statements) in enumerate(
                groupby(self._statements(key), key=lambda statement: statement.file), start=1
            )
        ]
        steps.append(Step(id="dataset.vacuum", title="VACUUM ANALYZE the tables"))
        if self.spec.checks:
            steps.append(Step(id="dataset.count", title=f"count the rows of {', '.join(self.spec.checks)}"))
        return steps

    def populate(self, server: DatasetServer, report: Report) -> None:
        """Run the files, vacuum, and verify the counts. Raises RunError with file and line of what failed."""
        control = server.control
        theirs = self._objects_outside_schema(control)
        for key in _LOADING:
            statements = self._statements(key)
            for number, statement in enumerate(statements):
                report(Progress(_TITLES[key], number, len(statements), "statements", statement.title))
                _execute(control, statement)
            report(Progress(_TITLES[key], len(statements), len(statements), "statements"))
        if control.info.transaction_status:
            last = [file for key in _LOADING for file in self.spec.files(key)][-1]
            raise RunError("the SQL files leave a transaction open", where=last, hint="end it with COMMIT")
        control.execute("RESET ALL")  # a dump empties search_path
        if made := self._objects_outside_schema(control).items() - theirs.items():
            names = ", ".join(sorted(name for _, name in made))
            raise RunError(
                f"made outside of the schema that goes with this run, and so left behind: {names}",
                where="dataset.schema, dataset.load",
                hint="leave out names of schemas: on an external server all objects are made in Plinth's schema; drop these by hand",
            )
        for number, table in enumerate(tables := _tables(control)):
            report(Progress("vacuum", number, len(tables), "tables", table))
            control.execute(f"VACUUM ANALYZE {table}".encode())
        self._verify(control)

    def before_trial(self, control: "psycopg.Connection") -> dict[str, int]:
        """Run the files for it, and remove dead rows of earlier trials; all else that scripts did stays."""
        for statement in self._statements("before_trial"):
            _execute(control, statement)
        control.execute("RESET ALL")
        if self.spec.vacuum:
            for table in _tables(control):
                control.execute(f"VACUUM {table}".encode())
        return {}

    def _statements(self, key: str) -> list[Statement]:
        variables = self.spec.all_variables()
        return [
            statement
            for file in self.spec.files(key)
            for statement in statements_of(file, self._files[file], variables)
        ]

    def _verify(self, control: "psycopg.Connection") -> None:
        import psycopg

        for table, expected in self.spec.checks.items():
            where = f"dataset.checks.{table}"
            wanted, *more = statements_of(where, f"SELECT ({expected})::bigint", self.spec.all_variables())
            if more:
                raise RunError(f"the check is several statements, not an expression: {expected}", where=where)
            try:
                (rows,) = numbers_of(control, wanted.text)
                (count,) = numbers_of(control, f"SELECT count(*) FROM {_found(control, table, where)}")
            except psycopg.Error as error:
                raise RunError(f"the check cannot be made: {_first_line(error)}", where=where) from error
            if count != rows:
                raise RunError(f"{table} has {count:,} rows after the load instead of {rows:,}", where=where)

    def _objects_outside_schema(self, control: "psycopg.Connection") -> dict[int, str]:
        """Return the objects of ours outside of the schema that is dropped with the run; none where the whole cluster is
        removed."""
        (schema,) = _column(control, "SELECT current_schema()")
        return {} if schema == _MAKES_AT_HOME else dict(control.execute(_ELSEWHERE.encode()).fetchall())


def _execute(control: "psycopg.Connection", statement: Statement) -> None:
    import psycopg

    try:
        if statement.rows is None:
            control.execute(statement.text.encode(), prepare=False)
        else:
            with control.cursor().copy(statement.text.encode()) as copy:
                copy.write(statement.rows.encode())
    except psycopg.Error as error:
        raise _failure(error, statement) from error


def _failure(error: "psycopg.Error", statement: Statement) -> RunError:
    """Return the failure with the line that the server means, or else the first line of the statement."""
    position = int(error.diag.statement_position or 1)
    line = statement.line + statement.text.count("\n", 0, position - 1)
    state = f" (SQLSTATE {error.sqlstate})" if error.sqlstate else ""
    further = (error.diag.message_detail, error.diag.context)
    return RunError(
        f"the SQL failed: {_first_line(error)}{state}",
        where=f"{statement.file}:{line}",
        hint=full_hint(error.sqlstate, _first_line(error)) or error.diag.message_hint,
        details=[f"in the statement: {statement.title}", *(part for part in further if part)],
    )


def _first_line(error: "psycopg.Error") -> str:
    return error.diag.message_primary or str(error).strip().partition("\n")[0]


def _found(control: "psycopg.Connection", table: str, where: str) -> str:
    """Return the table's name as the server writes it. Raises RunError when there is none."""
    (name,) = _column(control, "SELECT to_regclass(%s)::text", [table])
    if name is None:
        raise RunError(f"there is no table {table} after the load", where=where)
    return name


def _tables(control: "psycopg.Connection") -> list[str]:
    """Return the tables that the files have made, as far as they are in our schema."""
    return _column(control, f"SELECT oid::regclass::text FROM pg_class WHERE {_OURS} ORDER BY 1")


def _column(control: "psycopg.Connection", query: str, values: Iterable[object] = ()) -> list[Any]:
    rows = control.execute(query.encode(), list(values) or None).fetchall()
    return [value for (value,) in rows]


def _counted(statements: list[Statement]) -> str:
    return f"{len(statements)} statement{'s' * (len(statements) != 1)}"
