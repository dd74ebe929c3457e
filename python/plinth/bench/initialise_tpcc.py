"""`plinth bench -i -b tpcc`: the tables of the TPC-C-derived workload, made in the steps of -I."""

from typing import TYPE_CHECKING, TextIO

from plinth._native import tpcc_procedures
from plinth.bench.initialise import Initialisation
from plinth.bench.options import BenchOptions
from plinth.model.generator import Generator, TpccGenerator
from plinth.model.tpcc_tables import TABLES, TpccSchema
from plinth.system.libpq import LibpqConnection

if TYPE_CHECKING:
    from plinth.model.connection import Connection

_SEED = 1
"""The default of experiments: what both load is the same."""


class TpccInitialisation(Initialisation):
    """The steps of the nine tables; primary keys come with the other indexes."""

    tables = ("customer", *(table.name for table in TABLES if table.name != "customer"))

    def __init__(self, asked: BenchOptions, connection: LibpqConnection, target: "Connection", stderr: TextIO) -> None:
        super().__init__(asked, connection, target, stderr)
        self._schema = TpccSchema(
            asked.scale,
            _SEED,
            kind_of_table="UNLOGGED TABLE" if asked.unlogged_tables else "TABLE",
            fillfactor=asked.fillfactor,
            tablespace=None if asked.tablespace is None else self._identifier(asked.tablespace),
            index_tablespace=None if asked.index_tablespace is None else self._identifier(asked.index_tablespace),
            partitions=asked.partitions,
            partition_method=asked.partition_method or "range",
        )

    def _create(self) -> None:
        self._say("creating tables...")
        if self._asked.partitions:
            self._say(f"creating {self._asked.partitions} partitions of each large table...")
        for statement in [*self._schema.create(), *tpcc_procedures()]:
            self._execute(statement)

    def _generator(self) -> Generator:
        return TpccGenerator(self._asked.scale, _SEED)

    def _print_rows(self, state: dict[str, int], elapsed_s: float) -> None:
        self._print_share("the nine tables", state["rows_done"], state["rows_total"], elapsed_s)

    def _vacuum(self) -> None:
        self._say("vacuuming...")
        for table in self.tables:
            self._execute(f"vacuum analyze {table}")

    def _primary_keys(self) -> None:
        self._say("creating primary keys and indexes...")
        for stage in self._schema.index_stages():
            for statement in stage:
                self._execute(statement)

    def _foreign_keys(self) -> None:
        self._say("creating foreign keys...")
        for statement in self._schema.foreign_keys():
            self._execute(statement)
