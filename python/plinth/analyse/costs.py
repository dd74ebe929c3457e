"""What a variant costs by the user's prices, and what a million transactions cost with it."""

from collections.abc import Mapping

from plinth.model.analysis import VariantResult
from plinth.model.experiment import Experiment, factor_path
from plinth.model.level import Level
from plinth.model.objective import Objective
from plinth.model.plan import Plan
from plinth.model.prices import PricesSpec
from plinth.model.storage_graph import closure

MILLION_PER_HOUR = 1_000_000 / 3600
"""Hours that a million transactions take, at one a second."""


def price_per_hour(plan: Plan, result: VariantResult) -> float | str | None:
    """Return what an hour of a variant costs by [prices], or why that is not known; None for an experiment without prices."""
    prices = plan.experiment.prices
    if prices is None:
        return None
    variant = next(one for one in plan.variants if one.id == result.id)
    cluster = next(one for one in plan.clusters if one.id == variant.cluster)
    total = 0.0
    for node in cluster.nodes:
        total += prices.server_per_hour or 0.0
        paid: set[str] = set()
        for storage in dict.fromkeys(node.roles.values()):
            layers = closure(plan.storages, [storage])
            priced = [name for name in layers if prices.of(name, plan.experiment.storage) is not None]
            if prices.storage and not priced:
                return f"[prices] has no price for storage {storage}"
            paid |= set(priced)
        total += sum(_of(prices, name, plan.experiment) for name in paid)
    return total


def objective_price(objective: Objective, plan: Plan, result: VariantResult) -> float | str:
    """Return what an hour of a variant costs: by the objective's own price, else by [prices]; or why that is not known."""
    price = objective.price_per_hour
    if isinstance(price, dict):
        storage = _storage_of(plan.experiment, result.levels)
        return price.get(storage, f"price_per_hour has no price for storage {storage}")
    if price is not None:
        return price
    by_prices = price_per_hour(plan, result)
    return "no price_per_hour is given" if by_prices is None else by_prices


def _of(prices: PricesSpec, name: str, experiment: Experiment) -> float:
    found = prices.of(name, experiment.storage)
    return 0.0 if found is None else found.total_per_hour


def _storage_of(experiment: Experiment, levels: Mapping[str, Level]) -> str:
    """Return the name, in the experiment, of the storage of a variant's data directory."""
    varied = (str(level) for factor, level in levels.items() if factor_path(factor) == ("server", "storage"))
    return next(varied, experiment.server.storage or next(iter(experiment.storage), "of the server"))
