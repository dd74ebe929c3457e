"""`plinth bench -b tpcc`: the tables and figures of the TPC-C-derived workload."""

from typing import TYPE_CHECKING, NamedTuple

from plinth.bench.failure import BenchFailure
from plinth.bench.tables import UNDEFINED_TABLE, TableInfo, answers_of_postgresql
from plinth.bench.tpcc_options import tpcc_workload
from plinth.model.tpcc_notice import (
    MOST_NOPM_PER_WAREHOUSE,
    NEW_ORDER,
    NOTICE,
    TpccConduct,
    deviations,
    efficiency,
    new_orders_per_minute,
)
from plinth.model.tpcc_tables import SEED_QUERY, TABLES, seed_in
from plinth.system.libpq import LibpqConnection, StatementError

if TYPE_CHECKING:
    from plinth.bench.options import BenchOptions
    from plinth.model.load import LoadResult

DESCRIPTION = "<builtin: TPC-C-derived>"
_SMALL_TABLES = ("warehouse", "district", "new_order")
_KEYS_AND_KIND = """
    select exists (select from pg_catalog.pg_constraint where conrelid = c.oid and contype = 'f'), c.relpersistence = 'u'
    from pg_catalog.pg_class c where c.oid = to_regclass('orders')
"""


class TpccTables(NamedTuple):
    """The tables that a run found."""

    warehouses: int
    seed: int
    foreign_keys: bool
    unlogged: bool

    @property
    def info(self) -> TableInfo:
        """Return the tables as the report takes them: the scale is the number of warehouses."""
        return TableInfo(self.warehouses)

    @property
    def variables(self) -> dict[str, str]:
        """Return what the transactions need to know of them."""
        return {"scale": str(self.warehouses), "warehouses": str(self.warehouses), "seed": str(self.seed)}


@answers_of_postgresql()
def read_warehouses(connection: LibpqConnection) -> TpccTables:
    """Read the facts of the run from the tables. Raises BenchFailure when they are missing or were not made by Plinth."""
    hint = f'Perhaps you need to do initialization ("plinth bench -i -b tpcc -s WAREHOUSES") in database "{connection.database}".'
    try:
        ((warehouses,),) = connection.execute("select count(*) from warehouse")
        ((foreign_keys, unlogged),) = connection.execute(_KEYS_AND_KIND)
    except StatementError as error:
        missing = error.sqlstate == UNDEFINED_TABLE
        raise BenchFailure(f"could not count the warehouses: {error}", hint=hint if missing else None) from error
    except ValueError as error:
        raise BenchFailure('there is no table "orders" next to "warehouse"', hint=hint) from error
    ((comment,),) = connection.execute(SEED_QUERY)
    seed = seed_in(comment)
    if seed is None:
        raise BenchFailure(
            "the table warehouse was not made by Plinth: its comment has no seed, on which the non-uniform random numbers depend",
            hint=hint,
        )
    if not int(warehouses or 0):
        raise BenchFailure("the table warehouse is empty", hint=hint)
    return TpccTables(int(warehouses or 0), seed, foreign_keys == "t", unlogged == "t")


def vacuums(*, everything: bool) -> list[str]:
    """Return the statements before a run: the small tables, whose rows are updated all the time; with -v all nine."""
    small = [f"vacuum {table}" for table in _SMALL_TABLES]
    return [*small, *(f"vacuum analyze {table.name}" for table in TABLES)] if everything else small


def nopm_of(result: "LoadResult") -> float | None:
    """Return the new orders committed per minute of the measured phase."""
    orders = next(one.measured for one in result.scripts if one.name == NEW_ORDER)
    return new_orders_per_minute(orders.done, orders.rolled_back, result.measured_ns)


def efficiency_of(asked: "BenchOptions", tables: TpccTables, result: "LoadResult") -> float | None:
    """Return NOPM as a fraction of the maximum that pacing allows; None without pacing."""
    nopm = nopm_of(result)
    return None if nopm is None or asked.tpcc_options.get("pacing") != "spec" else efficiency(nopm, tables.warehouses)


def deviations_of(asked: "BenchOptions", tables: TpccTables) -> tuple[str, ...]:
    """Return how the run differs from the specification, by its options and by what its tables are."""
    options = tpcc_workload(asked.tpcc_options)
    conduct = TpccConduct(
        clients=asked.clients,
        warehouses=tables.warehouses,
        mix=options.mix.weights(),
        isolation=options.isolation,
        home=options.home,
        remote_line_share=options.remote_line_share,
        remote_payment_share=options.remote_payment_share,
        rollback_share=options.rollback_share,
        measured_s=asked.time_s or None,
        foreign_keys=tables.foreign_keys,
        is_paced=options.pacing == "spec",
        is_delivery_deferred=options.delivery == "deferred",
        rate=asked.rate is not None,
        unlogged=tables.unlogged,
        checks=False,
    )
    return deviations(conduct)


def closing_lines(asked: "BenchOptions", tables: TpccTables, result: "LoadResult") -> list[str]:
    """Return the end of the report: NOPM, the notice and the deviations."""
    nopm, part = nopm_of(result), efficiency_of(asked, tables, result)
    figure = [] if nopm is None else [f"new orders per minute (NOPM) = {nopm:.3f}"]
    if part is not None:
        figure.append(f"efficiency = {part:.3%} of {MOST_NOPM_PER_WAREHOUSE} NOPM for each warehouse")
    return [*figure, NOTICE, *(f"deviation: {text}" for text in deviations_of(asked, tables))]


def figures(asked: "BenchOptions", tables: TpccTables, result: "LoadResult") -> dict[str, object]:
    """Return the figures for --json."""
    return {
        "warehouses": tables.warehouses,
        "nopm": nopm_of(result),
        "efficiency": efficiency_of(asked, tables, result),
        "notice": NOTICE,
        "deviations": list(deviations_of(asked, tables)),
    }
