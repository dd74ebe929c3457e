"""The metrics by which runs can be compared, and the differences that can be allowed; apart from the models, so that
help needs none of them."""

from typing import Literal

Metric = Literal["tps", "latency_p50", "latency_p95", "latency_p99"]
Allowance = Literal["clients", "dataset", "driver", "incomplete", "load"]
"""The differences that `plinth compare --allow` accepts."""
