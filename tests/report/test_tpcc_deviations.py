"""How a run of the TPC-C-derived workload deviates from the specification: a function of its options."""

from typing import Any

import pytest

from plinth.model.tpcc_notice import TpccConduct, deviations
from plinth.model.tpcc_options import TpccMix

LEAST: dict[str, Any] = {
    "clients": 20,
    "warehouses": 2,
    "mix": TpccMix().weights(),
    "isolation": "serializable",
    "home": "by-client",
    "remote_line_share": 0.01,
    "remote_payment_share": 0.15,
    "rollback_share": 0.01,
    "measured_s": 7200.0,
    "foreign_keys": True,
    "is_paced": True,
    "is_delivery_deferred": True,
}
"""The options with which there are only the deviations that no option changes."""


def of(**options: Any) -> set[str]:
    """The deviations that these options add to the least."""
    least = set(deviations(TpccConduct(**LEAST)))
    found = set(deviations(TpccConduct(**{**LEAST, **options})))
    assert least <= found
    return found - least


def test_some_deviations_no_option_changes() -> None:
    always = deviations(TpccConduct(**LEAST))
    assert [text for text in always if "no price, no audit" in text]
    assert len(set(always)) == len(always) == 6


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"is_paced": False}, "as soon as its last has ended"),
        ({"is_paced": False, "rate": True}, "at a rate that was set"),
        ({"is_delivery_deferred": False}, "a client waits for the end of its Delivery"),
        ({"clients": 8}, "8 terminals for 2 warehouses, not 10 for each"),
        ({"clients": 1, "warehouses": 1}, "1 terminal for 1 warehouse, not 10 for each"),
        ({"clients": 10_000}, "10,000 terminals for 2 warehouses"),
        ({"home": "uniform"}, "home warehouse is drawn"),
        ({"isolation": "read-committed"}, "read committed"),
        ({"mix": TpccMix(new_order=55, payment=33).weights()}, "0.33 of payment instead of 0.43 (5.2.3)"),
        (
            {"mix": TpccMix(new_order=1, payment=0, order_status=0, delivery=0, stock_level=0).weights()},
            "0 of stock-level",
        ),
        ({"remote_line_share": 0.1}, "changed shares: remote order lines 0.1 instead of 0.01 (2"),
        ({"remote_payment_share": 0.0}, "remote payments 0 instead of 0.15"),
        ({"rollback_share": 0.0}, "new orders rolled back 0 instead of 0.01"),
        ({"foreign_keys": False}, "without foreign keys"),
        ({"unlogged": True}, "unlogged tables"),
        ({"checks": False}, "conditions are not checked"),
        ({"measured_s": 30.0}, "measured for 30 s, not for at least 120 minutes"),
        ({"measured_s": None}, "measured for a number of transactions"),
    ],
)
def test_an_option_that_deviates_is_said_once(options: dict[str, Any], said: str) -> None:
    (text,) = of(**options)
    assert said in text
    assert not text.endswith(".")


@pytest.mark.parametrize(
    "options",
    [
        {"isolation": "repeatable-read"},
        {"rate": True},
        {"mix": TpccMix(new_order=40, payment=45, order_status=5, delivery=5, stock_level=5).weights()},
        {"measured_s": 10_000.0},
        {"clients": 1000, "warehouses": 100},
    ],
)
def test_what_the_specification_allows_is_none(options: dict[str, Any]) -> None:
    assert of(**options) == set()


def test_several_have_a_sentence_each() -> None:
    assert len(of(is_paced=False, foreign_keys=False, clients=3)) == 3
