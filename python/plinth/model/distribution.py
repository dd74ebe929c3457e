"""Distributions of integers, as pgbench's random functions and crates/bulk draw them."""

import math
from typing import Literal

Distribution = Literal["uniform", "gaussian", "exponential", "zipfian"]

DEFAULT_PARAMETERS: dict[Distribution, float] = {"gaussian": 10.0, "exponential": 10.0, "zipfian": 1.1}
LEAST_PARAMETERS: dict[Distribution, float] = {"gaussian": 2.0, "exponential": 1e-9, "zipfian": 1.001}
"""The least parameter of the load engine's and pgbench's functions."""


def check_parameter(key: str, distribution: Distribution, parameter: float | None) -> None:
    """Raise ValueError, which names `key`, for a parameter that the distribution does not take."""
    if parameter is None:
        return
    if distribution == "uniform":
        raise ValueError(f"{key}: not with uniform, which has none")
    is_below = not parameter >= LEAST_PARAMETERS[distribution]  # which nan is, too
    if is_below or parameter == math.inf or (distribution == "zipfian" and parameter > 1000):
        allowed = {"gaussian": "2 or more", "exponential": "above 0", "zipfian": "1.001 to 1000"}[distribution]
        raise ValueError(f"{key}: got {parameter:g}; {distribution} takes {allowed}")
