"""What has to be said with figures of the TPC-C-derived workload: that they are not of the TPC-C Benchmark, and why.

Free of pydantic, which `plinth bench` must not wait for. Numbers of clauses are those of the TPC-C specification, revision 5.11.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

NOTICE = (
    "This workload is derived from the TPC-C Benchmark and is not comparable to published TPC-C Benchmark results, as this "
    "implementation does not comply with all requirements of the TPC-C Benchmark."
)

NEW_ORDER = "new-order"
"""The transaction that NOPM counts."""
MOST_NOPM_PER_WAREHOUSE = 12.86
"""New orders a minute of a warehouse whose ten terminals keep the keying and think times of clause 5.2.5, at most."""

TERMINALS_PER_WAREHOUSE = 10
_LEAST_MEASURED_S = 120 * 60
_LEAST_SHARES = {"payment": 0.43, "order-status": 0.04, "delivery": 0.04, "stock-level": 0.04}
_SHARES = {"remote order lines": 0.01, "remote payments": 0.15, "new orders rolled back": 0.01}


class TpccConduct(NamedTuple):
    """What a run of the workload did, as far as the specification has rules for it."""

    clients: int
    warehouses: int
    mix: Mapping[str, int]
    """Cards by type of transaction."""
    isolation: str
    home: str
    remote_line_share: float
    remote_payment_share: float
    rollback_share: float
    measured_s: float | None
    """None where a number of transactions was asked for."""
    foreign_keys: bool
    is_paced: bool = False
    is_delivery_deferred: bool = False
    rate: bool = False
    """Whether transactions are due at a rate."""
    unlogged: bool = False
    checks: bool = True
    """Whether the consistency conditions are checked."""


def new_orders_per_minute(done: int, rolled_back: int | None, measured_ns: int) -> float | None:
    """Return NOPM: new orders that were committed, a minute of the measured phase. `done` counts those rolled back on purpose.

    None where it is not known how many were rolled back, and where nothing was measured.
    """
    if rolled_back is None or not measured_ns:
        return None
    return (done - rolled_back) * 60e9 / measured_ns


def efficiency(nopm: float, warehouses: int) -> float:
    """Return NOPM in parts of the most that so many warehouses can have with the specification's pacing."""
    return nopm / (MOST_NOPM_PER_WAREHOUSE * warehouses)


def deviations(of: TpccConduct) -> tuple[str, ...]:
    """Return how a run differs from the specification, each in a sentence without a full stop; a function of its options alone."""
    return tuple(text for rule in _RULES if (text := rule(of)) is not None)


def _pacing(of: TpccConduct) -> str | None:
    if of.is_paced:
        return None
    begins = "at a rate that was set" if of.rate else "as soon as its last has ended"
    return f"no keying and think times: a client begins a transaction {begins} (5.2.5)"


def _delivery(of: TpccConduct) -> str | None:
    return None if of.is_delivery_deferred else "a client waits for the end of its Delivery (2.7.2)"


def _terminals(of: TpccConduct) -> str | None:
    if of.clients == TERMINALS_PER_WAREHOUSE * of.warehouses:
        return None
    return (
        f"{_count(of.clients, 'terminal')} for {_count(of.warehouses, 'warehouse')}, not "
        f"{TERMINALS_PER_WAREHOUSE} for each (4.2)"
    )


def _home(of: TpccConduct) -> str | None:
    if of.home == "by-client":
        return None
    return "the home warehouse is drawn for each transaction, and is not the terminal's own (2.4.1.1)"


def _isolation(of: TpccConduct) -> str | None:
    if of.isolation != "read-committed":
        return None
    return "isolation read committed, in which reads may not be repeatable (3.4.1)"


def _mix(of: TpccConduct) -> str | None:
    cards = sum(of.mix.values())
    short = [
        f"{of.mix.get(name, 0) / cards:.3g} of {name} instead of {least:g}"
        for name, least in _LEAST_SHARES.items()
        if of.mix.get(name, 0) < least * cards
    ]
    return f"shares of transactions below the least: {', '.join(short)} (5.2.3)" if short else None


def _shares(of: TpccConduct) -> str | None:
    got = (of.remote_line_share, of.remote_payment_share, of.rollback_share)
    changed = [
        f"{what} {share:g} instead of {asked:g}"
        for (what, asked), share in zip(_SHARES.items(), got, strict=True)
        if share != asked
    ]
    return f"changed shares: {', '.join(changed)} (2.4.1.4, 2.4.1.5, 2.5.1.2)" if changed else None


def _foreign_keys(of: TpccConduct) -> str | None:
    return None if of.foreign_keys else "tables without foreign keys (1.3)"


def _unlogged(of: TpccConduct) -> str | None:
    return "unlogged tables, which a crash empties (3.5)" if of.unlogged else None


def _checks(of: TpccConduct) -> str | None:
    return None if of.checks else "the consistency conditions are not checked (3.3.2)"


def _measured(of: TpccConduct) -> str | None:
    if of.measured_s is None:
        return "measured for a number of transactions, not for at least 120 minutes (5.5.2)"
    if of.measured_s >= _LEAST_MEASURED_S:
        return None
    return f"measured for {of.measured_s:g} s, not for at least 120 minutes (5.5.2)"


def _always(text: str) -> Callable[[TpccConduct], str | None]:
    return lambda of: text


_RULES: tuple[Callable[[TpccConduct], str | None], ...] = (
    _pacing,
    _terminals,
    _delivery,
    _home,
    _isolation,
    _mix,
    _shares,
    _foreign_keys,
    _unlogged,
    _checks,
    _measured,
    _always("a Delivery is not queued: the session that asked for it carries it out (2.7.2)"),
    _always("terminals show no output: rows are fetched and dropped (2.4.3)"),
    _always("one deck of transactions for each thread of the load engine, not for each terminal (5.2.4.2)"),
    _always("dates of the population are fixed, not those of the load (4.3.3.1)"),
    _always("no space is set aside for 60 days of orders (4.2.3)"),
    _always("no price, no audit and no full disclosure report (7 to 9)"),
)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
