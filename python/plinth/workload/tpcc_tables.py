"""The nine tables of the TPC-C-derived workload: columns, keys and foreign keys, in the order of crates/bulk/src/tpcc."""

from typing import NamedTuple

from plinth.model.dataset import TpccDataset
from plinth.workload.part import Part

ITEMS = 100_000
DISTRICTS = 10
CUSTOMERS = 3_000
UNDELIVERED = 900

_ADDRESS = """\
{0}_street_1 varchar(20) NOT NULL, {0}_street_2 varchar(20) NOT NULL, {0}_city varchar(20) NOT NULL, \
{0}_state char(2) NOT NULL, {0}_zip char(9) NOT NULL"""
_DISTRICTS_STOCK = ", ".join(f"s_dist_{number:02} char(24) NOT NULL" for number in range(1, DISTRICTS + 1))


class TpccTable(NamedTuple):
    """A table, as one warehouse has it."""

    name: str
    columns: str
    key: str | None
    row_bytes: int
    """The approximate size of a row in its table."""


TABLES = (
    TpccTable(
        "warehouse",
        f"w_id int NOT NULL, w_name varchar(10) NOT NULL, {_ADDRESS.format('w')}, w_tax numeric(4,4) NOT NULL, "
        "w_ytd numeric(12,2) NOT NULL",
        "w_id",
        130,
    ),
    TpccTable(
        "district",
        f"d_w_id int NOT NULL, d_id int NOT NULL, d_name varchar(10) NOT NULL, {_ADDRESS.format('d')}, "
        "d_tax numeric(4,4) NOT NULL, d_ytd numeric(12,2) NOT NULL, d_next_o_id int NOT NULL",
        "d_w_id, d_id",
        135,
    ),
    TpccTable(
        "item",
        "i_id int NOT NULL, i_im_id int NOT NULL, i_name varchar(24) NOT NULL, i_price numeric(5,2) NOT NULL, "
        "i_data varchar(50) NOT NULL",
        "i_id",
        107,
    ),
    TpccTable(
        "customer",
        # By bytes, as the specification orders names, and so in every locale alike.
        'c_w_id int NOT NULL, c_d_id int NOT NULL, c_id int NOT NULL, c_first varchar(16) COLLATE "C" NOT NULL, '
        f'c_middle char(2) NOT NULL, c_last varchar(16) COLLATE "C" NOT NULL, {_ADDRESS.format("c")}, '
        "c_phone char(16) NOT NULL, c_since timestamp NOT NULL, c_credit char(2) NOT NULL, "
        "c_credit_lim numeric(12,2) NOT NULL, c_discount numeric(4,4) NOT NULL, c_balance numeric(12,2) NOT NULL, "
        "c_ytd_payment numeric(12,2) NOT NULL, c_payment_cnt int NOT NULL, c_delivery_cnt int NOT NULL, "
        "c_data varchar(500) NOT NULL",
        "c_w_id, c_d_id, c_id",
        620,
    ),
    TpccTable(
        "history",
        "h_c_id int NOT NULL, h_c_d_id int NOT NULL, h_c_w_id int NOT NULL, h_d_id int NOT NULL, h_w_id int NOT NULL, "
        "h_date timestamp NOT NULL, h_amount numeric(6,2) NOT NULL, h_data varchar(24) NOT NULL",
        None,
        90,
    ),
    TpccTable(
        "orders",
        "o_w_id int NOT NULL, o_d_id int NOT NULL, o_id int NOT NULL, o_c_id int NOT NULL, o_carrier_id smallint, "
        "o_ol_cnt smallint NOT NULL, o_all_local smallint NOT NULL, o_entry_d timestamp NOT NULL",
        "o_w_id, o_d_id, o_id",
        62,
    ),
    TpccTable(
        "new_order",
        "no_w_id int NOT NULL, no_d_id int NOT NULL, no_o_id int NOT NULL",
        "no_w_id, no_d_id, no_o_id",
        48,
    ),
    TpccTable(
        "order_line",
        "ol_w_id int NOT NULL, ol_d_id int NOT NULL, ol_o_id int NOT NULL, ol_number int NOT NULL, ol_i_id int NOT NULL, "
        "ol_supply_w_id int NOT NULL, ol_delivery_d timestamp, ol_quantity smallint NOT NULL, "
        "ol_amount numeric(6,2) NOT NULL, ol_dist_info char(24) NOT NULL",
        "ol_w_id, ol_d_id, ol_o_id, ol_number",
        96,
    ),
    TpccTable(
        "stock",
        "s_w_id int NOT NULL, s_i_id int NOT NULL, s_quantity smallint NOT NULL, s_ytd int NOT NULL, "
        f"s_order_cnt int NOT NULL, s_remote_cnt int NOT NULL, {_DISTRICTS_STOCK}, s_data varchar(50) NOT NULL",
        "s_w_id, s_i_id",
        357,
    ),
)
"""In the order in which the loader numbers them."""

