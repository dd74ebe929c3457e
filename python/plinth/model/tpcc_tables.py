"""The nine tables of the TPC-C-derived workload: columns, keys, partitions and foreign keys, in the order of crates/bulk/src/tpcc.

Free of pydantic, which `plinth bench -i` must not wait for.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

ITEMS = 100_000
DISTRICTS = 10
CUSTOMERS = 3_000
UNDELIVERED = 900
_LINES_PER_WAREHOUSE = 300_000

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
    partitioned_by: str | None = None
    """The column of the warehouse, of tables that may have partitions."""


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
        "c_w_id",
    ),
    TpccTable(
        "history",
        "h_c_id int NOT NULL, h_c_d_id int NOT NULL, h_c_w_id int NOT NULL, h_d_id int NOT NULL, h_w_id int NOT NULL, "
        "h_date timestamp NOT NULL, h_amount numeric(6,2) NOT NULL, h_data varchar(24) NOT NULL",
        None,
        90,
        "h_w_id",
    ),
    TpccTable(
        "orders",
        "o_w_id int NOT NULL, o_d_id int NOT NULL, o_id int NOT NULL, o_c_id int NOT NULL, o_carrier_id smallint, "
        "o_ol_cnt smallint NOT NULL, o_all_local smallint NOT NULL, o_entry_d timestamp NOT NULL",
        "o_w_id, o_d_id, o_id",
        62,
        "o_w_id",
    ),
    TpccTable(
        "new_order",
        "no_w_id int NOT NULL, no_d_id int NOT NULL, no_o_id int NOT NULL",
        "no_w_id, no_d_id, no_o_id",
        48,
        "no_w_id",
    ),
    TpccTable(
        "order_line",
        "ol_w_id int NOT NULL, ol_d_id int NOT NULL, ol_o_id int NOT NULL, ol_number int NOT NULL, ol_i_id int NOT NULL, "
        "ol_supply_w_id int NOT NULL, ol_delivery_d timestamp, ol_quantity smallint NOT NULL, "
        "ol_amount numeric(6,2) NOT NULL, ol_dist_info char(24) NOT NULL",
        "ol_w_id, ol_d_id, ol_o_id, ol_number",
        96,
        "ol_w_id",
    ),
    TpccTable(
        "stock",
        "s_w_id int NOT NULL, s_i_id int NOT NULL, s_quantity smallint NOT NULL, s_ytd int NOT NULL, "
        f"s_order_cnt int NOT NULL, s_remote_cnt int NOT NULL, {_DISTRICTS_STOCK}, s_data varchar(50) NOT NULL",
        "s_w_id, s_i_id",
        357,
        "s_w_id",
    ),
)
"""In the order in which the loader numbers them."""


class TpccIndex(NamedTuple):
    """A secondary index."""

    name: str
    kind: str
    table: str
    columns: str


INDEXES = (
    TpccIndex("orders_by_customer", "UNIQUE INDEX", "orders", "o_w_id, o_d_id, o_c_id, o_id"),
    TpccIndex("customer_by_name", "INDEX", "customer", "c_w_id, c_d_id, c_last, c_first"),
)
FOREIGN_KEYS = (
    ("order_line", "ol_supply_w_id, ol_i_id", "stock"),
    ("order_line", "ol_w_id, ol_d_id, ol_o_id", "orders"),
    ("stock", "s_w_id", "warehouse"),
    ("stock", "s_i_id", "item"),
    ("orders", "o_w_id, o_d_id, o_c_id", "customer"),
    ("new_order", "no_w_id, no_d_id, no_o_id", "orders"),
    ("history", "h_c_w_id, h_c_d_id, h_c_id", "customer"),
    ("history", "h_w_id, h_d_id", "district"),
    ("customer", "c_w_id, c_d_id", "district"),
    ("district", "d_w_id", "warehouse"),
)
"""Clause 1.3.1, the largest first: table, columns, the table whose key they are."""
_SEED = re.compile(r"TPC-C-derived workload of Plinth, seed (\d+)")
SEED_QUERY = "SELECT obj_description(to_regclass('warehouse'), 'pg_class')"
"""The comment of the table warehouse, which `seed_in` reads."""


def seed_comment(seed: int) -> str:
    """Return the comment of the table warehouse: of the seed the constants of NURand are functions, which every run has to use."""
    return f"TPC-C-derived workload of Plinth, seed {seed}"


def seed_in(comment: str | None) -> int | None:
    """Return the seed in the comment of the table warehouse; None of tables that Plinth has not made."""
    found = None if comment is None else _SEED.fullmatch(comment)
    return None if found is None else int(found[1])


class TpccPart(NamedTuple):
    """A table, or a partition of one: its rows are those of table `number` from `first_row` on."""

    name: str
    number: int
    first_row: int
    rows: int
    row_bytes: float


@dataclass(frozen=True)
class TpccSchema:
    """What is made for `warehouses`. Names of tablespaces are as SQL has them."""

    warehouses: int
    seed: int
    kind_of_table: str = "TABLE"
    fillfactor: int = 100
    tablespace: str | None = None
    index_tablespace: str | None = None
    partitions: int = 0
    partition_method: str = "range"

    def bounds(self) -> tuple[int, ...]:
        """Return how many warehouses there are before each partition, and at the end all; of whole tables 0 and all."""
        partitions = max(1, self.partitions)
        return tuple(self.warehouses * number // partitions for number in range(partitions + 1))

    def create(self) -> list[str]:
        """Return the statements that make the tables, and write the seed down."""
        place = "" if self.tablespace is None else f" TABLESPACE {self.tablespace}"
        storage = f" WITH (fillfactor={self.fillfactor}){place}"
        statements: list[str] = []
        for table in TABLES:
            if not self._is_partitioned(table):
                statements.append(f"CREATE {self.kind_of_table} {table.name}({table.columns}){storage}")
                continue
            by = f"PARTITION BY {self.partition_method.upper()} ({table.partitioned_by})"
            statements.append(f"CREATE TABLE {table.name}({table.columns}) {by}{place}")
            statements += (
                f"CREATE {self.kind_of_table} {name} PARTITION OF {table.name} FOR VALUES {self._values(number)}{storage}"
                for number, name in enumerate(self._names(table))
            )
        return [*statements, f"COMMENT ON TABLE warehouse IS '{seed_comment(self.seed)}'"]

    def parts(self, order_lines: tuple[int, ...]) -> tuple[TpccPart, ...]:
        """Return what holds rows, with ranges as partitions; `order_lines` has the lines of so many warehouses as `bounds` has.

        Those that take longest come first, so that streams end together.
        """
        parts: list[TpccPart] = []
        for number, table in enumerate(TABLES):
            row_bytes = table.row_bytes * 100 / self.fillfactor
            firsts = [
                _rows_before(table.name, bound, lines) for bound, lines in zip(self.bounds(), order_lines, strict=True)
            ]
            if not self._is_partitioned(table):
                firsts = [0, firsts[-1]]
            for name, first, end in zip(self._names(table), firsts, firsts[1:], strict=False):
                parts.append(TpccPart(name, number, first, end - first, row_bytes))
        return tuple(sorted(parts, key=lambda part: -part.rows * part.row_bytes))

    def index_stages(self) -> tuple[tuple[str, ...], ...]:
        """Return the statements that make primary keys, and then those of other indexes, in stages. What partitions have becomes the
        table's."""
        place = "" if self.index_tablespace is None else f" USING INDEX TABLESPACE {self.index_tablespace}"
        stages: list[list[str]] = [[], [], [], []]
        for table in self._largest_first():
            if table.key is None:
                continue
            add = f"ADD PRIMARY KEY ({table.key}){place}"
            stages[0] += (f"ALTER TABLE {name} {add}" for name in self._names(table))
            if self._is_partitioned(table):
                stages[1].append(f"ALTER TABLE {table.name} {add}")
        place = "" if self.index_tablespace is None else f" TABLESPACE {self.index_tablespace}"
        for index in INDEXES:
            table = next(table for table in TABLES if table.name == index.table)
            if self._is_partitioned(table):
                for number, name in enumerate(self._names(table), 1):
                    stages[2].append(f"CREATE {index.kind} {index.name}_{number} ON {name} ({index.columns}){place}")
                stages[3].append(f"CREATE {index.kind} {index.name} ON {table.name} ({index.columns}){place}")
            else:
                stages[2].append(f"CREATE {index.kind} {index.name} ON {table.name} ({index.columns}){place}")
        return tuple(tuple(stage) for stage in stages if stage)

    def foreign_keys(self) -> tuple[str, ...]:
        """Return the statements that make them. They check all rows, once the keys are there."""
        return tuple(
            f"ALTER TABLE {table} ADD FOREIGN KEY ({columns}) REFERENCES {other}"
            for table, columns, other in FOREIGN_KEYS
        )

    def _largest_first(self) -> list[TpccTable]:
        rows = rows_of(self.warehouses, self.warehouses * _LINES_PER_WAREHOUSE)
        return sorted(TABLES, key=lambda table: -rows[table.name])

    def _is_partitioned(self, table: TpccTable) -> bool:
        return self.partitions > 0 and table.partitioned_by is not None

    def _names(self, table: TpccTable) -> list[str]:
        if not self._is_partitioned(table):
            return [table.name]
        return [f"{table.name}_{number}" for number in range(1, self.partitions + 1)]

    def _values(self, number: int) -> str:
        """Return the values of a partition; ranges are open at both ends, so that any warehouse has its partition."""
        if self.partition_method == "hash":
            return f"WITH (MODULUS {self.partitions}, REMAINDER {number})"
        bounds = self.bounds()
        least = "MINVALUE" if number == 0 else str(bounds[number] + 1)
        end = "MAXVALUE" if number == self.partitions - 1 else str(bounds[number + 1] + 1)
        return f"FROM ({least}) TO ({end})"


def rows_of(warehouses: int, order_lines: int) -> dict[str, int]:
    """Return the rows of each table, in the loader's order."""
    return {table.name: _rows_before(table.name, warehouses, order_lines) for table in TABLES}


def _rows_before(table: str, warehouses: int, order_lines: int) -> int:
    """Return the rows of so many warehouses, whose orders have so many lines."""
    if table == "item":
        return ITEMS
    if table == "order_line":
        return order_lines
    of_warehouse = {
        "warehouse": 1,
        "district": DISTRICTS,
        "new_order": DISTRICTS * UNDELIVERED,
        "stock": ITEMS,
    }
    return warehouses * of_warehouse.get(table, DISTRICTS * CUSTOMERS)
