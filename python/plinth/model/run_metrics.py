"""What of two runs can be compared, and what can be let pass; apart from the models, so that help needs none of them."""

from typing import Literal

Metric = Literal["tps", "latency_p50", "latency_p95", "latency_p99"]
Allowance = Literal["clients", "dataset", "driver", "incomplete"]
"""What `plinth compare --allow` can let pass."""
