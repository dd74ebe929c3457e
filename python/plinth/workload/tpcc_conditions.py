"""The consistency conditions of clause 3.3.2 of the TPC-C specification, each as a query for the rows that violate it."""

from typing import TYPE_CHECKING, NamedTuple

from plinth.model.progress import Progress, Report
from plinth.model.trial import Check

if TYPE_CHECKING:
    import psycopg

_SHOWN = 3


class Condition(NamedTuple):
    """A condition; `violations` is a query that gives a text for each row, or group of rows, that violates it."""

    number: int
    sentence: str
    violations: str


_DELIVERED = """\
SELECT o_w_id AS w, o_d_id AS d, o_c_id AS c, sum(ol_amount) AS amount
FROM orders JOIN order_line ON (ol_w_id, ol_d_id, ol_o_id) = (o_w_id, o_d_id, o_id)
WHERE ol_delivery_d IS NOT NULL GROUP BY 1, 2, 3"""
_PAID = "SELECT h_c_w_id AS w, h_c_d_id AS d, h_c_id AS c, sum(h_amount) AS amount FROM history GROUP BY 1, 2, 3"
_LINES = "SELECT ol_w_id AS w, ol_d_id AS d, ol_o_id AS o, count(*) AS lines FROM order_line GROUP BY 1, 2, 3"

CONDITIONS = (
    Condition(
        1,
        "W_YTD = sum(D_YTD)",
        """\
SELECT format('w_id %s: w_ytd %s, sum of d_ytd %s', w_id, w_ytd, amount)
FROM warehouse LEFT JOIN (SELECT d_w_id, sum(d_ytd) AS amount FROM district GROUP BY 1) x ON d_w_id = w_id
WHERE w_ytd IS DISTINCT FROM amount""",
    ),
    Condition(
        2,
        "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        """\
SELECT format('w_id %s, d_id %s: d_next_o_id %s, greatest o_id %s, no_o_id %s', d_w_id, d_id, d_next_o_id, o, n)
FROM district
LEFT JOIN (SELECT o_w_id AS w, o_d_id AS d, max(o_id) AS o FROM orders GROUP BY 1, 2) x ON (x.w, x.d) = (d_w_id, d_id)
LEFT JOIN (SELECT no_w_id AS w, no_d_id AS d, max(no_o_id) AS n FROM new_order GROUP BY 1, 2) y
    ON (y.w, y.d) = (d_w_id, d_id)
WHERE d_next_o_id - 1 IS DISTINCT FROM o OR n <> o""",
    ),
    Condition(
        3,
        "max(NO_O_ID) - min(NO_O_ID) + 1 = rows in NEW_ORDER",
        """\
SELECT format('w_id %s, d_id %s: no_o_id from %s to %s in %s rows', no_w_id, no_d_id, min(no_o_id), max(no_o_id), count(*))
FROM new_order GROUP BY no_w_id, no_d_id HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)""",
    ),
    Condition(
        4,
        "sum(O_OL_CNT) = rows in ORDER_LINE, by district",
        """\
SELECT format('w_id %s, d_id %s: sum of o_ol_cnt %s, rows in order_line %s', w, d, said, found)
FROM (SELECT o_w_id AS w, o_d_id AS d, sum(o_ol_cnt) AS said FROM orders GROUP BY 1, 2) x
FULL JOIN (SELECT ol_w_id AS w, ol_d_id AS d, count(*) AS found FROM order_line GROUP BY 1, 2) y USING (w, d)
WHERE said IS DISTINCT FROM found""",
    ),
    Condition(
        5,
        "O_CARRIER_ID is null exactly where NEW_ORDER has a row",
        """\
SELECT format('w_id %s, d_id %s, o_id %s: o_carrier_id %s, %s', w, d, o, coalesce(o_carrier_id::text, 'null'),
              CASE WHEN o_ol_cnt IS NULL THEN 'a row in new_order without an order'
                   WHEN is_new THEN 'a row in new_order' ELSE 'no row in new_order' END)
FROM (SELECT o_w_id AS w, o_d_id AS d, o_id AS o, o_carrier_id, o_ol_cnt FROM orders) x
FULL JOIN (SELECT no_w_id AS w, no_d_id AS d, no_o_id AS o, true AS is_new FROM new_order) y USING (w, d, o)
WHERE o_ol_cnt IS NULL OR (o_carrier_id IS NULL) <> (is_new IS NOT NULL)""",
    ),
    Condition(
        6,
        "O_OL_CNT = rows in ORDER_LINE, by order",
        f"""\
SELECT format('w_id %s, d_id %s, o_id %s: o_ol_cnt %s, rows in order_line %s', w, d, o, said, lines)
FROM (SELECT o_w_id AS w, o_d_id AS d, o_id AS o, o_ol_cnt AS said FROM orders) x FULL JOIN ({_LINES}) y USING (w, d, o)
WHERE said IS DISTINCT FROM lines""",
    ),
    Condition(
        7,
        "OL_DELIVERY_D is null exactly where O_CARRIER_ID is",
        """\
SELECT format('w_id %s, d_id %s, o_id %s, ol_number %s: ol_delivery_d %s, o_carrier_id %s', ol_w_id, ol_d_id, ol_o_id,
              ol_number, coalesce(ol_delivery_d::text, 'null'), coalesce(o_carrier_id::text, 'null'))
FROM order_line JOIN orders ON (o_w_id, o_d_id, o_id) = (ol_w_id, ol_d_id, ol_o_id)
WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)""",
    ),
    Condition(
        8,
        "W_YTD = sum(H_AMOUNT)",
        """\
