"""[prices] in an experiment file: what a volume costs, and errors that teach."""

from pathlib import Path

import pytest

from plinth.experiment import read_experiment_text
from plinth.model.errors import ExperimentError
from plinth.model.prices import PricesSpec, StoragePrice
from ramdisk_experiment import ramdisk_text

FREE = '[prices]\ncurrency = "USD"\nserver_per_hour = 0.1\n[prices.storage]\nmemory.per_hour = 0\n'


def problems(rest: str) -> list[str]:
    with pytest.raises(ExperimentError) as caught:
        read_experiment_text(ramdisk_text(rest=rest), "x.toml", Path())
    return [problem.message for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("price", "month"),
    [
        ({"per_hour": 0.5}, 365.0),
        ({"per_gib_month": 0.08, "gib": 500}, 40.0),
        ({"per_iops_month": 0.005, "iops": 6000, "included_iops": 3000}, 15.0),
        ({"per_iops_month": 0.005, "iops": 2000, "included_iops": 3000}, 0.0),
        ({"per_mb_s_month": 0.04, "mb_s": 250, "included_mb_s": 125}, 5.0),
    ],
)
def test_what_is_billed_by_the_month_is_a_share_of_730_hours(price: dict[str, float], month: float) -> None:
    assert StoragePrice.model_validate(price).total_per_hour * 730 == pytest.approx(month)


def test_a_level_has_the_price_of_the_storage_it_is_of_unless_it_has_one() -> None:
    prices = PricesSpec.model_validate(
        {"currency": "EUR", "storage": {"volume": {"per_hour": 1}, "volume-io2": {"per_hour": 3}}}
    )
    found = {name: prices.of(name, ["volume", "other"]) for name in ("volume-gp3", "volume-io2", "other", "volumes")}
    assert {name: one and one.per_hour for name, one in found.items()} == {
        "volume-gp3": 1,
        "volume-io2": 3,
        "other": None,
        "volumes": None,
    }


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (f"{FREE}disk = {{ per_gib_month = 0.1 }}\n", "gib is missing: per_gib_month needs how much you would buy"),
        (f"{FREE}disk = {{ per_hour = -1 }}\n", "greater than or equal to 0"),
        (f'{FREE}disk = {{ per_hour = 1, currency = "EUR" }}\n', "two currencies"),
        (f"{FREE}dsk = {{ per_hour = 1 }}\n", "storage 'dsk' is not one of: disk, memory"),
        (FREE, "there is no price for storage disk"),
        ('[prices]\ncurrency = "USD"\n', "no price is given"),
        ("[prices]\nserver_per_hour = 1\n", "currency"),
        (
            '[[objective]]\nmetric = "cost_per_million_transactions"\nmax = 1\nprice_per_hour = 1\n'
            '[prices]\ncurrency = "USD"\nserver_per_hour = 1\n',
            "not with [prices]",
        ),
    ],
)
def test_errors_say_what_is_missing(rest: str, said: str) -> None:
    assert any(said in message for message in problems(rest)), problems(rest)


def test_a_cost_takes_its_price_from_the_prices() -> None:
    rest = (
        '[[objective]]\nmetric = "cost_per_million_transactions"\nmax = 1\n[prices]\ncurrency = "USD"\n'
        "server_per_hour = 1\n"
    )
    parsed = read_experiment_text(ramdisk_text(rest=rest), "x.toml", Path())
    assert parsed.experiment.prices is not None and parsed.experiment.objectives[0].price_per_hour is None