_INDEXES = (
    ("orders_by_customer", "UNIQUE INDEX", "orders (o_w_id, o_d_id, o_c_id, o_id)"),
    ("customer_by_name", "INDEX", "customer (c_w_id, c_d_id, c_last, c_first)"),
)
_FOREIGN_KEYS = (
    ("order_line (ol_supply_w_id, ol_i_id)", "stock"),
    ("order_line (ol_w_id, ol_d_id, ol_o_id)", "orders"),
    ("stock (s_w_id)", "warehouse"),
    ("stock (s_i_id)", "item"),
    ("orders (o_w_id, o_d_id, o_c_id)", "customer"),
    ("new_order (no_w_id, no_d_id, no_o_id)", "orders"),
    ("history (h_c_w_id, h_c_d_id, h_c_id)", "customer"),
    ("history (h_w_id, h_d_id)", "district"),
    ("customer (c_w_id, c_d_id)", "district"),
    ("district (d_w_id)", "warehouse"),
)
"""Clause 1.3.1, the largest first."""


def rows_of(warehouses: int, order_lines: int) -> dict[str, int]:
    """The rows of each table, in the loader's order."""
    orders = warehouses * DISTRICTS * CUSTOMERS
    return {
        "warehouse": warehouses,
        "district": warehouses * DISTRICTS,
        "item": ITEMS,
        "customer": orders,
        "history": orders,
        "orders": orders,
        "new_order": warehouses * DISTRICTS * UNDELIVERED,
        "order_line": order_lines,
        "stock": warehouses * ITEMS,
    }


def creating(spec: TpccDataset) -> list[str]:
    """The statements that make the tables."""
    place = "" if spec.tablespace is None else f' TABLESPACE "{spec.tablespace}"'
    kind, fill = spec.kind_of_table, spec.fillfactor
    return [f"CREATE {kind} {table.name}({table.columns}) WITH (fillfactor={fill}){place}" for table in TABLES]


def parts(rows: dict[str, int], fillfactor: int) -> tuple[Part, ...]:
    """What is copied. The tables that take longest come first, so that streams end together."""
    all_parts = [
        Part(table.name, number, 0, rows[table.name], row_bytes=table.row_bytes * 100 / fillfactor)
        for number, table in enumerate(TABLES)
    ]
    return tuple(sorted(all_parts, key=lambda part: -part.rows * (part.row_bytes or 0)))


def keys(spec: TpccDataset, rows: dict[str, int]) -> tuple[tuple[str, ...], ...]:
    """The statements that make keys, indexes and foreign keys, in stages."""
    place = "" if spec.index_tablespace is None else f' USING INDEX TABLESPACE "{spec.index_tablespace}"'
    index_place = "" if spec.index_tablespace is None else f' TABLESPACE "{spec.index_tablespace}"'
    ordered = sorted(TABLES, key=lambda table: -rows[table.name])
    primary = tuple(
        f"ALTER TABLE {table.name} ADD PRIMARY KEY ({table.key}){place}" for table in ordered if table.key is not None
    )
    secondary = tuple(f"CREATE {kind} {name} ON {columns}{index_place}" for name, kind, columns in _INDEXES)
    foreign = tuple(
        f"ALTER TABLE {table} ADD FOREIGN KEY ({columns} REFERENCES {other}"
        for referencing, other in _FOREIGN_KEYS
        for table, columns in [referencing.split(" (")]
    )
    return (primary, secondary, *([foreign] if spec.foreign_keys else []))