SELECT format('w_id %s: w_ytd %s, sum of h_amount %s', w_id, w_ytd, amount)
FROM warehouse LEFT JOIN (SELECT h_w_id, sum(h_amount) AS amount FROM history GROUP BY 1) x ON h_w_id = w_id
WHERE w_ytd IS DISTINCT FROM amount""",
    ),
    Condition(
        9,
        "D_YTD = sum(H_AMOUNT)",
        """\
SELECT format('w_id %s, d_id %s: d_ytd %s, sum of h_amount %s', d_w_id, d_id, d_ytd, amount)
FROM district LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS amount FROM history GROUP BY 1, 2) x
    ON (h_w_id, h_d_id) = (d_w_id, d_id)
WHERE d_ytd IS DISTINCT FROM amount""",
    ),
    Condition(
        10,
        "C_BALANCE = sum(OL_AMOUNT of what was delivered) - sum(H_AMOUNT)",
        f"""\
SELECT format('c_w_id %s, c_d_id %s, c_id %s: c_balance %s, delivered %s, paid %s', c_w_id, c_d_id, c_id, c_balance,
              delivered.amount, paid.amount)
FROM customer
LEFT JOIN ({_DELIVERED}) delivered ON (delivered.w, delivered.d, delivered.c) = (c_w_id, c_d_id, c_id)
LEFT JOIN ({_PAID}) paid ON (paid.w, paid.d, paid.c) = (c_w_id, c_d_id, c_id)
WHERE c_balance <> coalesce(delivered.amount, 0) - coalesce(paid.amount, 0)""",
    ),
    Condition(
        11,
        "rows in ORDERS - rows in NEW_ORDER = 2100, by district",
        """\
SELECT format('w_id %s, d_id %s: rows in orders %s, in new_order %s', d_w_id, d_id, o, n)
FROM district
LEFT JOIN (SELECT o_w_id AS w, o_d_id AS d, count(*) AS o FROM orders GROUP BY 1, 2) x ON (x.w, x.d) = (d_w_id, d_id)
LEFT JOIN (SELECT no_w_id AS w, no_d_id AS d, count(*) AS n FROM new_order GROUP BY 1, 2) y
    ON (y.w, y.d) = (d_w_id, d_id)
WHERE o - n IS DISTINCT FROM 2100""",
    ),
    Condition(
        12,
        "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT of what was delivered)",
        f"""\
SELECT format('c_w_id %s, c_d_id %s, c_id %s: c_balance %s, c_ytd_payment %s, delivered %s', c_w_id, c_d_id, c_id,
              c_balance, c_ytd_payment, amount)
FROM customer LEFT JOIN ({_DELIVERED}) delivered ON (w, d, c) = (c_w_id, c_d_id, c_id)
WHERE c_balance + c_ytd_payment <> coalesce(amount, 0)""",
    ),
)
"""Every condition, by its number. That of number 11 holds of a dataset in which nothing has run yet."""

_INITIAL_ONLY = 11


def check_conditions(
    control: "psycopg.Connection", *, initial: bool, report: Report = lambda progress: None
) -> list[Check]:
    """Return a check of each condition, which names rows that violate it. `initial`: nothing has run since the load.

    Raises psycopg.Error for tables that cannot be read.
    """
    conditions = [one for one in CONDITIONS if initial or one.number != _INITIAL_ONLY]
    checks: list[Check] = []
    for done, one in enumerate(conditions):
        report(Progress("check consistency", done, len(conditions), "conditions"))
        checks.append(_check(control, one))
    report(Progress("check consistency", len(conditions), len(conditions), "conditions"))
    return checks


def _check(control: "psycopg.Connection", condition: Condition) -> Check:
    query = f"SELECT violation, count(*) OVER () FROM ({condition.violations}) AS x(violation) LIMIT {_SHOWN}"
    rows = control.execute(query.encode()).fetchall()
    got = "none"
    if rows:
        count = int(rows[0][1])
        further = f"; and {count - len(rows):,} more" if count > len(rows) else ""
        got = "; ".join(str(row[0]) for row in rows) + further
    return Check(
        name=f"consistency condition {condition.number}: {condition.sentence}; violations",
        expected="none",
        got=got,
        ok=not rows,
    )
